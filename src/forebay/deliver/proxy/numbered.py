"""Samples and batches of a DataLoader that know their place, on their way through torch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from forebay.deliver.proxy.client import Client, Fetch, Proxy
from forebay.deliver.proxy.failures import BadSample, OnError, detached, keep
from forebay.deliver.proxy.reference import note_samples
from forebay.deliver.proxy.state import Epoch
from forebay.deliver.proxy.worker_errors import prepare


@dataclass(frozen=True)
class Place:
    """Indices of a batch (or one index), with the batch's place."""

    epoch: int
    batch: int
    indices: Any


class Numbering:
    """A sampler whose items carry their place. `epoch` holds the epoch that was begun last."""

    def __init__(self, sampler: Any, epoch: list[Epoch]) -> None:
        self._sampler = sampler
        self._epoch = epoch

    def __iter__(self) -> Iterator[Place]:
        return self._places(self._epoch[0])

    def _places(self, epoch: Epoch) -> Iterator[Place]:
        # torch asks for an iterator more than once an epoch; the sampler is asked when one is used.
        for batch, indices in epoch.batches():
            yield Place(epoch.number, batch, indices)

    def __len__(self) -> int:
        return len(self._sampler)


class Numbered:
    """The user's map-style dataset, asked by place. It looks like the dataset from outside.

    Args:
        dataset: the user's.
        proxy: is told each sample's place.
        lenient: give a `BadSample` in the place of a sample that cannot be loaded, or is None.
    """

    def __init__(self, dataset: Any, proxy: Proxy, *, lenient: bool) -> None:
        self.__dict__.update(_dataset=dataset, _proxy=proxy, _lenient=lenient, _place=None)

    def __getattr__(self, name: str) -> Any:
        if name in ("_dataset", "_proxy", "_lenient", "_place"):  # while it is being unpickled
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._dataset, name, value)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, place: Place) -> Any:
        with self._making(place) as fetch:
            return self._one(self._dataset.__getitem__, fetch, place, place.indices, 0)

    def __getitems__(self, place: Place) -> Sequence[Any]:
        self.__dict__["_place"] = place
        one, several = self._dataset.__getitem__, getattr(self._dataset, "__getitems__", None)
        if several:
            try:
                with self._making(place):
                    items: Sequence[Any] = several(place.indices)
            except Exception as error:
                if not self._lenient:
                    prepare(error, f"dataset indices {place.indices}")
                    raise
            else:
                note_samples(items, place.indices)
                return _marked(items, place) if self._lenient else items
            one = partial(_one_of_several, several)
        with self._making(place) as fetch:
            return [
                self._one(one, fetch, place, index, row) for row, index in enumerate(place.indices)
            ]

    def _making(self, place: Place) -> AbstractContextManager[Fetch]:
        client: Client = self._proxy.client
        return client.making(client.begin(place.epoch, place.batch))

    def _one(
        self, load: Callable[[Any], Any], fetch: Fetch, place: Place, index: Any, row: int
    ) -> Any:
        fetch.sample = index, row
        try:
            item = load(index)
        except Exception as error:
            if not self._lenient:
                prepare(error, f"dataset index {index}")
                raise
            return _bad(error, place, index, row)
        return _bad_none(place, index, row) if item is None and self._lenient else item

    def nones(self, items: Sequence[Any]) -> str | None:
        """What to say of the last batch's items, if some of them are None."""
        place: Place | None = self._place
        if place is None:
            return None
        pairs = zip(place.indices, items, strict=False)
        found = ", ".join(str(index) for index, item in pairs if item is None)
        return f"the Dataset returned None at dataset index {found}" if found else None


def _marked(items: Sequence[Any], place: Place) -> Sequence[Any]:
    """The items of a batch with a `BadSample` in the place of each None."""
    marked = list(items)
    for row, (index, item) in enumerate(zip(place.indices, items, strict=False)):
        if item is None:
            marked[row] = _bad_none(place, index, row)
    return marked


def _bad_none(place: Place, index: Any, row: int) -> BadSample:
    return _bad(TypeError("the Dataset returned None"), place, index, row)


def _bad(error: Exception, place: Place, index: Any, row: int) -> BadSample:
    path = getattr(error, "filename", None)
    return BadSample(index, path, "dataset", detached(error), place.epoch, place.batch, row)


def _one_of_several(load: Callable[[Sequence[Any]], Sequence[Any]], index: Any) -> Any:
    return load([index])[0]


@dataclass(frozen=True)
class Naming:
    """The user's collate function, whose errors arrive and name the samples that are None."""

    collate: Callable[[Any], Any]
    dataset: Numbered

    def __call__(self, samples: Any) -> Any:
        try:
            return self.collate(samples)
        except Exception as error:
            prepare(error, self.dataset.nones(samples))
            raise


@dataclass(frozen=True)
class Collating:
    """A collate function that leaves out, or replaces, the samples that could not be loaded."""

    collate: Callable[[Any], Any]
    on_error: OnError

    def __call__(self, samples: Sequence[Any]) -> Collated:
        failed = [row for row, sample in enumerate(samples) if isinstance(sample, BadSample)]
        rows = keep(self.on_error, len(samples), failed)
        batch = self.collate([samples[row] for row in rows]) if rows else None
        return Collated(batch, [samples[row] for row in failed])


class Converting(Collating):
    """The same for a loader that makes no batches: its batches are samples."""

    def __call__(self, sample: Any) -> Collated:
        if isinstance(sample, BadSample):
            return Collated(None, [sample])
        return Collated(self.collate(sample), [])


class Collated(NamedTuple):
    """A batch, None if nothing is left of it, and the samples that could not be loaded."""

    batch: Any
    bad: list[BadSample]
