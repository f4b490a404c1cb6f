"""What a run begins with: the batches of its sources, and what was fed by hand."""

from __future__ import annotations

from collections.abc import Sequence

from forebay.batch import Batch
from forebay.compile.plan import Plan, SourceSlots
from forebay.errors import SourceError
from forebay.execute.memory import Slabs
from forebay.execute.run import EndOfData, Run
from forebay.operators._source import Request


def read_sources(
    plan: Plan, sources: Sequence[SourceSlots], run: Run, batch_size: int, slabs: Slabs
) -> None:
    """Read the sources, and make the run's rows of them and of what was fed.

    Raises:
        EndOfData: a source has no more.
        SourceError: a source failed, or the batches differ in size.
    """
    columns: dict[int, Batch] = {}
    for slots in plan.fed:
        columns[slots.outputs[0]] = run.fed[slots.node]
    for slots in sources:
        columns.update(zip(slots.outputs, _read(slots, run, batch_size), strict=True))
    size = _common_size([len(batch) for batch in columns.values()] or [batch_size])
    run.begin(columns, size, slabs)


def _read(slots: SourceSlots, run: Run, batch_size: int) -> Sequence[Batch]:
    assert slots.source is not None
    place = run.place
    try:
        return slots.source.read(Request(batch_size, place.batch, place.epoch, slots.key))
    except StopIteration:
        raise EndOfData from None
    except Exception as error:
        node = slots.node
        reason = str(error) if isinstance(error, SourceError) else repr(error)
        raise SourceError(
            f"{node.operator.name} '{node.label}' defined at {node.origin}: {reason}"
        ) from error


def _common_size(sizes: Sequence[int]) -> int:
    for size in sizes:
        if size != sizes[0]:
            raise SourceError(
                f"Batch size has to be uniform across one iteration. "
                f"Expected: {sizes[0]}; Actual: {size}"
            )
    return sizes[0]
