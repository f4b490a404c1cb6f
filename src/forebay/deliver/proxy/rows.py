"""The rows of a batch: which of them failed, and the batch without them.

A batch is anything that a collate function makes. Everything in it that belongs to a sample must go
with the sample, so what looks like neither one item for each row nor a constant is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from forebay.deliver.proxy.entry import Entry, SampleName
from forebay.deliver.proxy.failures import BadSample, Failures, detached, keep
from forebay.deliver.proxy.recorded import BrokenRef, Listed, Mapped, Recorded, Reference, leaves
from forebay.deliver.proxy.reference import BatchRef, Part, RowRef, SampleRef
from forebay.deliver.proxy.structure import find, replace
from forebay.errors import OperatorError, ProxyError

Key = tuple[Any, int]
"""A row of a part: the part's ticket, and the row."""

Names = Mapping[Key, SampleName]
"""Of which sample a row is, where that is known."""


class NoGoodRowError(Exception):
    """Every row of a batch failed.

    Attributes:
        first: the error of the first one; None if the Dataset raised it.
    """

    def __init__(self, first: OperatorError | None) -> None:
        super().__init__()
        self.first = first


def settle(
    batch: Any,
    own: Callable[[Reference], bool],
    entry: Callable[[Part], Entry],
    failures: Failures,
) -> Any:
    """The batch without the rows that failed, or with others in their place. Waits for its runs.

    Args:
        batch: what came out of the loader.
        own: tells the references of this server.
        entry: gives what the server keeps of a part.
        failures: says what to do, and takes note.

    Raises:
        NoGoodRowError: nothing is left of it.
        TooManyErrors: that was one too many.
        ProxyError: it cannot be told which parts of the batch belong to the failed sample.
    """
    every = [leaf for ref in find(batch, Reference) for leaf in leaves(ref)]
    if any(isinstance(ref, BrokenRef) for ref in every):
        return batch  # which cannot be had
    own_places = [place for ref in every if own(ref) for place in _places(ref)]
    errors, names, new = _failed(own_places, entry)
    if not errors:
        return batch
    first = next(iter(errors.values()))
    rows: _Rows | None = None
    try:
        try:
            rows = _Rows(batch, names)
        finally:
            failures.add([_bad_sample(kept, key, errors[key], rows) for kept, key in new])
        kept_rows = keep(failures.on_error, rows.size, rows.numbers(errors))
        if not kept_rows:
            raise NoGoodRowError(first)
        return rows.take(kept_rows)
    except _UnclearError as unclear:
        raise ProxyError(
            f"a sample failed, and on_error is '{failures.on_error}', but {unclear}. Collate with "
            f"default_collate, or give the batch one item for each sample in every field"
        ) from first


def _failed(
    places: Sequence[tuple[Part, int]], entry: Callable[[Part], Entry]
) -> tuple[dict[Key, OperatorError], dict[Key, SampleName], list[tuple[Entry, Key]]]:
    """The errors of these rows, the names of their samples, and which errors nobody has noted."""
    errors: dict[Key, OperatorError] = {}
    names: dict[Key, SampleName] = {}
    new: list[tuple[Entry, Key]] = []
    for part, row in places:
        kept, key = entry(part), (part.ticket, row)
        name = kept.samples[row] if kept.samples else None
        if name is not None:
            names[key] = name
        error = kept.finished().failures.get(row)
        if error is not None:
            errors[key] = error
            mark = object()
            if kept.noted.setdefault(row, mark) is mark:  # one of several threads
                new.append((kept, key))
    return errors, names, new


def parts(batch: Any, own: Callable[[Reference], bool]) -> list[Part]:
    """What the references of one server in a batch are rows of, each once."""
    every = [leaf for ref in find(batch, Reference) for leaf in leaves(ref)]
    sent = [ref for ref in every if own(ref) and not isinstance(ref, BrokenRef)]
    return list(dict.fromkeys(part for ref in sent for part, _ in _places(ref)))


def _places(ref: Reference) -> list[tuple[Part, int]]:
    if isinstance(ref, BatchRef):
        return ref.places()
    assert isinstance(ref, RowRef | SampleRef)
    return [ref.sent()]


def _bad_sample(entry: Entry, key: Key, error: OperatorError, rows: _Rows | None) -> BadSample:
    row = key[1]
    run = entry.finished()
    assert run.source is not None
    cause = error if error.__cause__ is None else error.__cause__
    known = None if error.source == run.source(row) else error.source
    path = known or getattr(cause, "filename", None)
    place = run.place
    name = entry.samples[row] if entry.samples else None
    found = [] if rows is None else rows.found(key)
    number = (
        name[2] if name else found[0] if found else row if place.rows is None else place.rows[row]
    )
    index = entry.indices[row]
    operator = error.operator
    return BadSample(index, path, operator, detached(cause), place.epoch, place.batch, number)


class _UnclearError(Exception):
    """What belongs to which sample cannot be told."""


class _Rows:
    """How the rows of a batch are found in it.

    A row of the batch is a sample, and is known by the sample's name, or by the key of the one row
    of a part that it has.

    Attributes:
        size: how many there are.
    """

    def __init__(self, batch: Any, names: Names) -> None:
        self._batch = batch
        self._names = names
        self._orders = [o for ref in find(batch, Reference) for o in self._orders_of(ref)]
        if self._orders:
            sizes = sorted({len(order) for order in self._orders})
            if len(sizes) > 1:
                raise _UnclearError(f"its batch has references of {sizes} rows")
        elif len(self._samples(batch)) == 1:
            self._orders = [self._samples(batch)]
        else:
            lists = find(batch, self._is_list_of_samples)
            if not lists or (lists[0] is batch and isinstance(batch, tuple)):
                raise _UnclearError("its references may belong to one sample, or to several")
            self._orders = [[sample for item in lists[0] for sample in self._samples(item)]]
        self.size = len(self._orders[0])

    def _samples(self, item: Any) -> list[Any]:
        """The samples of all references in it, each once."""
        refs = [leaf for ref in find(item, Reference) for leaf in leaves(ref)]
        return list(dict.fromkeys(self._sample(place) for ref in refs for place in _places(ref)))

    def _sample(self, place: tuple[Part, int]) -> Any:
        key = place[0].ticket, place[1]
        return self._names.get(key, key)

    def _orders_of(self, ref: Reference) -> list[list[Any]]:
        """The samples of each batch in a reference, in order; none if it stands for one sample."""
        if isinstance(ref, BatchRef):
            return [[self._sample(place) for place in ref.places()]]
        if isinstance(ref, Listed):
            return [[sample for item in ref.items for sample in self._samples(item)[:1]]]
        if isinstance(ref, Recorded):
            parts = find((ref.args, ref.kwargs), Reference)
            return [order for part in parts for order in self._orders_of(part)]
        return []

    def found(self, key: Key) -> list[int]:
        """The numbers of the rows with this row of a part."""
        sample = self._names.get(key, key)
        return [i for order in self._orders for i, each in enumerate(order) if each == sample]

    def numbers(self, keys: Collection[Key]) -> list[int]:
        """The numbers of the rows that have one of these keys."""
        found = [self.found(key) for key in keys]
        if not all(found):
            raise _UnclearError("the row of its batch to which it belongs cannot be told")
        return [number for each in found for number in each]

    def take(self, rows: Sequence[int]) -> Any:
        """The batch of these rows."""

        def value(leaf: Any) -> Any:
            if isinstance(leaf, Reference):
                return self._take_reference(leaf, rows)
            if isinstance(leaf, list | tuple):
                return type(leaf)([leaf[row] for row in rows])
            if len(leaf) != self.size:
                raise _UnclearError(
                    f"its batch of {self.size} has {_called(leaf)}, which is not one item a sample"
                )
            return leaf[list(rows)]

        return replace(self._batch, self._is_leaf, value)

    def _is_leaf(self, item: Any) -> bool:
        if isinstance(item, torch.Tensor | np.ndarray):
            return item.ndim > 0
        return isinstance(item, Reference) or self._is_rows(item)

    def _take_reference(self, ref: Reference, rows: Sequence[int]) -> Any:
        if isinstance(ref, BatchRef):
            return ref.select_rows(rows)
        if isinstance(ref, Listed):
            return Listed(tuple(ref.items[row] for row in rows))
        if isinstance(ref, Recorded) and self._orders_of(ref):
            parts = (ref.args, ref.kwargs)
            if not isinstance(ref, Mapped) and find(parts, self._is_whole):
                raise _UnclearError(f"{ref!r} may have an argument with an item for each sample")
            args, kwargs = replace(parts, Reference, lambda r: self._take_reference(r, rows))
            return type(ref)(ref.function, args, kwargs)
        if self.size == 1:
            return ref
        raise _UnclearError("a reference to one sample stands outside of a list of samples")

    def _is_rows(self, item: Any) -> bool:
        """Whether it is a list with an item for each row."""
        if not isinstance(item, list | tuple) or hasattr(item, "_fields"):
            return False
        if len(item) != self.size:
            return False
        refs = find(item, Reference)
        if any(self._orders_of(ref) for ref in refs):
            return False
        if refs:
            columns = zip(*self._orders, strict=True)
            return all(
                len(self._samples(member)) == 1 and self._samples(member)[0] in here
                for member, here in zip(item, columns, strict=True)
            )
        if all(self._is_column(member) for member in item):
            raise _UnclearError(
                f"its batch of {self.size} has a list of {self.size} items, each of which may "
                f"belong to one sample or to all"
            )
        return True

    def _is_list_of_samples(self, item: Any) -> bool:
        """Whether each of its items has references to one sample."""
        return isinstance(item, list | tuple) and all(
            len(self._samples(member)) == 1 for member in item
        )

    def _is_column(self, item: Any) -> bool:
        """Whether it may have an item for each row, itself or everywhere in it."""
        if self._is_whole(item):
            return True
        if isinstance(item, Mapping):
            return bool(item) and all(self._is_column(member) for member in item.values())
        if isinstance(item, list | tuple):
            return len(item) == self.size or (
                bool(item) and all(self._is_column(member) for member in item)
            )
        return False

    def _is_whole(self, item: Any) -> bool:
        return (
            isinstance(item, torch.Tensor | np.ndarray) and item.ndim > 0 and len(item) == self.size
        )


def _called(item: Any) -> str:
    return f"{type(item).__name__} of shape {tuple(item.shape)}"
