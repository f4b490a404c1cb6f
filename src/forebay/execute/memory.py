"""Memory of batches that is used again, once nobody reads it any more.

A fresh batch of a few ten megabytes costs a page fault for every 4 kB; a slab that comes back is
warm. It comes back when the last tensor, view or array over it is gone: all of them keep the numpy
array that it was lent as, so the end of that array is the signal.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from typing import Any

import numpy as np

_ALIGNMENT = 64
_WORTH_KEEPING = 1 << 16


class Slabs:
    """Buffers by size. At most `keep` unused ones of each size are kept.

    There is no lock: slabs come back from wherever the garbage collector runs, which may be inside
    any other method of this class. Deques are safe without one.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._free: dict[int, deque[np.ndarray[Any, Any]]] = {}

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """An uninitialised C-contiguous array that nobody else reads or writes."""
        size = dtype.itemsize * math.prod(shape)
        if size < _WORTH_KEEPING:
            return np.empty(shape, dtype)
        free = self._free.get(size)
        if free is None:
            free = self._free.setdefault(size, deque(maxlen=self._keep))
        try:
            slab = free.pop()
        except IndexError:
            slab = np.empty(size + _ALIGNMENT, np.uint8)
        offset = -slab.ctypes.data % _ALIGNMENT
        # Views of an array keep only its ultimate owner alive. An array over a buffer is an owner.
        lent = np.frombuffer(slab.data, dtype, math.prod(shape), offset)
        weakref.finalize(lent, free.append, slab).atexit = False
        return lent.reshape(shape)
