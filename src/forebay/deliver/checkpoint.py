"""A pipeline's place as JSON: what its consumer has taken, and what it must fit.

What was prefetched does not count. Random numbers depend on the seed and the place alone, so these
and the sources are all that has a state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from forebay.compile.plan import Plan
from forebay.define.node import Node
from forebay.errors import ArgumentError

_VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """A place, and the pipeline that it is of.

    Attributes:
        seed: of the pipeline.
        taken: batches that the consumer took, of all epochs together.
        epoch, iteration: of the next batch.
        operators: those of the plan with the names of their nodes, and for readers the number of
            samples.
        iterator: the place of the iterator that the pipeline is run by, if it is.
    """

    seed: int
    taken: int
    epoch: int
    iteration: int
    operators: list[list[Any]]
    iterator: Mapping[str, int] | None = field(default=None)

    def dump(self) -> bytes:
        return json.dumps({"forebay": "checkpoint", "version": _VERSION, **asdict(self)}).encode()

    @staticmethod
    def load(text: bytes | str) -> Checkpoint:
        """Read what `dump` made. Raises ArgumentError."""
        try:
            found = json.loads(text)
            if (found.pop("forebay"), found.pop("version")) == ("checkpoint", _VERSION):
                return Checkpoint(**found)
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        raise ArgumentError(
            f"checkpoint takes what checkpoint() of a pipeline of this version of forebay gave, "
            f"but got {text[:60]!r}"
        )

    def check(self, plan: Plan, seed: int) -> None:
        """Raise ArgumentError if it is not of this pipeline, with what differs."""
        if seed != self.seed:
            raise ArgumentError(
                f"the checkpoint is of a pipeline with seed={self.seed}, but this one has "
                f"seed={seed}; leave the seed out, and it is taken from the checkpoint"
            )
        mine, theirs = operators(plan), self.operators
        for number in range(max(len(mine), len(theirs))):
            here, there = (o[number] if number < len(o) else None for o in (mine, theirs))
            if here != there:
                raise ArgumentError(
                    f"the checkpoint is of another pipeline: operator {number} of the plan is "
                    f"{_called(there)} there, and {_called(here)} here"
                )


def operators(plan: Plan) -> list[list[Any]]:
    """What `Checkpoint.operators` has, of a plan."""
    found: list[list[Any]] = [[s.node.operator.name, s.node.name] for s in plan.fed]
    for stage in plan.stages:
        for slots in stage.sources:
            meta = None if slots.source is None else slots.source.meta()
            size = [] if meta is None else [meta["epoch_size"], meta["number_of_shards"]]
            found.append([*_names(slots.node), *size])
        found += [_names(i.node) for i in stage.ordered]
        run = [i.node for phase in stage.phases for i in phase.instructions]
        found += [_names(node) for node in run if not node.is_source]
    return found


def _names(node: Node) -> list[Any]:
    return [node.operator.name, node.name]


def _called(entry: list[Any] | None) -> str:
    if entry is None:
        return "none"
    operator, name, *size = entry
    named = f"fn.{operator}" if name is None else f"fn.{operator} '{name}'"
    return f"{named} of {size[0]} samples in {size[1]} shards" if size else named
