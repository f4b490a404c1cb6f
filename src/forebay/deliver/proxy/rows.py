"""The rows of a batch: which of them failed, and the batch without them.

A batch is anything that a collate function makes. Everything in it that belongs to a sample must go
with the sample, so what looks like neither one item for each row nor a constant is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from forebay.deliver.proxy.entry import Entry
from forebay.deliver.proxy.failures import BadSample, Failures, detached, keep
from forebay.deliver.proxy.recorded import BrokenRef, Listed, Mapped, Recorded, Reference, leaves
from forebay.deliver.proxy.reference import BatchRef, Part, RowRef, SampleRef
from forebay.deliver.proxy.structure import find, replace
from forebay.errors import OperatorError, ProxyError

Key = tuple[Any, int]
"""A row of a part: the part's ticket, and the row."""


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
    errors: dict[Key, OperatorError] = {}
    bad: list[BadSample] = []
    for ref in every:
        if own(ref):
            for part, row in _places(ref):
                kept = entry(part)
                error = kept.finished().failures.get(row)
                if error is not None:
                    errors[part.ticket, row] = error
                    mark = object()
                    if kept.noted.setdefault(row, mark) is mark:  # one of several threads
                        bad.append(_bad_sample(kept, row, error))
    if not errors:
        return batch
    failures.add(bad)
    first = next(iter(errors.values()))
    try:
        rows = _Rows(batch)
        kept_rows = keep(failures.on_error, rows.size, rows.numbers(errors))
        if not kept_rows:
            raise NoGoodRowError(first)
        return rows.take(kept_rows)
    except _UnclearError as unclear:
        raise ProxyError(
            f"a sample failed, and on_error is '{failures.on_error}', but {unclear}. Collate with "
            f"default_collate, or give the batch one item for each sample in every field"
        ) from first


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


def _keys(item: Any) -> list[Key]:
    """The rows of all references in it, each once."""
    refs = [leaf for ref in find(item, Reference) for leaf in leaves(ref)]
    return list(dict.fromkeys((part.ticket, row) for ref in refs for part, row in _places(ref)))


def _bad_sample(entry: Entry, row: int, error: OperatorError) -> BadSample:
    run = entry.finished()
    assert run.source is not None
    cause = error if error.__cause__ is None else error.__cause__
    known = None if error.source == run.source(row) else error.source
    path = known or getattr(cause, "filename", None)
    place = run.place
    number = row if place.rows is None else place.rows[row]
    index = entry.indices[row]
    operator = error.operator
    return BadSample(index, path, operator, detached(cause), place.epoch, place.batch, number)


def _orders(ref: Reference) -> list[list[Key]]:
    """The rows of each batch in a reference, in order; none if it stands for one sample."""
    if isinstance(ref, BatchRef):
        return [[(part.ticket, row) for part, row in ref.places()]]
    if isinstance(ref, Listed):
        return [[key for item in ref.items for key in _keys(item)[:1]]]
    if isinstance(ref, Recorded):
        parts = find((ref.args, ref.kwargs), Reference)
        return [order for part in parts for order in _orders(part)]
    return []


class _UnclearError(Exception):
    """What belongs to which sample cannot be told."""


class _Rows:
    """How the rows of a batch are found in it.

    Attributes:
        size: how many there are.
    """

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._orders = [order for ref in find(batch, Reference) for order in _orders(ref)]
        if self._orders:
            sizes = sorted({len(order) for order in self._orders})
            if len(sizes) > 1:
                raise _UnclearError(f"its batch has references of {sizes} rows")
        elif len(_keys(batch)) == 1:
            self._orders = [_keys(batch)]
        else:
            lists = find(batch, _is_list_of_samples)
            if not lists or (lists[0] is batch and isinstance(batch, tuple)):
                raise _UnclearError("its references may belong to one sample, or to several")
            self._orders = [[key for item in lists[0] for key in _keys(item)]]
        self.size = len(self._orders[0])

    def numbers(self, keys: Collection[Key]) -> list[int]:
        """The numbers of the rows that have one of these keys."""
        if not all(any(key in order for order in self._orders) for key in keys):
            raise _UnclearError("the row of its batch to which it belongs cannot be told")
        return [i for order in self._orders for i, key in enumerate(order) if key in keys]

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
        if isinstance(ref, Recorded) and _orders(ref):
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
        if any(_orders(ref) for ref in refs):
            return False
        if refs:
            columns = zip(*self._orders, strict=True)
            return all(
                len(_keys(member)) == 1 and _keys(member)[0] in here
                for member, here in zip(item, columns, strict=True)
            )
        if all(self._is_column(member) for member in item):
            raise _UnclearError(
                f"its batch of {self.size} has a list of {self.size} items, each of which may "
                f"belong to one sample or to all"
            )
        return True

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


def _is_list_of_samples(item: Any) -> bool:
    """Whether each of its items has references to one row."""
    return isinstance(item, list | tuple) and all(len(_keys(member)) == 1 for member in item)


def _called(item: Any) -> str:
    return f"{type(item).__name__} of shape {tuple(item.shape)}"
