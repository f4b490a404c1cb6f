"""The framing of TFRecord files, and index files of them.

A record is its length (8 bytes), the length's checksum (4), the data, and the data's checksum (4),
all little-endian. An index file has a line for each record: its offset and its size, framing
included, as DALI's `tfrecord2idx` writes them.
"""

from __future__ import annotations

import io
import os
from typing import Any, TypeAlias

import numpy as np

from forebay.errors import SourceError
from forebay.operators.readers._crc32c import masked_crc32c
from forebay.operators.readers._storage import open_file

Places: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
"""A row for each record: offset and size."""

_HEADER = 12
_FRAME = 16


def find_records(path: str) -> Places:
    """The places of all records of a file, found by their lengths alone.

    Raises:
        OSError: it cannot be read.
        SourceError: a length does not fit its checksum, or the last record is cut off.
    """
    offset = 0
    places = []
    with io.BufferedReader(open_file(path)) as file:  # type: ignore[type-var]  # any binary file
        end = file.seek(0, os.SEEK_END)
        while offset < end:
            file.seek(offset)
            try:
                size = _FRAME + _length(file.read(_HEADER))
            except ValueError as error:
                raise SourceError(f"{path}, record at byte {offset}: {error}") from None
            places.append((offset, size))
            offset += size
    if offset > end:
        raise SourceError(
            f"{path}, record at byte {places[-1][0]}: it is cut off: it should end at byte "
            f"{offset}, but the file ends at byte {end}"
        )
    return np.array(places, np.int64).reshape(-1, 2)


def _length(header: bytes | memoryview) -> int:
    if len(header) < _HEADER:
        raise ValueError("it is cut off: the file ends within its length")
    length = header[:8]
    if masked_crc32c(length) != int.from_bytes(header[8:12], "little"):
        raise ValueError("its length does not fit the length's checksum")
    return int.from_bytes(length, "little")


def unwrap(record: memoryview) -> memoryview:
    """The data of a record. Raises ValueError if it does not fit its checksums or size."""
    size = _FRAME + _length(record)
    if size != len(record):
        raise ValueError(f"it has {size} bytes, but {len(record)} in the index")
    data = record[_HEADER : size - 4]
    if masked_crc32c(data) != int.from_bytes(record[size - 4 : size], "little"):
        raise ValueError("its data does not fit the data's checksum")
    return data


def parse_index(text: str, name: str) -> Places:
    """The places that an index file holds. Raises SourceError if it is none."""
    words = text.split()
    try:
        places = np.array(words, np.int64).reshape(-1, 2)
    except (ValueError, OverflowError):
        places = None
    if places is None or (places < 0).any() or len(places) != len(text.splitlines()):
        raise SourceError(f"{name} is no index of a TFRecord file: lines of offset and size")
    return places


def format_index(places: Places) -> str:
    """An index file of these places."""
    return "".join(f"{offset} {size}\n" for offset, size in places.tolist())
