"""What a worker and the server say to each other.

A connection begins with one `Hello`; then each `Submit` asks for one part of a batch: the rows that
go through the pipeline together. The server never answers: results are taken in its own process.
Inputs stand one after another in one buffer, which travels in the message if it is small, else in a
shared segment.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Column:
    """The rows of one input: their element type, layout and shapes. They lie in order."""

    dtype: str
    layout: str
    shapes: Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Submit:
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
    return Column(first.dtype.str, samples[0].layout, [s.array.shape for s in samples])


def total_size(columns: Sequence[Sequence[Sample]]) -> int:
    """Bytes that `write` needs for these samples."""
    return sum(_aligned(sample.array.nbytes) for column in columns for sample in column)


def write(columns: Sequence[Sequence[Sample]], buffer: Any) -> None:
    """Copy the samples into a buffer, one after another."""
    target = np.frombuffer(buffer, np.uint8)
    offset = 0
    for column in columns:
        for sample in column:
            array = sample.array
            if array.nbytes:
                target[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)
            offset += _aligned(array.nbytes)


def read(columns: Sequence[Column], buffer: np.ndarray[Any, Any]) -> list[Batch]:
    """The batches that `write` put into the buffer: views of it."""
    batches = []
    offset = 0
    for column in columns:
        dtype = np.dtype(column.dtype)
        samples = []
        for shape in column.shapes:
            size = dtype.itemsize
            for extent in shape:
                size *= extent
            array = buffer[offset : offset + size]
            if dtype != np.uint8:
                array = array.view(dtype)
            if len(shape) != 1:
                array = array.reshape(shape)
            samples.append(Sample(array, column.layout))
            offset += _aligned(size)
        batches.append(Batch(samples))
    return batches


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
