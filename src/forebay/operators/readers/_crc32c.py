"""The checksum of TFRecord files: CRC-32C (Castagnoli; RFC 3720, appendix B.4).

The packages `google-crc32c` or `crc32c` compute it, if one of them is installed. Else numpy does,
in blocks: a CRC is linear, so a block's is the exclusive or of one table entry for each byte, and
the blocks' are joined in pairs, by moving the left one over the bytes of the right one.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]

_POLYNOMIAL = 0x82F63B78
_BLOCK = 128
_AT_ONCE = 512  # blocks: what stays in the cache
_FEW = 32  # blocks that Python joins faster than numpy


def masked_crc32c(data: bytes | memoryview) -> int:
    """The checksum in the form that TFRecord files hold: rotated, and a constant added."""
    crc = _library()(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@functools.cache
def _library() -> Callable[[bytes | memoryview], int]:
    try:
        found: Callable[[Any], int] = importlib.import_module("crc32c").crc32c
    except ImportError:
        pass
    else:
        return found
    try:
        value: Callable[[bytes], int] = importlib.import_module("google_crc32c").value
    except ImportError:
        return crc32c
    return lambda data: value(bytes(data))


def crc32c(data: bytes | memoryview) -> int:
    """The checksum of any number of bytes, computed by numpy."""
    size = len(data)
    if size < 16:
        return _bytewise(data)
    blocks = np.zeros((-(-size // _BLOCK), _BLOCK), np.uint8)
    flat = blocks.reshape(-1)[-size:]  # zeros in front change nothing
    flat[:] = np.frombuffer(data, np.uint8)
    flat[:4] ^= 255  # the start value, 0xFFFFFFFF, acts on the first four bytes
    parts = np.concatenate(
        [_of_blocks(blocks[i : i + _AT_ONCE]) for i in range(0, len(blocks), _AT_ONCE)]
    )
    level = 0
    while len(parts) > _FEW:
        if len(parts) % 2:
            parts = np.concatenate([np.zeros(1, np.uint32), parts])
        parts = _move(parts[::2], _move_table(level)) ^ parts[1::2]
        level += 1
    first, second, third, fourth = _move_lists(level)
    crc = 0
    for part in parts.tolist():
        moved = first[crc & 255] ^ second[crc >> 8 & 255] ^ third[crc >> 16 & 255]
        crc = part ^ moved ^ fourth[crc >> 24]
    return crc ^ 0xFFFFFFFF


def _of_blocks(blocks: np.ndarray[Any, np.dtype[np.uint8]]) -> Words:
    # mode="wrap" is twice as fast as a check of every index
    terms = _block_table().take(blocks + _block_starts(), mode="wrap")
    crcs: Words = np.bitwise_xor.reduce(terms, axis=1)
    return crcs


def _bytewise(data: bytes | memoryview) -> int:
    crc = 0xFFFFFFFF
    table = _byte_list()
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@functools.cache
def _byte_table() -> Words:
    """What one byte contributes, if no byte follows."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ (table & np.uint32(1)) * np.uint32(_POLYNOMIAL)
    return table


@functools.cache
def _byte_list() -> list[int]:
    found: list[int] = _byte_table().tolist()
    return found


@functools.cache
def _block_table() -> Words:
    """What a byte at each place of a block contributes: place × 256 + byte."""
    table = np.empty((_BLOCK, 256), np.uint32)
    table[-1] = byte = _byte_table()
    for place in range(_BLOCK - 2, -1, -1):
        after = table[place + 1]
        table[place] = (after >> np.uint32(8)) ^ byte[after & np.uint32(255)]
    return table.reshape(-1)


@functools.cache
def _block_starts() -> np.ndarray[Any, np.dtype[np.intp]]:
    return np.arange(_BLOCK, dtype=np.intp) * 256


@functools.cache
def _move_table(level: int) -> Words:
    """What each byte of a CRC becomes when 2^level blocks of zeros follow."""
    if level == 0:
        return _block_table().reshape(_BLOCK, 256)[:4]
    half = _move_table(level - 1)
    return _move(half, half)


@functools.cache
def _move_lists(level: int) -> list[list[int]]:
    found: list[list[int]] = _move_table(level).tolist()
    return found


def _move(crcs: Words, table: Words) -> Words:
    octets = np.ascontiguousarray(crcs, "<u4")[..., None].view(np.uint8)
    moved: Words = table[0][octets[..., 0]]
    for place in (1, 2, 3):
        moved = moved ^ table[place][octets[..., place]]
    return moved
