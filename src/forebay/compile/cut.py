"""The last pass: nodes become phases, and phases stages.

A node goes into the first phase in which all its inputs are there. Operators that work sample by
sample share a phase, so that a sample goes through all of them while it is in cache. An operator
that sees the whole batch stands in a phase of batches. One with hidden state begins a stage: its
runs must happen in order, so a thread of its own does them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from forebay.batch import Sample
from forebay.compile.graph import needed_nodes
from forebay.compile.place import check_devices
from forebay.compile.plan import Instruction, Phase, Plan, SourceSlots, Stage
from forebay.define.node import DataNode, Node
from forebay.errors import GraphError, SourceError
from forebay.operators._operator import Call, as_outputs
from forebay.operators._rng import node_key
from forebay.operators._source import DeferredSource, Loading, Source

Slot = tuple[Node, int]
TICKET = -1
"""The index of the slot that the tickets of a deferred source lie in."""


def make_plan(
    outputs: Sequence[DataNode], sinks: Sequence[DataNode], seed: int, owner: object = None
) -> Plan:
    """Compile a graph.

    Args:
        outputs: what the pipeline gives.
        sinks: nodes that are kept besides.
        seed: of the pipeline.
        owner: the token of the pipeline, which nodes written in its definition have.

    Raises:
        DefinitionError: what can be known to be wrong before data is there.
    """
    nodes = needed_nodes([*outputs, *sinks] if outputs else [], owner)
    check_devices(nodes)
    slots: dict[Slot, int] = {}
    for node in nodes:
        for index in range(node.outputs):
            slots[node, index] = len(slots)
    kept = tuple(slots[o.node, o.index] for o in outputs)
    constants, running = _fold(nodes, slots)
    sources = {n: None if _is_fed(n) else _open(n) for n in running if n.is_source}
    deferred = {n for n, source in sources.items() if isinstance(source, DeferredSource)}
    for node in deferred:
        slots[node, TICKET] = len(slots)
    stages = _stages(_phases([n for n in running if not n.is_source or n in deferred]))
    stages[0].sources = [n for n in sources if not _is_fed(n)]
    keys = {
        node: node_key(seed, ordinal) if node.seed is None else node_key(node.seed, -1)
        for ordinal, node in enumerate(n for n in nodes if n.operator.uses_rng)
    }
    last_use = _last_uses(stages, slots, set(kept))
    make = _Maker(slots, keys, last_use, kept, sources)
    return Plan(
        stages=tuple(stage.freeze(make) for stage in stages),
        outputs=kept,
        slots=len(slots),
        constants=tuple(constants.items()),
        fed=tuple(make.source(n) for n in sources if _is_fed(n)),
    )


def _fold(nodes: Sequence[Node], slots: Mapping[Slot, int]) -> tuple[dict[int, Sample], list[Node]]:
    """Run now what gives every sample the same: operators without inputs and random numbers."""
    constants: dict[int, Sample] = {}
    running = []
    for node in nodes:
        op = node.operator
        fixed = not (node.inputs or node.varying or node.is_source or op.uses_rng or op.ordered)
        if fixed and op.schema.level == "sample":
            try:
                results = as_outputs(Call(op, node.constants).run((), into=np.empty))
            except Exception as error:
                raise GraphError(f"fn.{op.name} at {node.origin}: {error}") from error
            for index, sample in enumerate(results):
                assert isinstance(sample, Sample)
                constants[slots[node, index]] = sample
        else:
            running.append(node)
    return constants, running


def _is_fed(node: Node) -> bool:
    return node.operator.name == "external_source" and node.source is None


def _open(node: Node) -> Source:
    if node.source is not None:
        return node.source
    try:
        source: Source = Call(node.operator, node.constants).run(())
    except (ValueError, OSError, SourceError) as error:
        raise GraphError(f"fn.{node.operator.name} at {node.origin}: {error}") from error
    return source


@dataclass
class _DraftPhase:
    kind: str  # "samples", "batches" or "ordered"
    nodes: list[Node] = field(default_factory=list)


def _kind(node: Node) -> str:
    if node.operator.ordered:
        return "ordered"
    return "batches" if node.operator.schema.level == "batch" else "samples"


def _phases(nodes: Sequence[Node]) -> list[_DraftPhase]:
    phases: list[_DraftPhase] = []
    place: dict[Node, int] = {}
    for node in nodes:
        kind = _kind(node)
        first = 0
        for needed in (used.node for used in node.needs):
            if needed in place:  # sources and constants are there from the start
                at = place[needed]
                together = kind == "samples" and phases[at].kind == "samples"
                first = max(first, at if together else at + 1)
        for number in range(first, len(phases) + 1):
            if number == len(phases):
                phases.append(_DraftPhase(kind))
            if phases[number].kind == kind:
                phases[number].nodes.append(node)
                place[node] = number
                break
    return phases


@dataclass
class _DraftStage:
    sources: list[Node] = field(default_factory=list)
    ordered: list[Node] = field(default_factory=list)
    phases: list[_DraftPhase] = field(default_factory=list)

    def freeze(self, make: _Maker) -> Stage:
        return Stage(
            sources=tuple(make.source(n) for n in self.sources),
            ordered=tuple(make.instruction(n) for n in self.ordered),
            phases=tuple(
                Phase(p.kind == "batches", tuple(make.instruction(n) for n in p.nodes))
                for p in self.phases
            ),
        )


def _stages(phases: Sequence[_DraftPhase]) -> list[_DraftStage]:
    stages = [_DraftStage()]
    for phase in phases:
        if phase.kind == "ordered":
            stages.append(_DraftStage(ordered=phase.nodes))
        else:
            stages[-1].phases.append(phase)
    if not stages[-1].phases or stages[-1].phases[-1].kind != "samples":
        stages[-1].phases.append(_DraftPhase("samples"))
    return stages


def _last_uses(
    stages: Sequence[_DraftStage], slots: Mapping[Slot, int], keep: set[int]
) -> dict[Node, list[int]]:
    """For each node the slots that nothing reads after it."""
    last: dict[int, Node] = {}
    for stage in stages:
        for node in (*stage.ordered, *(n for phase in stage.phases for n in phase.nodes)):
            for used in node.needs:
                last[slots[used.node, used.index]] = node
            if (node, TICKET) in slots:
                last[slots[node, TICKET]] = node
            for index in range(node.outputs):
                last.setdefault(slots[node, index], node)
    frees: dict[Node, list[int]] = {}
    for slot, node in last.items():
        if slot not in keep:
            frees.setdefault(node, []).append(slot)
    return frees


class _Maker:
    """Makes instructions of nodes, once all slots are known."""

    def __init__(
        self,
        slots: Mapping[Slot, int],
        keys: Mapping[Node, int],
        frees: Mapping[Node, Sequence[int]],
        kept: tuple[int, ...],
        sources: Mapping[Node, Source | None],
    ) -> None:
        self._slots = slots
        self._sources = sources
        self._keys = keys
        self._frees = frees
        self._kept = kept

    def source(self, node: Node) -> SourceSlots:
        source = self._sources[node]
        deferred = isinstance(source, DeferredSource)
        filled = (self._slots[node, TICKET],) if deferred else self._outputs(node)
        return SourceSlots(node, filled, source, self._keys[node])

    def instruction(self, node: Node) -> Instruction:
        source = self._sources.get(node)
        call: Call | Loading
        if isinstance(source, DeferredSource):
            schema = node.operator.schema
            call = Loading(source, {name: schema.argument(name).read for name in node.varying})
            inputs: tuple[int, ...] = (self._slots[node, TICKET],)
        else:
            call = Call(node.operator, node.constants, list(node.varying))
            inputs = tuple(self._slots[i.node, i.index] for i in node.inputs)
        return Instruction(
            node=node,
            call=call,
            inputs=inputs,
            values=tuple(self._slots[v.node, v.index] for v in node.varying.values()),
            guards=tuple((self._slots[p.node, p.index], value) for p, value in node.guards),
            outputs=self._outputs(node),
            frees=tuple(self._frees.get(node, ())),
            key=self._keys.get(node, 0),
            target=self._target(node),
        )

    def _target(self, node: Node) -> int | None:
        slot = self._slots[node, 0] if node.outputs == 1 else None
        return self._kept.index(slot) if slot in self._kept else None

    def _outputs(self, node: Node) -> tuple[int, ...]:
        return tuple(self._slots[node, index] for index in range(node.outputs))
