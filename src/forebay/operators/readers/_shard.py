"""Which samples a reader gives, and in which order.

The rules, which are DALI's where it can be observed:

- Shard k of s holds the places floor(n·k/s) up to floor(n·(k+1)/s) of the data: the shards tile it,
  and their sizes differ by one at most.
- A *lap* is one pass over one shard. Without `stick_to_shard` the reader's laps go over the shards
  in turn, from its own on, so s laps see everything once. With it every lap is over its own shard.
- Each lap gives every sample of its shard exactly once, whatever the shuffling.
- A reader never ends. Without padding a batch that begins at the end of a lap goes on with the next
  lap, so the batches are one endless sequence, cut every `batch_size` samples. With
  `pad_last_batch` each lap begins a batch and has as many as the largest shard needs; what is
  missing is filled with the last sample of the lap. So all shards always have the same number of
  batches.
- `random_shuffle` draws each sample from a window of the next `initial_fill` ones. `scatter`
  readers (those of single files) besides shuffle the data once, before it is cut into shards.
- `shuffle_after_epoch` orders the whole data anew for every lap, before it is cut into shards.
- What orders the data before it is cut does not depend on the pipeline's seed, so that ranks with
  different seeds still have disjoint shards whose union is the data.

Everything is a function of the batch's number since the beginning. Nothing has to be remembered in
order to go on at any batch; a window is drawn again from the beginning of its lap, which takes less
than a microsecond a sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np

from forebay.errors import ArgumentError
from forebay.operators._rng import Rng
from forebay.types import Arguments, Between, Hints

Indices: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

MOST = float(2**31 - 1)
_SCATTER_KEY = 0x5CA77E12
_BLOCK = 1024


@dataclass(frozen=True)
class Sharding(Arguments):
    """Which part of the data a reader gives, and in which order.

    Attributes:
        shard_id: which shard the reader begins with.
        num_shards: into how many shards the data is cut.
        random_shuffle: draw each sample from a window of the next `initial_fill` ones.
        initial_fill: the size of that window.
        shuffle_after_epoch: order the whole data anew for every epoch; the same in all shards.
        shuffle_after_epoch_seed: of these orders; all shards must have the same.
        pad_last_batch: fill the last batch of a shard by repeating its last sample, and give all
            shards as many batches as the largest one.
        stick_to_shard: stay with the shard, rather than go on to the next one at its end.
    """

    shard_id: Annotated[int, Between(0, MOST)] = 0
    num_shards: Annotated[int, Between(1, MOST)] = 1
    random_shuffle: bool = False
    initial_fill: int = 1024
    shuffle_after_epoch: bool = False
    shuffle_after_epoch_seed: int | None = None
    pad_last_batch: bool = False
    stick_to_shard: bool = False

    @property
    def stays(self) -> bool:
        """Whether every lap is over the reader's own shard."""
        return self.stick_to_shard or self.shuffle_after_epoch


@dataclass(frozen=True)
class ReaderHints(Hints):
    """How DALI reads ahead and where to. The result is the same.

    Attributes:
        prefetch_queue_depth: no effect; the pipeline's own says how far is read ahead.
        read_ahead: no effect.
        lazy_init: no effect; the data is listed when the pipeline is built.
        skip_cached_images: no effect; there is no cache of decoded images.
        tensor_init_bytes: no effect; memory is sized from the data.
        dont_use_mmap: no effect; files are never mapped, so they may change afterwards.
    """

    prefetch_queue_depth: Annotated[int, Between(1, MOST)] = 1
    read_ahead: bool = False
    lazy_init: bool = False
    skip_cached_images: bool = False
    tensor_init_bytes: int = 1048576
    dont_use_mmap: bool = False


SHARDING = Sharding()
READER_HINTS = ReaderHints()


def check_sharding(given: Mapping[str, Any]) -> None:
    """Refuse arguments of `Sharding` that exclude each other: for ``@operator(check=…)``."""
    shard_id, num_shards = given.get("shard_id", 0), given.get("num_shards", 1)
    if shard_id >= num_shards:
        raise ArgumentError(
            f"num_shards must be greater than shard_id, but they are {num_shards} and {shard_id}"
        )
    if given.get("shuffle_after_epoch"):
        for other in ("random_shuffle", "stick_to_shard"):
            if given.get(other):
                raise ArgumentError(f"shuffle_after_epoch and {other} exclude each other")
    if given.get("random_shuffle") and given.get("initial_fill", 1) < 1:
        raise ArgumentError(f"initial_fill must be at least 1, but got {given['initial_fill']}")


class Order:
    """The indices of every batch.

    Args:
        size: number of samples in the whole data.
        sharding: the reader's arguments.
        batch_size: how many samples a batch has.
        key: of the random numbers of `random_shuffle`.
        scatter: shuffle the data once before it is cut, if `random_shuffle`.
    """

    def __init__(
        self, size: int, sharding: Sharding, batch_size: int, key: int = 0, *, scatter: bool = False
    ) -> None:
        self._size = size
        self._sharding = sharding
        self._batch_size = batch_size
        self._key = key
        self._base: Indices | None = None
        if sharding.random_shuffle and scatter:
            self._base = _permutation(size, _SCATTER_KEY)
        self._last: tuple[int, _Lap] = (-1, _Lap(np.empty(0, np.int64)))

    def batch(self, number: int) -> Indices:
        """The indices of batch `number`, counted from 0 since the beginning."""
        if self._sharding.pad_last_batch:
            return self._padded(number)
        parts = []
        missing = self._batch_size
        lap, place = self._find(number * missing)
        while missing:
            part = self._lap(lap).take(place, missing)
            parts.append(part)
            missing -= len(part)
            lap, place = lap + 1, 0
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _padded(self, number: int) -> Indices:
        largest = -(-self._size // self._sharding.num_shards)
        lap, step = divmod(number, -(-largest // self._batch_size))
        items = self._lap(lap)
        part = items.take(step * self._batch_size, self._batch_size)
        missing = self._batch_size - len(part)
        return np.concatenate([part, items.take(items.size - 1, 1).repeat(missing)])

    def _find(self, place: int) -> tuple[int, int]:
        """The lap that a place in the endless sequence lies in, and where in it."""
        shard, shards, size = self._sharding.shard_id, self._sharding.num_shards, self._size
        begin = self._begin(shard)
        if self._sharding.stays:
            return divmod(place, self._begin(shard + 1) - begin)
        rounds, within = divmod(begin + place, size)
        there = ((within + 1) * shards - 1) // size  # the last shard that begins at or before it
        return rounds * shards + there - shard, within - self._begin(there)

    def _begin(self, shard: int) -> int:
        return self._size * shard // self._sharding.num_shards

    def _lap(self, number: int) -> _Lap:
        if self._last[0] != number:
            self._last = (number, self._make_lap(number))
        return self._last[1]

    def _make_lap(self, number: int) -> _Lap:
        sharding = self._sharding
        shard = sharding.shard_id
        if not sharding.stays:
            shard = (shard + number) % sharding.num_shards
        begin, end = self._begin(shard), self._begin(shard + 1)
        if sharding.shuffle_after_epoch:
            seed = sharding.shuffle_after_epoch_seed or 0
            return _Lap(_permutation(self._size, seed, number)[begin:end].copy())
        items = np.arange(begin, end) if self._base is None else self._base[begin:end]
        if not sharding.random_shuffle:
            return _Lap(items)
        if sharding.initial_fill >= len(items):
            return _Lap(items[_permutation(len(items), self._key, number)])
        return _Window(items, sharding.initial_fill, self._key, number)


def _permutation(size: int, key: int, number: int = 0) -> Indices:
    return Rng(key, epoch=number).generator().permutation(size)


class _Lap:
    """The indices of one lap, in order."""

    def __init__(self, items: Indices) -> None:
        self._items = items
        self.size = len(items)

    def take(self, begin: int, count: int) -> Indices:
        """Up to `count` of them; fewer at the end."""
        return self._items[begin : begin + count]


class _Window(_Lap):
    """A lap that is shuffled through a window, drawn as far as it is needed.

    Each index is drawn from the window, and the next one of the lap takes its place; when there is
    none left the window becomes smaller.
    """

    def __init__(self, items: Indices, fill: int, key: int, number: int) -> None:
        super().__init__(items)
        self._key = key
        self._number = number
        self._drawn = np.empty_like(items)
        self._ready = 0
        self._window: list[int] = items[:fill].tolist()
        self._fill = fill

    def take(self, begin: int, count: int) -> Indices:
        end = min(begin + count, self.size)
        while self._ready < end:
            self._draw(min(self._ready + _BLOCK, self.size))
        return self._drawn[begin:end]

    def _draw(self, end: int) -> None:
        """Draw up to `end`, a whole block: its random numbers are found by its number."""
        window, begin = self._window, self._ready
        rng = Rng(self._key, epoch=self._number, batch=begin // _BLOCK).generator()
        draws = rng.random(end - begin).tolist()
        incoming = self._items[begin + self._fill : end + self._fill].tolist()
        drawn = []
        for draw, following in zip(draws, incoming, strict=False):
            place = int(draw * len(window))
            drawn.append(window[place])
            window[place] = following
        for draw in draws[len(incoming) :]:
            place = int(draw * len(window))
            drawn.append(window[place])
            window[place] = window[-1]
            window.pop()
        self._drawn[begin:end] = drawn
        self._ready = end
