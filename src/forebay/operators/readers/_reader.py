"""What all readers do: say which samples a batch has, and load them one by one, in the pool."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from forebay.batch import Batch, Sample
from forebay.errors import SourceError
from forebay.operators._source import DeferredSource, ReaderMeta, Request
from forebay.operators.readers._shard import Order, Sharding


class Reader(DeferredSource):
    """A source of samples that are found by their index.

    A subclass says how many there are, and loads one.

    Args:
        size: number of samples in the whole data.
        sharding: the arguments that all readers share.
        scatter: whether `random_shuffle` also shuffles the data before it is cut into shards.

    Raises:
        ValueError: there are fewer samples than shards.
    """

    seekable = True

    def __init__(self, size: int, sharding: Sharding, *, scatter: bool = False) -> None:
        if size < sharding.num_shards:
            raise ValueError(
                f"the number of samples, {size}, must be at least num_shards, {sharding.num_shards}"
            )
        self._size = size
        self._sharding = sharding
        self._order_as = sharding
        self._scatter = scatter
        self._order: Order | None = None
        self._next = 0

    @abstractmethod
    def sample(self, index: int) -> tuple[Sample, ...]:
        """Load one sample: a Sample for each output. Called from several threads at once.

        Raises:
            OSError, ValueError: it cannot be read. The text need not name the file.
        """

    def sample_with(self, index: int, arguments: Mapping[str, Any]) -> tuple[Sample, ...]:
        """The same for readers with arguments that have a value per sample, if some were given."""
        raise AssertionError(f"nothing here takes {list(arguments)} per sample")

    def name(self, index: int) -> str:
        """Where a sample comes from, for errors: a path, with an offset where files hold many."""
        return f"sample {index}"

    def read(self, request: Request) -> Sequence[Batch]:
        """The index of each sample of the next batch."""
        if self._order is None:
            self._order = Order(
                self._size, self._order_as, request.batch_size, request.key, scatter=self._scatter
            )
        indices = self._order.batch(self._next)
        self._next += 1
        return [Batch([Sample(indices[row, ...]) for row in range(len(indices))])]

    def load(self, ticket: Sample, **arguments: Any) -> tuple[Sample, ...]:
        """The sample whose index `read` gave. Raises SourceError if it cannot be read."""
        index = int(ticket.array)
        try:
            return self.sample_with(index, arguments) if arguments else self.sample(index)
        except (OSError, ValueError) as error:
            ticket.source = self.name(index)
            text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise SourceError(f"cannot read {ticket.source}: {text}") from error

    def reset(self) -> None:
        """A reader goes on where it is, as in DALI: its epochs are not the pipeline's."""

    def seek(self, batches: int) -> None:
        """Go on as if so many batches had been read since the beginning."""
        self._next = batches

    def align(self) -> None:
        """Have every epoch begin a batch, as with `pad_last_batch`."""
        self._order_as = dataclasses.replace(self._sharding, pad_last_batch=True)
        self._order = None

    def meta(self) -> ReaderMeta:
        """What is known of the data. The sizes are those of all shards together."""
        sharding = self._sharding
        shards = sharding.num_shards
        padded = -(-self._size // shards) * shards
        return ReaderMeta(
            epoch_size=self._size,
            epoch_size_padded=padded if sharding.pad_last_batch else self._size,
            number_of_shards=shards,
            shard_id=sharding.shard_id,
            pad_last_batch=int(sharding.pad_last_batch),
            stick_to_shard=int(sharding.stays),
        )
