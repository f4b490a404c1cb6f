"""A DataLoader that yields data in the place of references."""

from __future__ import annotations

import contextlib
import copy
import itertools
import secrets
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import torch.utils.data

from forebay.deliver.proxy.foreign import Delivering, plain
from forebay.deliver.proxy.numbered import (
    Collated,
    Collating,
    Converting,
    Naming,
    Numbered,
    Numbering,
)
from forebay.deliver.proxy.recorded import Reference, leaves
from forebay.deliver.proxy.report import Meter, Report
from forebay.deliver.proxy.rows import NoGoodRowError
from forebay.deliver.proxy.server import Server, servers
from forebay.deliver.proxy.state import Epoch, Resumable, length_of
from forebay.deliver.proxy.streamed import Course, Ending, Streamed, epoch_token
from forebay.deliver.proxy.structure import find
from forebay.deliver.proxy.unshared import unshared
from forebay.deliver.proxy.worker_errors import Told
from forebay.deliver.proxy.workers import Watch, let_go_on
from forebay.errors import ArgumentError, ProxyError
from forebay.execute.kept import forgetful


class DataLoader(Resumable):
    """torch's DataLoader with a server: `for batch in loader` gives data, not references.

    It takes the server, then everything that torch's takes. It starts the server when iterated
    over, and tells the workers each batch's number and each sample's index. So random numbers do
    not depend on the number of workers (of an IterableDataset: on that alone), and errors name the
    sample. `state_dict` and `load_state_dict` go on in the middle of an epoch.

    Raises:
        ArgumentError: the first argument is not a Server, or there is no dataset.
    """

    def __init__(
        self,
        dali_server: Server,
        dataset: torch.utils.data.Dataset[Any] = None,  # type: ignore[assignment]  # see below
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # Who forgets the server gives the dataset in its place: then that is what is missing.
        if not isinstance(dali_server, Server):
            raise ArgumentError(
                f"the first argument of the proxy's DataLoader is the server, but got "
                f"{type(dali_server).__name__}: proxy.DataLoader(server, dataset, ...)"
            )
        if dataset is None:
            raise ArgumentError("the proxy's DataLoader has a server, but no dataset")
        self.dali_server = dali_server
        self._meter = Meter()
        super().__init__(dataset, *args, **kwargs)
        self.collate_fn = Delivering(plain(self.collate_fn), dali_server.proxy.client.server)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # torch names its own class
        self.dali_server.start_thread()
        epoch = self._begin()
        self._name_epoch(epoch.number)
        self._meter = self.dali_server.deliveries.meters.begin(persistent=self.persistent_workers)
        return _Producer(self.dali_server, super().__iter__(), self._meter, epoch, self.timeout)

    def _name_epoch(self, number: int) -> None:
        """Persistent workers of a stream are not told an epoch's number: they count their loops."""
        if self._iterator is None:
            self._stream = secrets.token_hex(8)
            self._loops = itertools.count()
        token = epoch_token(self._stream, next(self._loops))
        self.dali_server.deliveries.desk.name_epoch(token, number)

    def report(self) -> Report:
        """Where the time of this loader's last epoch went, and which stage limits."""
        return self._meter.report()

    def __repr__(self) -> str:
        size = length_of(self.dataset)
        dataset = type(self.dataset).__name__ + ("" if size is None else f" of {size}")
        batches = f"batch_size={self.batch_size}"
        if self.batch_size is None and self.batch_sampler is not None:
            batches = f"batch_sampler={type(self.batch_sampler).__name__}"
        return (
            f"<proxy.DataLoader dataset={dataset} {batches} num_workers={self.num_workers} "
            f"server={self.dali_server!r}>"
        )

    def _get_iterator(self) -> Any:
        # torch's iterator reads the dataset and the batches of indices from the loader. It gets a
        # copy of the loader in which they carry the batch's number; the user's stays as it is.
        view = copy.copy(self)
        view.collate_fn = Told(plain(self.collate_fn))
        view.worker_init_fn = None if self.worker_init_fn is None else Told(self.worker_init_fn)
        view.generator = self._worker_seeds()
        if isinstance(self.dataset, torch.utils.data.IterableDataset):
            if not isinstance(self.dataset, torch.utils.data.IterDataPipe):  # torch asks for those
                course = Course(self.dali_server.proxy, self._stream)
                view.__dict__["dataset"] = Streamed(self.dataset, course)
                view.collate_fn = Ending(view.collate_fn, course)
        else:
            on_error = self.dali_server.deliveries.failures.on_error
            dataset = Numbered(self.dataset, self.dali_server.proxy, lenient=on_error != "raise")
            view.__dict__["dataset"] = dataset
            which = "batch_sampler" if self.batch_sampler is not None else "sampler"
            view.__dict__[which] = Numbering(getattr(self, which), self._epoch)
            view.__dict__["collate_fn"] = Naming(plain(self.collate_fn), dataset)
            if on_error != "raise":
                collate = Collating if self.batch_sampler is not None else Converting
                view.__dict__["collate_fn"] = collate(view.collate_fn, on_error)
        return super(DataLoader, view)._get_iterator()


class _Producer:
    """An epoch: torch's iterator, with data in the place of references.

    Args:
        server: has the data.
        batches: torch's iterator.
        meter: is told when batches are asked for.
        epoch: is told how many batches are behind the loop.
        timeout: seconds that a batch's data is waited for; 0 is for ever, as in torch.
    """

    def __init__(
        self,
        server: Server,
        batches: Iterator[Any],
        meter: Meter,
        epoch: Epoch,
        timeout: float,
    ) -> None:
        self._server = server  # which ends when nobody has it
        self._deliveries = server.deliveries
        self._timeout = timeout
        self._late: list[Any] = []  # the batch that was waited for in vain
        self._meter = meter
        self._batches = batches
        self._workers = getattr(batches, "_workers", ())
        weakref.finalize(self, let_go_on, self._workers).atexit = False
        self._epoch = epoch
        self._asked = 0
        self._unsure = True  # until there is a batch with references

    def __iter__(self) -> _Producer:
        return self

    @forgetful
    def __next__(self) -> Any:
        while True:
            with contextlib.suppress(NoGoodRowError):  # such a batch is passed over
                return self._next()

    def _next(self) -> Any:
        self._meter.ask()
        batch = self._late.pop() if self._late else self._take()
        if self._timeout:
            try:
                self._deliveries.wait(batch, self._timeout)
            except TimeoutError:
                self._late.append(batch)
                raise ProxyError(
                    f"DataLoader timed out after {self._timeout} seconds: the workers have sent "
                    f"the batch, but the pipeline's outputs for it did not come. The next "
                    f"next() waits for it again"
                ) from None
        if self._unsure:
            self._look_for_other_servers(batch)
        produced = self._deliveries.produce(batch, self._meter)
        # Batches that raised or were passed over are behind the loop too, prefetched ones are not.
        # Without workers torch takes a batch whenever it is asked.
        self._epoch.advance(self._epoch.first + getattr(self._batches, "_rcvd_idx", self._asked))
        return produced

    def _take(self) -> Any:
        """The next batch with its references."""
        self._asked += 1
        watch = Watch(self._workers, self._timeout)
        try:
            with watch:
                batch = next(self._batches)
        except StopIteration:
            self._epoch.end()
            self._deliveries.failures.warn()
            raise
        except (ConnectionError, EOFError, RuntimeError) as error:
            meant = watch.explained(error)
            if meant is None:
                raise
            raise meant from error
        if self._workers:
            batch = unshared(batch)
        if isinstance(batch, Collated):
            self._deliveries.failures.add(batch.bad)
            batch = batch.batch
            if batch is None:
                raise NoGoodRowError(None)
        return batch

    def _look_for_other_servers(self, batch: Any) -> None:
        """Warn if a batch has references, and all are of other servers."""
        found = [leaf for ref in find(batch, Reference) for leaf in leaves(ref)]
        self._unsure = not found
        if found and not any(map(self._deliveries.owns, found)):
            others = dict.fromkeys(ref.server for ref in found)
            named = " and ".join(
                repr(servers.get(name, "a server that is gone")) for name in others
            )
            warnings.warn(
                f"the batch has no reference of the loader's own server, {self._server!r}, but "
                f"some of {named}, which stay as they are. Give the Dataset the proxy of the "
                f"loader's server, or the batch to the other server's produce_data",
                stacklevel=5,  # __next__ is wrapped
            )

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]  # torch's iterators have a length
