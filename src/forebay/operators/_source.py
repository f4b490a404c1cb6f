"""What feeds a pipeline: the contract of readers and external sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from forebay.batch import Batch


@dataclass(frozen=True)
class Request:
    """Which batch is wanted.

    Attributes:
        batch_size: the pipeline's maximum; fewer samples may be given.
        iteration: number of the batch within the epoch, from 0.
        epoch: number of the epoch, from 0.
        key: of the source's random numbers; see `Rng`.
    """

    batch_size: int
    iteration: int
    epoch: int
    key: int = 0


class Source(ABC):
    """Something that gives batch after batch. It is asked from one thread, in order."""

    @abstractmethod
    def read(self, request: Request) -> Sequence[Batch]:
        """The next batch of every output. Raises StopIteration at the end of the epoch."""

    @abstractmethod
    def reset(self) -> None:
        """Begin the next epoch."""

    def meta(self) -> ReaderMeta | None:
        """What is known of the data; None for a source that knows nothing."""
        return None


class ReaderMeta(TypedDict):
    """What `Pipeline.reader_meta` tells of a reader, in DALI's words.

    Attributes:
        epoch_size: the number of samples in the whole data.
        epoch_size_padded: the same, when every shard is padded to the largest.
        number_of_shards: into how many the data is cut.
        shard_id: which one this reader begins with.
        pad_last_batch: 1 if the last batch is filled up.
        stick_to_shard: 1 if the reader stays with its shard; else it goes to the next one.
    """

    epoch_size: int
    epoch_size_padded: int
    number_of_shards: int
    shard_id: int
    pad_last_batch: int
    stick_to_shard: int
