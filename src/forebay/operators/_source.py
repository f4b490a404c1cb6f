"""What feeds a pipeline: the contract of readers and external sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from forebay.batch import Batch


@dataclass(frozen=True)
class Request:
    """Which batch is wanted.

    Attributes:
        batch_size: the pipeline's maximum; fewer samples may be given.
        iteration: number of the batch within the epoch, from 0.
        epoch: number of the epoch, from 0.
    """

    batch_size: int
    iteration: int
    epoch: int


class Source(ABC):
    """Something that gives batch after batch. It is asked from one thread, in order."""

    @abstractmethod
    def read(self, request: Request) -> Sequence[Batch]:
        """The next batch of every output. Raises StopIteration at the end of the epoch."""

    @abstractmethod
    def reset(self) -> None:
        """Begin the next epoch."""
