"""A slow executor that defines what the fast one gives: operator by operator, without threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from forebay.batch import Batch, Sample
from forebay.compile.plan import Instruction, Plan
from forebay.define.node import Node
from forebay.execute.memory import Slabs
from forebay.execute.read import read_sources
from forebay.execute.run import Place, Run

Inspect = Callable[[Node, int, Sequence[Sample | None]], object]
"""Is told a node, the number of one of its outputs, and its samples; None where it was not run."""


def run_now(
    plan: Plan, place: Place, fed: Mapping[Node, Batch], batch_size: int, inspect: Inspect
) -> tuple[Batch, ...]:
    """Run one batch in this thread, each operator on all samples before the next one.

    Args:
        plan: what to run.
        place: of the random numbers.
        fed: a batch for each source that is fed by hand.
        batch_size: as the executor's.
        inspect: called after each node, with its results.

    Raises:
        EndOfData, SourceError, OperatorError: as from the executor.
    """
    run = Run(plan, place, fed)
    sources = [slots for stage in plan.stages for slots in stage.sources]
    read_sources(plan, sources, run, batch_size, Slabs(keep=0))
    for slots in (*plan.fed, *sources):
        _show(run, slots.node, slots.outputs, inspect)
    for stage in plan.stages:
        for instruction in stage.ordered:
            _run_one(run, instruction, of_batches=True, inspect=inspect)
        for phase in stage.phases:
            for instruction in phase.instructions:
                _run_one(run, instruction, phase.of_batches, inspect)
    for number in range(run.size):
        run.run_row((), number, last=True)
    run.finish()
    run.passed[-1].set()
    return run.result()


def _run_one(run: Run, instruction: Instruction, of_batches: bool, inspect: Inspect) -> None:
    if of_batches:
        run.run_batch([instruction])
    else:
        for number in range(run.size):
            run.run_row([instruction], number, last=False)
    if run.error is not None:
        raise run.error
    run.check(range(run.size))
    _show(run, instruction.node, instruction.outputs, inspect)


def _show(run: Run, node: Node, outputs: Sequence[int], inspect: Inspect) -> None:
    for number, slot in enumerate(outputs):
        inspect(node, number, [row[slot] for row in run.rows])
