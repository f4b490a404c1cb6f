"""Where an epoch ends: how many batches it has, and which of their rows belong to it.

Pipelines with readers have no end. A reader gives one batch after the other, and an epoch is a
matter of counting: here it is known in advance, from the sizes alone.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from forebay.batch import Batch
from forebay.operators._source import ReaderMeta


class LastBatchPolicy(enum.Enum):
    """What becomes of the last batch of an epoch, if the data does not fill it.

    Attributes:
        FILL: it is filled up: with the beginning of the next epoch, or, if the reader pads, with
            its last sample.
        DROP: it is left out.
        PARTIAL: it is given with the rows that there are. If shards differ in size by a row, it
            may have no row at all, so that all ranks have the same number of batches.
    """

    FILL = 0
    DROP = 1
    PARTIAL = 2


@dataclass(frozen=True)
class Epochs:
    """The batches of every epoch, for pipelines that run in step.

    All shards have the same number of batches in an epoch, whatever their sizes. Batches are
    counted from the beginning; those of an epoch that are not handed out are passed over.

    Attributes:
        policy: of the last batch.
        batch_size: rows of a batch of one pipeline.
        size: number of samples in the whole data.
        shards: into how many the data is cut.
        shard_ids: the shard that each pipeline begins with. None: the pipelines take turns on one
            sequence of batches, of which `size` samples are an epoch.
        stays: each pipeline stays with its shard; else it goes to the next one every epoch.
        runs_on: an epoch's last batch is filled with the beginning of the next epoch, which
            is then shorter; else every epoch begins a batch.
        pipelines: how many there are.
    """

    policy: LastBatchPolicy
    batch_size: int
    size: int
    shards: int = 1
    shard_ids: tuple[int, ...] | None = None
    stays: bool = False
    runs_on: bool = False
    pipelines: int = 1

    @property
    def smallest(self) -> int:
        """The size of the smallest shard."""
        return self.size // self.shards

    @property
    def largest(self) -> int:
        """The size of the largest shard."""
        return -(-self.size // self.shards)

    @property
    def _width(self) -> int:
        """How many rows of a shard one step takes."""
        return self.batch_size * (self.pipelines if self.shard_ids is None else 1)

    def begin(self, epoch: int) -> int:
        """How many batches come before an epoch."""
        if not self.runs_on:
            return epoch * -(-self.largest // self._width)
        # Of all ranks, the one that has met the largest shards decides. No epoch is empty.
        met = epoch * self.largest if self.stays else -(-epoch * self.size // self.shards)
        return max(epoch, -(-met // self._width))

    def length(self, epoch: int) -> int:
        """How many batches of an epoch are handed out."""
        if self.policy is LastBatchPolicy.DROP:
            return self.smallest // self._width
        return self.begin(epoch + 1) - self.begin(epoch)

    def rows(self, epoch: int, step: int, pipeline: int) -> int:
        """How many rows of a pipeline's batch belong to the epoch, from the first one on."""
        if self.policy is not LastBatchPolicy.PARTIAL:
            return self.batch_size
        before = step * self._width
        if self.shard_ids is None:
            left = self.size - before - pipeline * self.batch_size
        else:
            left = self._shard_size(self.shard_ids[pipeline], epoch) - before
        return min(max(left, 0), self.batch_size)

    def _shard_size(self, shard: int, epoch: int) -> int:
        if not self.stays:
            shard = (shard + epoch) % self.shards
        return self.size * (shard + 1) // self.shards - self.size * shard // self.shards


def epochs_of_readers(
    policy: LastBatchPolicy, batch_size: int, metas: Sequence[ReaderMeta], *, aligned: bool
) -> Epochs:
    """The epochs of pipelines whose readers have the same data and shards.

    Args:
        policy, batch_size: as in `Epochs`.
        metas: what is known of each pipeline's reader.
        aligned: whether every epoch begins a batch.
    """
    meta = metas[0]
    return Epochs(
        policy,
        batch_size,
        meta["epoch_size"],
        meta["number_of_shards"],
        tuple(each["shard_id"] for each in metas),
        stays=bool(meta["stick_to_shard"]),
        runs_on=not aligned,
        pipelines=len(metas),
    )


def first_rows(batch: Batch, rows: int) -> Batch:
    """The first rows of a batch, in the same memory."""
    if rows >= len(batch):
        return batch
    if rows == 0:
        return Batch([], batch[0].new_empty((0, *batch[0].shape)))
    dense = batch.as_tensor()[:rows] if batch.is_dense_tensor() else None
    return Batch(batch.samples[:rows], dense)


def filled(batch: Batch, rows: int) -> Batch:
    """The batch with its last sample repeated up to a number of rows."""
    missing = rows - len(batch)
    return Batch([*batch.samples, *[batch.samples[-1]] * missing]) if missing > 0 else batch
