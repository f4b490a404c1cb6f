from __future__ import annotations

import random

import pytest

import records
from forebay.operators.readers._crc32c import crc32c, masked_crc32c


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
    ids=["none", "check", "zeros", "ones", "up", "down"],
)
def test_the_vectors_of_rfc_3720_are_met(data, crc):
    assert crc32c(data) == crc
    assert records.crc32c(data) == crc


@pytest.mark.parametrize("size", [1, 3, 4, 15, 16, 127, 128, 129, 1000, 3 * 128, 66000])
def test_every_size_gives_what_the_bitwise_definition_gives(size):
    data = random.Random(size).randbytes(size)
    assert crc32c(data) == records.crc32c(data)
    assert masked_crc32c(memoryview(bytearray(data))).to_bytes(4, "little") == records.masked(data)
