"""Random numbers that are a function of where they are drawn, not of when.

A draw depends on (seed, operator, epoch, batch, row, number of the draw), on nothing else. So the
same sample gets the same numbers whatever the number of threads or workers, the order of arrival
or the prefetch depth. The generator is Philox4x64-10 (Salmon et al., "Parallel random numbers: as
easy as 1, 2, 3", 2011), as numpy implements it: the key is the node's, the counter the place.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

_MASK = (1 << 64) - 1


class _PerThread(threading.local):
    """A generator a thread, moved to another place for every `Rng`: six times cheaper than new."""

    def __init__(self) -> None:
        self.bits = np.random.Philox(key=[0, 0])
        self.generator = np.random.Generator(self.bits)
        self.state: Any = self.bits.state


_local = _PerThread()


class Rng:
    """The random numbers of one operator for one sample (or, in a batch operator, for one batch).

    It is given to the kernels of operators that have a parameter of this type.
    """

    __slots__ = ("_counter", "_key")

    def __init__(self, key: int, epoch: int = 0, batch: int = 0, row: int = 0) -> None:
        self._key = key & _MASK
        self._counter = (0, row & _MASK, batch & _MASK, epoch & _MASK)

    def generator(self) -> np.random.Generator:
        """A numpy generator at this place. Draw all you need before another Rng is asked."""
        local = _local
        state = local.state
        state["state"]["counter"][:] = self._counter
        state["state"]["key"][:] = (self._key, 0)
        state["buffer_pos"] = 4
        state["has_uint32"] = 0
        local.bits.state = state
        return local.generator


def node_key(pipeline_seed: int, ordinal: int) -> int:
    """The key of the node with this ordinal: splitmix64 of the seed (Steele et al., 2014)."""
    z = (pipeline_seed + (ordinal + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
