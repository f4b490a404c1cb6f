"""The headers of tar archives: which files there are, and where their contents lie.

The formats are POSIX's ustar and pax (IEEE 1003.1, pax, "ustar Interchange Format") and GNU tar's
long names. Python's `tarfile` reads the same, in ten times the time: archives of samples have
millions of headers, and they are all read before the first sample. Unlike it, a corrupt header is
an error here, wherever it is, and not the archive's end.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from forebay.errors import SourceError
from forebay.operators.readers._storage import open_file

_BLOCK = 512
_END = bytes(_BLOCK)
_REGULAR = (b"0", b"\0", b"7")
_OF_THE_NEXT = (b"x", b"L", b"K", b"g")
_WITHOUT_CONTENT = (b"1", b"2", b"3", b"4", b"5", b"6")


class Member(NamedTuple):
    """A regular file of an archive; `offset` is that of its content."""

    name: str
    offset: int
    size: int


def members(path: str) -> Iterator[Member]:
    """The regular files of an archive, in order.

    Raises:
        OSError: it cannot be read.
        SourceError: it is no tar archive, a header in it is corrupt, or it is cut off.
    """
    with io.BufferedReader(open_file(path)) as file:  # type: ignore[type-var]  # any binary file
        end = file.seek(0, os.SEEK_END)
        place = 0
        extended: dict[str, str] = {}
        while place != end or not place:
            file.seek(place)
            header = file.read(_BLOCK)
            if header == _END:
                return
            content = place + _BLOCK
            try:
                size = _content_size(header, extended, end - content)
                kind = header[156:157]
                if kind in (b"x", b"L"):
                    extended |= _extended(kind, file.read(size))
            except ValueError as error:
                raise SourceError(f"{path}, header at byte {place}: {error}") from None
            place = content + -(-size // _BLOCK) * _BLOCK
            if kind in _OF_THE_NEXT:
                continue
            name = extended.get("path") or _name(header)
            extended = {}
            if kind in _REGULAR and not name.endswith("/"):
                yield Member(name, content, size)


def _content_size(header: bytes, extended: Mapping[str, str], left: int) -> int:
    """How many bytes follow a header. Raises ValueError if it is corrupt, or if fewer are left."""
    if header[:2] == b"\x1f\x8b":
        raise ValueError("the archive is compressed, so that no sample can be found in it")
    if len(header) < _BLOCK:
        raise ValueError("it is cut off: the archive ends within it")
    if not _fits_checksum(header):
        raise ValueError("it is corrupt, or no tar header: it does not fit its checksum")
    kind = header[156:157]
    if kind == b"S" or any(key.startswith("GNU.sparse") for key in extended):
        raise ValueError(f"{_name(header)} is stored as a sparse file")
    if kind in _WITHOUT_CONTENT:
        return 0
    size = int(extended.get("size", 0)) or _number(header[124:136])
    if not 0 <= size <= left:
        raise ValueError(
            f"{_name(header)} is cut off: it has {size} bytes, but only {left} are left"
        )
    return size


def _fits_checksum(header: bytes) -> bool:
    try:
        expected = _number(header[148:156])
    except ValueError:
        return False
    counted = header[:148] + b" " * 8 + header[156:]
    # Adler-32 holds the sum of the bytes in its lower half: 1 + sum, modulo 65521.
    if zlib.adler32(counted) & 0xFFFF == (expected + 1) % 65521:
        return True
    return sum(byte - 256 if byte > 127 else byte for byte in counted) == expected  # in old tars


def _number(field: bytes) -> int:
    """A number in octal digits, or in GNU tar's way with the sign bit set, in binary."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.split(b"\0", 1)[0].strip()
    try:
        return int(digits or b"0", 8)
    except ValueError:
        raise ValueError(f"{digits!r} is no octal number") from None


def _name(header: bytes) -> str:
    name = _text(header[:100])
    prefix = _text(header[345:500]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _extended(kind: bytes, content: bytes) -> dict[str, str]:
    """What an extended header says of the member after it."""
    if kind == b"L":
        return {"path": _text(content)}
    found = {}
    while content.strip(b"\0"):
        length, _, _ = content.partition(b" ")
        record, content = content[: int(length)], content[int(length) :]
        key, equals, value = record[len(length) + 1 : -1].partition(b"=")
        if not equals:
            raise ValueError("a record of an extended header is malformed")
        found[_text(key)] = value.decode("utf-8", "surrogateescape")
    return found
