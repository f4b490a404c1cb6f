"""The Plan: what will run, in which order, where. It is frozen, and prints itself as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forebay.batch import Sample
from forebay.define.node import Node
from forebay.operators._operator import Call
from forebay.operators._source import Loading, Source


@dataclass(frozen=True)
class Instruction:
    """One node, ready to run. Values live in numbered slots, a list of slots for each row.

    Attributes:
        node: what it does, for messages.
        call: the operator with its constants, or what loads a source's sample.
        inputs: slots of the positional inputs.
        values: slots of the arguments that vary by sample.
        guards: slots of bools and the values that they must have; else the row is passed over.
        outputs: slots for the results.
        frees: slots that nothing reads afterwards, so that memory is given back at once.
        key: of the random numbers.
        target: the pipeline's output whose memory the result may be written into, or None.
    """

    node: Node
    call: Call | Loading
    inputs: tuple[int, ...]
    values: tuple[int, ...]
    guards: tuple[tuple[int, bool], ...]
    outputs: tuple[int, ...]
    frees: tuple[int, ...]
    key: int
    target: int | None


@dataclass(frozen=True)
class Phase:
    """Instructions between two barriers.

    A phase of samples runs all its instructions on one sample after another, one task a sample. A
    phase of batches has operators that see whole batches.
    """

    of_batches: bool
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class SourceSlots:
    """A source node and the slots that its outputs fill.

    Attributes:
        outputs: those of the node; one for the tickets of a source whose samples the pool loads.
        source: what is read; None if the node is fed by hand.
        key: of the source's random numbers.
    """

    node: Node
    outputs: tuple[int, ...]
    source: Source | None
    key: int


@dataclass(frozen=True)
class Stage:
    """What one thread drives: first in the thread itself, then phases in the pool.

    Attributes:
        sources: read by the thread, in order.
        ordered: operators with hidden state, run by the thread, one run after the other.
        phases: run by the pool. The last phase of the last stage is one of samples; the outputs
            are put into their batches at its end.
    """

    sources: tuple[SourceSlots, ...]
    ordered: tuple[Instruction, ...]
    phases: tuple[Phase, ...]


@dataclass(frozen=True)
class Plan:
    """A pipeline that is ready to run.

    Attributes:
        stages: in order.
        outputs: the slot of each output.
        slots: how many there are.
        constants: slot → the sample that every row has there.
        fed: the sources that are fed by hand, in the order of their definition.
    """

    stages: tuple[Stage, ...]
    outputs: tuple[int, ...]
    slots: int
    constants: tuple[tuple[int, Sample], ...]
    fed: tuple[SourceSlots, ...]

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("stage", "operator", "device", "how", "defined at")]
        for number, stage in enumerate(self.stages):
            fed = self.fed if number == 0 else ()
            rows += [_row(number, s.node, "fed by hand") for s in fed]
            rows += [_row(number, s.node, "source") for s in stage.sources]
            rows += [_row(number, i.node, "in order") for i in stage.ordered]
            for phase in stage.phases:
                how = "per batch" if phase.of_batches else "per sample"
                rows += [_row(number, i.node, how) for i in phase.instructions]
        return _table(rows)


def _row(stage: int, node: Node, how: str) -> tuple[str, ...]:
    name = node.operator.name if node.name is None else f"{node.operator.name} '{node.name}'"
    return (str(stage), name, node.device, how, str(node.origin))


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)
