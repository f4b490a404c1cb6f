"""What a worker and the server say to each other.

A connection begins with one `Hello`; then each `Submit` asks for one part of a batch: the rows that
go through the pipeline together. The server never answers: results are taken in its own process.
Inputs stand in one buffer, which travels in the message if it is small, else in a shared segment.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from forebay.batch import Batch, Sample
from forebay.errors import RequestRefused

SMALL = 1 << 16
"""Inputs of a part below this many bytes travel in the message."""

HELLO_LIMIT = 1 << 10
"""A first message is not longer, whoever sent it."""

_ALIGNMENT = 16


@dataclass(frozen=True)
class Hello:
    """The first message of a connection.

    Attributes:
        key: shows that the worker was given the proxy by the server.
        client: names the connection.
        pid: the worker's process.
        loader: whether a torch DataLoader ends the process when it has no use for its results.
    """

    key: bytes
    client: str
    pid: int
    loader: bool


class Column(NamedTuple):
    """The rows of one input.

    Attributes:
        dtype: element type, as numpy writes it.
        layout: of each row.
        rows: how many there are.
        extents: the shapes of all rows in one list, which takes half as long to decode.
        size: bytes in the buffer.
        offsets: where each row lies in the buffer; empty if the rows of all columns lie in order.
    """

    dtype: str
    layout: str
    rows: int
    extents: Sequence[int]
    size: int
    offsets: Sequence[int] = ()

    def shapes(self) -> list[tuple[int, ...]]:
        ndim = len(self.extents) // self.rows
        return [tuple(self.extents[row * ndim : (row + 1) * ndim]) for row in range(self.rows)]


class Submit(NamedTuple):
    """Run these rows.

    Attributes:
        number: of the part; a connection's parts are numbered in their order.
        epoch: the epoch's number, or a token that is the same for all workers of one epoch.
        batch: number of the batch in the epoch.
        rows: number of each row in the batch.
        indices: of each row in the dataset; None where it is not known.
        columns: one for each input.
        data: the buffer, if it is small.
        segment: the number of the shared segment that has it, else.
        size: of a segment that is new with this message; its descriptor comes along.
        dropped: segments that the worker no longer uses.
        samples: number in the batch of the sample that each row is of; None where it is not known.
        begun, sent: when the Dataset began these rows, and had done them; see `report.Trip`.
    """

    number: int
    epoch: int | str
    batch: int
    rows: Sequence[int]
    indices: Sequence[Any]
    columns: Sequence[Column]
    data: bytes | None
    segment: int | None = None
    size: int | None = None
    dropped: Sequence[int] = ()
    samples: Sequence[int | None] = ()
    begun: float = 0.0
    sent: float = 0.0


def encode_hello(hello: Hello) -> bytes:
    return json.dumps([hello.key.hex(), hello.client, hello.pid, hello.loader]).encode()


def decode_hello(data: bytes | bytearray) -> Hello:
    """The first message of a connection, whoever sent it. Raises RequestRefused."""
    try:
        key, client, pid, loader = json.loads(data)
        return Hello(bytes.fromhex(key), str(client), int(pid), bool(loader))
    except (ValueError, TypeError) as error:
        raise RequestRefused(f"not a connection of forebay's proxy: {error}") from None


def encode(message: Submit) -> bytes:
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def decode(data: bytes | bytearray) -> Submit:
    """Only for a connection that has shown the key: unpickling runs what the sender wants."""
    message: Submit = pickle.loads(data)
    return message


def describe(name: str, samples: Sequence[Sample]) -> Column:
    """The column of one input. Raises RequestRefused if its rows do not go together."""
    first = samples[0].array
    for row, sample in enumerate(samples):
        array = sample.array
        if array.dtype != first.dtype or array.ndim != first.ndim:
            raise RequestRefused(
                f"input '{name}': all samples of a batch must have one element type and number of "
                f"axes; sample 0 is {first.dtype} of shape {first.shape}, sample {row} is "
                f"{array.dtype} of shape {array.shape}"
            )
    extents = [extent for sample in samples for extent in sample.array.shape]
    size = sum(aligned(sample.array.nbytes) for sample in samples)
    return Column(first.dtype.str, samples[0].layout, len(samples), extents, size)


def write(columns: Sequence[Sequence[Sample]], target: np.ndarray[Any, Any]) -> None:
    """Copy the samples into a buffer, one after another."""
    offset = 0
    for column in columns:
        for sample in column:
            array = sample.array
            put(array, target, offset)
            offset += aligned(array.nbytes)


def put(array: np.ndarray[Any, Any], target: np.ndarray[Any, Any], offset: int) -> None:
    """Copy an array to its place in a buffer."""
    if array.nbytes:
        target[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)


def read(columns: Sequence[Column], buffer: np.ndarray[Any, Any]) -> list[Batch]:
    """The batches that `write` put into the buffer: views of it."""
    batches = []
    begin = 0
    for column in columns:
        batches.append(Batch(_Rows(column, buffer, begin)))
        begin += column.size
    return batches


class _Rows(Sequence[Sample]):
    """The rows of a column, made when they are used: not by the thread that receives them."""

    def __init__(self, column: Column, buffer: np.ndarray[Any, Any], begin: int) -> None:
        self._column = column
        self._buffer = buffer
        self._begin = begin

    def __len__(self) -> int:
        return self._column.rows

    def __getitem__(self, row: Any) -> Any:
        return list(self)[row]

    def __iter__(self) -> Iterator[Sample]:
        dtype = np.dtype(self._column.dtype)
        shapes = self._column.shapes()
        sizes = [dtype.itemsize * math.prod(shape) for shape in shapes]
        offsets = self._column.offsets or accumulate(map(aligned, sizes), initial=self._begin)
        for shape, size, offset in zip(shapes, sizes, offsets, strict=False):
            array = self._buffer[offset : offset + size]
            if dtype != np.uint8:
                array = array.view(dtype)
            if len(shape) != 1:
                array = array.reshape(shape)
            yield Sample(array, self._column.layout)


def aligned(size: int) -> int:
    """So many bytes lie between the beginnings of two rows."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT
