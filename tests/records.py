"""A writer of TFRecord files, by the descriptions of their framing and of protobuf's encoding."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Value = bytes | int | float


def crc32c(data: bytes) -> int:
    """Bit by bit, so that it shares nothing with the code under test."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    octets = b""
    while number > 127:
        octets += bytes([number & 127 | 128])
        number >>= 7
    return octets + bytes([number])


def field(number: int, content: bytes) -> bytes:
    """A field with a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def values(items: Sequence[Value], *, packed: bool = True) -> bytes:
    """A Feature with a list of values of one type."""
    if isinstance(items[0], bytes):
        return field(1, b"".join(field(1, item) for item in items))
    if isinstance(items[0], float):
        kind, tag, parts = 2, 5, [struct.pack("<f", item) for item in items]
    else:
        kind, tag, parts = 3, 0, [varint(item) for item in items]
    if packed:
        return field(kind, field(1, b"".join(parts)))
    return field(kind, b"".join(varint(1 << 3 | tag) + part for part in parts))


def entry(name: str, feature: bytes) -> bytes:
    """A name and its feature, in the map of an Example."""
    return field(1, field(1, name.encode()) + field(2, feature))


def example(features: Mapping[str, Sequence[Value]], *, packed: bool = True) -> bytes:
    """An Example with these features."""
    return field(1, b"".join(entry(n, values(v, packed=packed)) for n, v in features.items()))


def record(data: bytes) -> bytes:
    """The framing around an Example."""
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def write_records(path: Path, examples: Iterable[bytes]) -> tuple[str, str]:
    """A TFRecord file of these examples, and an index of it. Returns their paths."""
    records = [record(data) for data in examples]
    path.write_bytes(b"".join(records))
    index = path.with_suffix(".idx")
    offsets = [sum(map(len, records[:i])) for i in range(len(records))]
    index.write_text("".join(f"{o} {len(r)}\n" for o, r in zip(offsets, records, strict=True)))
    return str(path), str(index)
