"""What feeds a pipeline: the contract of readers and external sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from forebay.batch import Batch, Sample


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
    """Something that gives batch after batch. It is asked from one thread, in order.

    Attributes:
        seekable: any batch can be asked for: it follows `seek`, or goes by the request alone.
    """

    seekable = False

    @abstractmethod
    def read(self, request: Request) -> Sequence[Batch]:
        """The next batch of every output. Raises StopIteration at the end of the epoch."""

    @abstractmethod
    def reset(self) -> None:
        """Begin the next epoch."""

    def seek(self, batches: int) -> None:  # noqa: B027 - only sources that can be moved have it
        """Go on as if so many batches had been used since the beginning.

        It is called when batches that were read ahead have been dropped.
        """

    def align(self) -> None:  # noqa: B027 - only readers have epochs that end inside a batch
        """Have every epoch begin a batch, as iterators with exact epochs need it.

        A reader then gives batches as with `pad_last_batch`; the iterator knows which rows count.
        """

    def meta(self) -> ReaderMeta | None:
        """What is known of the data; None for a source that knows nothing."""
        return None


class DeferredSource(Source):
    """A source that only says, batch after batch, which samples there are.

    `read` gives one batch, of a ticket for each row. The pool loads the samples of the tickets, so
    that their reading overlaps, and one that cannot be read is a failure of its row alone.
    """

    @abstractmethod
    def load(self, ticket: Sample, **arguments: Any) -> tuple[Sample, ...]:
        """The sample of a ticket: a Sample for each output. Called from several threads at once.

        `arguments` are those that have a value per sample.

        Raises:
            SourceError: it cannot be read. The ticket's `source` then says where it is.
        """


class Loading:
    """`DeferredSource.load` in the form of a call of an operator."""

    uses_rng = False

    def __init__(
        self, source: DeferredSource, arguments: Mapping[str, Callable[[Sample], Any]]
    ) -> None:
        self._load = source.load
        self._arguments = arguments

    def run(self, inputs: Sequence[Any], values: Sequence[Any], *_: object) -> tuple[Sample, ...]:
        """The outputs for the ticket, the only input. `values` has a sample for each argument."""
        read = zip(self._arguments.items(), values, strict=True)
        return self._load(inputs[0], **{name: value(sample) for (name, value), sample in read})


class ReaderMeta(TypedDict):
    """What `Pipeline.reader_meta` tells of a reader, in DALI's words.

    Attributes:
        epoch_size: the number of samples in the whole data.
        epoch_size_padded: the same; with `pad_last_batch` all shards count as the largest.
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
