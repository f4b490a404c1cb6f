"""The shared memory of a worker, which its inputs are copied to once.

An input must be copied when the proxy is called, because its owner may change it at once. It is
copied to where the server will read it: into the *open* segment, which the next part to be sent
will take along. There is one as soon as the server has given a segment back that is as large as
the last part. What does not fit, or is sent with another part than the one that takes the segment,
is copied once more when it is sent.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.batch import Sample
from forebay.define.form import copied
from forebay.deliver.proxy import protocol
from forebay.deliver.proxy.protocol import Column, aligned
from forebay.deliver.proxy.transport import Segment

Array = np.ndarray[Any, Any]


@dataclass
class _Open:
    """A segment that is being filled; its content, and how much of that is taken."""

    number: int
    segment: Segment
    content: Array
    taken: int = 0

    def take(self, size: int) -> int | None:
        """Where so many bytes can lie; None if there is no room."""
        begin, end = self.taken, self.taken + aligned(size)
        if end > self.content.size:
            return None
        self.taken = end
        return begin

    def offset(self, array: Array) -> int | None:
        """Where an array lies that was copied here, or is copied now; None if there is no room."""
        if array.base is self.content:
            return _address(array) - _address(self.content)
        begin = self.take(array.nbytes)
        if begin is not None:
            protocol.put(array, self.content, begin)
        return begin


@dataclass
class Placed:
    """A part's inputs, in a segment.

    Attributes:
        number: the segment's.
        segment: where they are.
        columns: say where they lie in it.
        descriptor: of a segment that is new, to be closed when it has been sent.
        dropped: numbers of segments that are no longer used.
    """

    number: int
    segment: Segment
    columns: Sequence[Column]
    descriptor: int | None
    dropped: list[int]


class Arena:
    """The segments that a worker shares with its server over one connection."""

    def __init__(self) -> None:
        self._segments: dict[int, Segment] = {}
        self._numbers = itertools.count()
        self._open: _Open | None = None
        self._last = 0
        self._lock = threading.Lock()

    def copy(self, array: Array) -> Array:
        """A copy, in the open segment if there is one and it has room."""
        with self._lock:
            place = self._open = self._open or self._begin()
            begin = None if place is None else place.take(array.nbytes)
        if place is None or begin is None:
            return copied(array)
        copy = place.content[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(copy, array)
        return copy

    def _begin(self) -> _Open | None:
        for number, segment in self._segments.items():
            if segment.size >= self._last and not segment.in_use:
                return _Open(number, segment, segment.fill())
        return None

    def place(self, rows: Sequence[Sequence[Sample]], columns: Sequence[Column]) -> Placed:
        """Have the rows of each column in a segment that the server may read from now on."""
        with self._lock:
            place, self._open = self._open, None
            self._last = sum(column.size for column in columns)
            if place is not None:
                found = []
                for column, samples in zip(columns, rows, strict=True):
                    offsets = [place.offset(sample.array) for sample in samples]
                    found.append(column._replace(offsets=[o for o in offsets if o is not None]))
                if all(len(column.offsets) == column.rows for column in found):
                    return Placed(place.number, place.segment, found, None, [])
            return self._place_anew(rows, columns)

    def _place_anew(self, rows: Sequence[Sequence[Sample]], columns: Sequence[Column]) -> Placed:
        dropped: list[int] = []
        descriptor = None
        for number, segment in list(self._segments.items()):
            if segment.in_use:
                continue
            if segment.size >= self._last:
                break
            dropped.append(number)
            del self._segments[number]
        else:
            number = next(self._numbers)
            segment, descriptor = Segment.create(1 << (self._last - 1).bit_length())
            self._segments[number] = segment
        protocol.write(rows, segment.fill())
        return Placed(number, segment, columns, descriptor, dropped)


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
