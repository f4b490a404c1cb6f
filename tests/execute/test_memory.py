from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from forebay.execute.memory import Slabs

SHAPE, DTYPE = (64, 1024), np.dtype(np.float32)


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_comes_back_when_its_array_is_gone():
    slabs = Slabs(2)
    first = address(slabs.take(SHAPE, DTYPE))
    assert address(slabs.take(SHAPE, DTYPE)) == first


@pytest.mark.parametrize(
    "keep",
    [
        lambda a: a[3:5],
        torch.from_numpy,
        lambda a: torch.from_numpy(a)[7],
        lambda a: torch.from_numpy(a)[7].numpy(),
        lambda a: torch.from_numpy(a).view(-1)[100:].reshape(4, -1),
        lambda a: np.from_dlpack(torch.from_numpy(a)),
        memoryview,
    ],
)
def test_memory_stays_while_anything_reads_it(keep):
    slabs = Slabs(2)
    array = slabs.take(SHAPE, DTYPE)
    where = address(array)
    reader = keep(array)
    del array
    gc.collect()
    others = [slabs.take(SHAPE, DTYPE) for _ in range(3)]
    assert where not in [address(o) for o in others]
    del reader
    gc.collect()
    assert address(slabs.take(SHAPE, DTYPE)) == where


def test_at_most_so_many_unused_slabs_are_kept():
    slabs = Slabs(2)
    arrays = [slabs.take(SHAPE, DTYPE) for _ in range(5)]
    where = {address(a) for a in arrays}
    del arrays
    again = [slabs.take(SHAPE, DTYPE) for _ in range(2)]
    assert {address(a) for a in again} <= where
    assert len(slabs._free[64 * 1024 * 4]) == 0


def test_arrays_are_writable_contiguous_and_aligned():
    for size in (70_000, 100_001, 1 << 20):
        array = Slabs(1).take((size,), np.dtype(np.uint8))
        assert array.flags.writeable
        assert array.flags.c_contiguous
        assert address(array) % 64 == 0
