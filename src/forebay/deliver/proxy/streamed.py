"""An IterableDataset whose batches know their place, on its way through torch's loader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from torch.utils.data import get_worker_info

from forebay.deliver.proxy.client import Fetch, Proxy
from forebay.deliver.proxy.worker_errors import Told, prepare


class Course:
    """Where a stream is in this process. Worker w of n has the batches w, w + n, … of an epoch.

    Args:
        proxy: is told each batch's place.
        name: of the stream; its epochs are called by `epoch_token`.
    """

    def __init__(self, proxy: Proxy, name: str) -> None:
        self._proxy = proxy
        self._name = name
        self._loops = self._batches = self._samples = 0
        self._fetch: Fetch | None = None

    def begin(self) -> None:
        """An epoch begins."""
        self._loops += 1
        self._batches = 0
        self._fetch = None

    def making(self) -> AbstractContextManager[Fetch]:
        """The next sample is made."""
        client = self._proxy.client
        if self._fetch is None:
            worker = get_worker_info()
            own, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
            token = epoch_token(self._name, self._loops - 1)
            self._fetch = client.begin(token, self._batches * workers + own)
            self._samples = 0
        self._fetch.sample = None, self._samples
        self._samples += 1
        return client.making(self._fetch)

    def end_batch(self) -> None:
        """Its samples were collated."""
        self._batches += 1
        self._fetch = None


def epoch_token(stream: str, loop: int) -> str:
    """What workers call the epoch of a stream's loop; loops count from 0."""
    return f"{stream}/{loop}"


class Streamed:
    """The user's IterableDataset, whose errors arrive. It looks like the dataset from outside."""

    def __init__(self, dataset: Any, course: Course) -> None:
        self.__dict__.update(_dataset=dataset, _course=course)

    def __getattr__(self, name: str) -> Any:
        if name in ("_dataset", "_course"):  # while it is being unpickled
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._dataset, name, value)

    def __iter__(self) -> Iterator[Any]:
        self._course.begin()
        return _Items(Told(iter)(self._dataset), self._course)


class _Items:
    """No generator: the dataset's own iterator may go on after an error."""

    def __init__(self, items: Iterator[Any], course: Course) -> None:
        self._items = items
        self._course = course

    def __iter__(self) -> _Items:
        return self

    def __next__(self) -> Any:
        with self._course.making():
            try:
                return next(self._items)
            except StopIteration:
                raise
            except Exception as error:
                prepare(error)
                raise


@dataclass(frozen=True)
class Ending:
    """A collate function that ends a stream's batch."""

    collate: Callable[[Any], Any]
    course: Course

    def __call__(self, samples: Any) -> Any:
        try:
            return self.collate(samples)
        finally:
            self.course.end_batch()
