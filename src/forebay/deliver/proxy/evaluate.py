"""What references stand for: takes results, and does what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import torch
from torch.utils.data import default_collate

from forebay.batch import Batch, Sample
from forebay.deliver.proxy.entry import Entry
from forebay.deliver.proxy.recorded import BrokenRef, Listed, Mapped, Recorded, Reference, leaves
from forebay.deliver.proxy.reference import BatchRef, Part, RowRef, SampleRef
from forebay.deliver.proxy.structure import find, replace
from forebay.deliver.ragged import Ragged, assemble
from forebay.execute.kept import fresh


class Evaluation:
    """Gives the data of references to one server.

    What may raise is a method, not a closure: that would live as long as the error does.

    Args:
        get: gives the entry of a part, when it is there.
        owns: tells the references of the server.
        ragged: what a batch of samples of different shapes becomes.

    Attributes:
        entries: what was used, in order.
        recorded: seconds in functions that were recorded.
    """

    def __init__(
        self, get: Callable[[Part], Entry], owns: Callable[[Reference], bool], ragged: Ragged
    ) -> None:
        self._get = get
        self._owns = owns
        self._ragged = ragged
        self.entries: dict[Entry, None] = {}
        self.recorded = 0.0

    def own_value(self, ref: Reference) -> Any:
        """The value of a reference; one of another server's stays as it is."""
        return self.value(ref) if self._owns(ref) else ref

    def value(self, ref: Reference) -> Any:
        """A tensor; for a ragged batch what `ragged` makes of its samples. Waits for the data."""
        if isinstance(ref, BatchRef):
            return self._batch(ref)
        if isinstance(ref, Mapped | Listed):
            return self._assemble(self._rows(ref), ref)
        if isinstance(ref, Recorded):
            return self._call(ref)
        return self._row(ref)

    def _entry(self, part: Part) -> Entry:
        found = self._get(part)
        self.entries[found] = None
        return found

    def _call(self, ref: Recorded) -> Any:
        args, kwargs = replace((ref.args, ref.kwargs), Reference, self.value)
        return self._do(ref, args, kwargs)

    def _do(self, ref: Recorded | Mapped, args: Any, kwargs: Any) -> Any:
        begun = perf_counter()
        try:
            return ref.function(*args, **kwargs)
        finally:
            self.recorded += perf_counter() - begun

    def _row(self, ref: Reference) -> torch.Tensor:
        if isinstance(ref, BrokenRef):
            raise fresh(ref.error)
        assert isinstance(ref, RowRef | SampleRef)
        part, row = ref.sent()
        return self._entry(part).batch(ref.output, (row,))[0]

    def _rows(self, ref: Reference) -> list[Any]:
        """The data of a batch reference, row by row."""
        if isinstance(ref, BatchRef):
            return [sample.tensor for sample in self._samples(ref)]
        if isinstance(ref, Listed):
            return list(map(self.value, ref.items))
        if isinstance(ref, BrokenRef):
            raise fresh(ref.error)
        assert isinstance(ref, Mapped)
        parts = (ref.args, ref.kwargs)
        columns = {}
        for batch in _batches(parts):
            columns[id(batch)] = self._rows(batch)
        results = []
        for row in range(len(next(iter(columns.values())))):
            args, kwargs = replace(parts, Reference, partial(_cell, columns, row))
            results.append(self._do(ref, args, kwargs))
        return results

    def _batch(self, ref: BatchRef) -> Any:
        home = self._entry(ref.pieces[0][0]).tensors
        key = (ref.output, *((part.ticket, tuple(rows)) for part, rows in ref.pieces))
        if key not in home:
            part, rows = ref.pieces[0]
            one = self._entry(part).batch(ref.output, rows)
            batch = Batch(self._samples(ref)) if len(ref.pieces) > 1 else one
            home[key] = assemble(batch, self._ragged, ref.output)
        return home[key]

    def _samples(self, ref: BatchRef) -> list[Sample]:
        samples: list[Sample] = []
        for part, rows in ref.pieces:
            samples += self._entry(part).batch(ref.output, rows).samples
        return samples

    def _assemble(self, rows: Sequence[Any], ref: Reference) -> Any:
        """One batch of the results of a recorded function."""
        if not all(isinstance(row, torch.Tensor) for row in rows):
            return default_collate(list(rows))
        output = getattr(leaves(ref)[0], "output", 0)
        return assemble(Batch([Sample(row) for row in rows]), self._ragged, output)


def _cell(columns: Mapping[int, Sequence[Any]], row: int, batch: Reference) -> Any:
    return columns[id(batch)][row]


def _batches(recorded: Any) -> list[Reference]:
    """The references among recorded arguments, without a look into them."""
    return find(recorded, Reference)
