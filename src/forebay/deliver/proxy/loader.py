"""A DataLoader that yields data in the place of references."""

from __future__ import annotations

import contextlib
import copy
import multiprocessing.connection
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch.utils.data

from forebay.deliver.proxy.client import Proxy
from forebay.deliver.proxy.failures import BadSample, OnError, detached, keep
from forebay.deliver.proxy.reference import note_index
from forebay.deliver.proxy.report import Meter, Report
from forebay.deliver.proxy.rows import NoGoodRowError
from forebay.deliver.proxy.server import Server
from forebay.errors import ArgumentError, WorkerDied
from forebay.execute.kept import forgetful


class DataLoader(torch.utils.data.DataLoader[Any]):
    """torch's DataLoader with a server: `for batch in loader` gives data, not references.

    It takes the server, then everything that torch's takes. It starts the server when iterated
    over, and tells the workers each batch's number and each sample's index. So random numbers do
    not depend on the number of workers, and errors name the sample.

    Raises:
        ArgumentError: the first argument is not a Server.
    """

    def __init__(
        self, dali_server: Server, dataset: torch.utils.data.Dataset[Any], *args: Any, **kwargs: Any
    ) -> None:
        if not isinstance(dali_server, Server):
            raise ArgumentError(
                f"the first argument of the proxy's DataLoader is the server, but got "
                f"{type(dali_server).__name__}"
            )
        self.server = dali_server
        self._epoch: list[int] = [0]
        self._meter = Meter()
        super().__init__(dataset, *args, **kwargs)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # torch names its own class
        self.server.start_thread()
        self._epoch[0] = self.server.begin_epoch()
        self._meter = self.server.measure_epoch()
        return _Producer(self.server, super().__iter__(), self._meter)

    def report(self) -> Report:
        """Where the time of this loader's last epoch went, and which stage limits."""
        return self._meter.report()

    def _get_iterator(self) -> Any:
        # torch's iterator reads the dataset and the batches of indices from the loader. It gets a
        # copy of the loader in which they carry the batch's number; the user's stays as it is.
        view = copy.copy(self)
        if not isinstance(self.dataset, torch.utils.data.IterableDataset):
            on_error = self.server.failures.on_error
            dataset = _Numbered(self.dataset, self.server.proxy, lenient=on_error != "raise")
            view.__dict__["dataset"] = dataset
            which = "batch_sampler" if self.batch_sampler is not None else "sampler"
            view.__dict__[which] = _Numbering(getattr(self, which), self._epoch)
            if on_error != "raise":
                collate = _Collating if self.batch_sampler is not None else _Converting
                view.__dict__["collate_fn"] = collate(self.collate_fn, on_error)
        return super(DataLoader, view)._get_iterator()


class _Producer:
    """An epoch: torch's iterator, with data in the place of references."""

    def __init__(self, server: Server, batches: Iterator[Any], meter: Meter) -> None:
        self._server = server
        self._meter = meter
        self._batches = batches

    def __iter__(self) -> _Producer:
        return self

    @forgetful
    def __next__(self) -> Any:
        while True:
            with contextlib.suppress(NoGoodRowError):  # such a batch is passed over
                return self._next()

    def _next(self) -> Any:
        self._meter.ask()
        try:
            batch = next(self._batches)
        except StopIteration:
            self._server.failures.warn()
            raise
        except (ConnectionError, EOFError) as error:
            # torch takes a tensor from the worker that made it, which may have died meanwhile. The
            # Dataset's own errors of these classes come here too, with all workers alive.
            death = self._death()
            if death is None:
                raise
            raise WorkerDied(death) from error
        if isinstance(batch, _Collated):
            self._server.failures.add(batch.bad)
            batch = batch.batch
            if batch is None:
                raise NoGoodRowError(None)
        return self._server.produce_batch(batch, self._meter)

    def _death(self) -> str | None:
        """Which worker has died of what; None if all live."""
        workers = getattr(self._batches, "_workers", ())
        # A process ends in steps: its connections, then what `wait` looks at, then itself.
        ended = multiprocessing.connection.wait([w.sentinel for w in workers], timeout=1)
        for worker in (w for w in workers if w.sentinel in ended):
            worker.join()
            code = worker.exitcode
            if code:
                how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
                return f"the DataLoader's worker process {worker.pid} died: {how}"
        return None

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]  # torch's iterators have a length


@dataclass(frozen=True)
class _Place:
    """Indices of a batch (or one index), with the batch's place."""

    epoch: int
    batch: int
    indices: Any


class _Numbering:
    """A sampler whose items carry their place. `epoch` holds the number of the loader's epoch."""

    def __init__(self, sampler: Any, epoch: list[int]) -> None:
        self._sampler = sampler
        self._epoch = epoch

    def __iter__(self) -> Iterator[_Place]:
        return self._places(self._epoch[0])

    def _places(self, epoch: int) -> Iterator[_Place]:
        # torch asks for an iterator more than once an epoch; the sampler is asked when one is used.
        for batch, indices in enumerate(self._sampler):
            yield _Place(epoch, batch, indices)

    def __len__(self) -> int:
        return len(self._sampler)


class _Numbered:
    """The user's map-style dataset, asked by place. It looks like the dataset from outside.

    Args:
        dataset: the user's.
        proxy: is told each sample's place.
        lenient: give a `BadSample` in the place of a sample that cannot be loaded.
    """

    def __init__(self, dataset: Any, proxy: Proxy, *, lenient: bool) -> None:
        self.__dict__.update(_dataset=dataset, _proxy=proxy, _lenient=lenient)

    def __getattr__(self, name: str) -> Any:
        if name in ("_dataset", "_proxy", "_lenient"):  # while it is being unpickled
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._dataset, name, value)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, place: _Place) -> Any:
        self._proxy.client.begin(place.epoch, place.batch)
        return self._one(self._dataset.__getitem__, place, place.indices, 0)

    def __getitems__(self, place: _Place) -> Sequence[Any]:
        self._proxy.client.begin(place.epoch, place.batch)
        one, several = self._dataset.__getitem__, getattr(self._dataset, "__getitems__", None)
        if several:
            with contextlib.suppress(*[Exception] if self._lenient else []):
                items: Sequence[Any] = several(place.indices)
                for index, item in zip(place.indices, items, strict=False):
                    note_index(item, index)
                return items
            self._proxy.client.begin(place.epoch, place.batch)
            one = partial(_one_of_several, several)
        return [self._one(one, place, index, row) for row, index in enumerate(place.indices)]

    def _one(self, load: Callable[[Any], Any], place: _Place, index: Any, row: int) -> Any:
        self._proxy.client.note_index(index)
        try:
            return load(index)
        except Exception as error:
            if not self._lenient:
                raise
            path = getattr(error, "filename", None)
            cause = detached(error)
            return BadSample(index, path, "dataset", cause, place.epoch, place.batch, row)


def _one_of_several(load: Callable[[Sequence[Any]], Sequence[Any]], index: Any) -> Any:
    return load([index])[0]


@dataclass(frozen=True)
class _Collating:
    """A collate function that leaves out, or replaces, the samples that could not be loaded."""

    collate: Callable[[Any], Any]
    on_error: OnError

    def __call__(self, samples: Sequence[Any]) -> _Collated:
        failed = [row for row, sample in enumerate(samples) if isinstance(sample, BadSample)]
        rows = keep(self.on_error, len(samples), failed)
        batch = self.collate([samples[row] for row in rows]) if rows else None
        return _Collated(batch, [samples[row] for row in failed])


class _Converting(_Collating):
    """The same for a loader that makes no batches: its batches are samples."""

    def __call__(self, sample: Any) -> _Collated:
        if isinstance(sample, BadSample):
            return _Collated(None, [sample])
        return _Collated(self.collate(sample), [])


class _Collated(NamedTuple):
    """A batch, None if nothing is left of it, and the samples that could not be loaded."""

    batch: Any
    bad: list[BadSample]
