"""`tf.train.Example`: the protobuf message that TFRecord files hold, and features read of it.

The format is that of protobuf's public encoding guide. An Example is a map from names to features;
a feature is a list of byte strings, of floats or of integers. Only the wanted features are read.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]


class FeatureType(enum.IntEnum):
    """What the values of a feature are. The numbers are DALI's."""

    int64 = 0
    string = 1
    float32 = 2


@dataclass(frozen=True)
class Feature:
    """How one feature is read.

    Attributes:
        dtype: of its values. A string is given as its bytes, a vector of uint8.
        shape: of the tensor; if not `fixed`, without its first axis, which may have any length.
        default: for samples that lack the feature: a number, or a string; None to refuse them.
        fixed: whether every sample has the same number of values. If not, a missing feature is
            empty.
    """

    dtype: FeatureType
    shape: tuple[int, ...]
    default: float | bytes | None
    fixed: bool

    def read(self, values: Values | None, name: str) -> Array:
        """The tensor of an example's values, or the default if there are none.

        Raises:
            ValueError: they are of another type, or their number does not fit the shape.
        """
        if values is None or not values.chunks:
            return self._missing(name)
        if values.kind != self.dtype:
            raise ValueError(
                f"feature '{name}' holds {values.kind.name} values, but {self.dtype.name} was asked"
            )
        if self.dtype is FeatureType.string:
            return np.frombuffer(values.chunks[0], np.uint8)
        array = values.floats() if self.dtype is FeatureType.float32 else values.integers()
        if not len(array):
            return self._missing(name)
        if self.fixed:
            if array.size != math.prod(self.shape):
                raise ValueError(
                    f"feature '{name}' has {array.size} values, which do not fit the shape "
                    f"{list(self.shape)}"
                )
            return array.reshape(self.shape)
        row = math.prod(self.shape)
        if array.size % row:
            raise ValueError(
                f"feature '{name}' has {array.size} values, no multiple of those of the partial "
                f"shape {list(self.shape)}"
            )
        return array.reshape(-1, *self.shape)

    def _missing(self, name: str) -> Array:
        dtype = np.float32 if self.dtype is FeatureType.float32 else np.int64
        if not self.fixed:
            return np.empty((0, *self.shape), dtype)
        if self.default is None:
            raise ValueError(f"feature '{name}' is missing, and has no default")
        if isinstance(self.default, bytes):
            return np.frombuffer(bytearray(self.default), np.uint8)
        return np.full(self.shape, self.default, dtype)


class Values:
    """The values of a feature, as they are encoded.

    Attributes:
        kind: their type.
        chunks: byte strings; or parts of the list of numbers, each packed or a single one.
    """

    __slots__ = ("chunks", "kind")

    def __init__(self, kind: FeatureType, chunks: list[memoryview]) -> None:
        self.kind = kind
        self.chunks = chunks

    def floats(self) -> Array:
        """The numbers of a list of floats."""
        packed = bytearray().join(self.chunks)
        if len(packed) % 4:
            raise ValueError("the example is corrupt: a list of floats ends within one")
        return np.frombuffer(packed, "<f4")

    def integers(self) -> Array:
        """The numbers of a list of integers."""
        packed = bytearray().join(self.chunks)
        return _short_varints(packed) if len(packed) < 32 else _varints(packed)


_LONGEST = 10  # bytes of a varint
_TOO_LONG = f"the example is corrupt: an integer of more than {_LONGEST} bytes"
_CUT_OFF = "the example is corrupt: a list of integers ends within one"


def _varints(packed: bytearray) -> Array:
    """Numbers of 7 bits in each byte, lowest first; the last byte of each is below 128."""
    octets = np.frombuffer(packed, np.uint8)
    ends = np.flatnonzero(octets < 128)
    if not len(ends) or ends[-1] != len(octets) - 1:
        raise ValueError(_CUT_OFF)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if lengths.max() > _LONGEST:
        raise ValueError(_TOO_LONG)
    places = np.arange(len(octets)) - np.repeat(starts, lengths)
    parts = (octets & 127).astype(np.uint64) << (7 * places).astype(np.uint64)
    return np.bitwise_or.reduceat(parts, starts).view(np.int64)


def _short_varints(packed: bytearray) -> Array:
    """The same, for few numbers."""
    numbers = []
    place, end = 0, len(packed)
    try:
        while place < end:
            begin = place
            number, place = _long_varint(packed, place)
            if place - begin > _LONGEST:
                raise ValueError(_TOO_LONG)
            numbers.append(number & 0xFFFFFFFFFFFFFFFF)
    except IndexError:
        raise ValueError(_CUT_OFF) from None
    return np.array(numbers, np.uint64).view(np.int64)


def parse_example(data: memoryview, wanted: Mapping[bytes, Any]) -> dict[bytes, Values]:
    """The wanted features that an encoded Example has. Raises ValueError if it is none."""
    found = {}
    for number, begin, end in _fields(data, 0, len(data)):
        if number != 1:
            continue
        for number_, start, stop in _fields(data, begin, end):
            if number_ != 1:
                continue
            spans = {part: (first, after) for part, first, after in _fields(data, start, stop)}
            first, after = spans.get(1, (0, 0))
            name = bytes(data[first:after])
            if name in wanted and (values := _values(data, *spans.get(2, (0, 0)))) is not None:
                found[name] = values
    return found


_KINDS = {1: FeatureType.string, 2: FeatureType.float32, 3: FeatureType.int64}


def _values(data: memoryview, begin: int, end: int) -> Values | None:
    values = None
    for number, start, stop in _fields(data, begin, end):
        if number in _KINDS:
            fields = _fields(data, start, stop)
            chunks = [data[first:after] for part, first, after in fields if part == 1]
            values = Values(_KINDS[number], chunks)
    return values


def _fields(data: memoryview, place: int, end: int) -> list[tuple[int, int, int]]:
    """The fields of a message: number, and where the content begins and ends."""
    found = []
    try:
        while place < end:
            tag = data[place]
            place += 1
            if tag >= 128:
                tag, place = _long_varint(data, place - 1)
            wire = tag & 7
            if wire == 2:
                size = data[place]
                place += 1
                if size >= 128:
                    size, place = _long_varint(data, place - 1)
                after = place + size
            elif wire == 0:
                after = _long_varint(data, place)[1]
            elif wire in (1, 5):
                after = place + (8 if wire == 1 else 4)
            else:
                raise ValueError(f"it is no tf.train.Example: a field of wire type {wire}")
            found.append((tag >> 3, place, after))
            place = after
    except IndexError:
        place = end + 1
    if place > end:
        raise ValueError("it is no tf.train.Example: a field goes beyond its message")
    return found


def _long_varint(data: memoryview | bytearray, place: int) -> tuple[int, int]:
    """The number at a place, and the place after it. Raises IndexError if the data ends before."""
    value = shift = 0
    while (byte := data[place]) >= 128:
        value |= (byte & 127) << shift
        shift += 7
        place += 1
    return value | byte << shift, place + 1
