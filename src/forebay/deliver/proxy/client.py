"""The proxy in the hands of a Dataset: it keeps inputs, gives references, sends whole batches."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch.utils.data

from forebay.batch import Sample
from forebay.define.form import Form, copied
from forebay.deliver.proxy import protocol
from forebay.deliver.proxy.arena import Arena, Array
from forebay.deliver.proxy.protocol import Hello, Submit
from forebay.deliver.proxy.reference import Call, Part, SampleRef, Ticket
from forebay.deliver.proxy.transport import HAS_SEGMENTS, Address, Disconnected, connect
from forebay.errors import RequestRefused, ServerStopped, SourceError

Outbox = Callable[[Submit, "list[list[Sample]]"], Part]
"""How a part leaves: gets the message without number and data, and the samples of each input."""


class Fetch:
    """The calls that were made for one batch: by the thread that makes it, and by those that help.

    A batch ends when its first references are collated or sent; the call after that begins another.

    Attributes:
        client: whose it is.
        epoch, batch: where the batch lies; see `Submit`.
        sample: index in the dataset, and number in the batch, of the sample that is being made;
            None where it is not known.
    """

    def __init__(self, client: Client, epoch: int | str, batch: int, *, told: bool) -> None:
        self.epoch = epoch
        self.batch = batch
        self.sample: tuple[Any, int | None] = None, None
        self.ended = False
        self.client = client
        self._rows = itertools.count()
        self._waiting: list[weakref.ref[Call]] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._begun = perf_counter()
        self._told = told

    def begun(self, now: float) -> float:
        """When the work that is done now began.

        If only the first call told of it, what came before is taken to be as long as what came
        before each other call.
        """
        calls = len(self._waiting)
        unseen = 0.0 if self._told or calls == 1 else (now - self._begun) / (calls - 1)
        return self._begun - unseen

    def begin_next(self) -> None:
        """The work that the next message tells of begins."""
        self._begun = perf_counter()
        self._told = True

    def add(self, inputs: Sequence[Sample]) -> Call:
        call = Call(inputs, self, next(self._rows), self.sample)
        with self._lock:
            self._waiting.append(weakref.ref(call))
        return call

    def send(self, calls: Sequence[Call]) -> None:
        """Send those of these calls that were not sent yet, in this order."""
        if os.getpid() != self._pid:
            raise RequestRefused(
                f"the proxy was called in process {self._pid} before this one was forked from it: "
                f"call it where its references are collated"
            )
        with self._lock:
            self.ended = True
            unsent = list(dict.fromkeys(call for call in calls if call.part is None))
            if unsent:
                self.client.send(self, unsent)

    def send_waiting(self) -> None:
        """Send all calls whose references are still alive, those that can go together together."""
        kinds: dict[Any, list[Call]] = {}
        for call in [ref() for ref in self._waiting]:
            inputs = None if call is None else call.inputs
            if call is not None and inputs is not None:
                kind = tuple((sample.array.dtype, sample.ndim) for sample in inputs)
                kinds.setdefault(kind, []).append(call)
        for calls in kinds.values():
            self.send(calls)
        self.ended = True


class Client:
    """One process's side of the proxy.

    Args:
        server: the server's name.
        names: of the pipeline's inputs.
        limit: the most rows of a part: the pipeline's batch size.
        outbox: how parts leave.
        copy: makes the C-contiguous copies of inputs.
    """

    def __init__(
        self,
        server: str,
        names: Sequence[str],
        limit: int,
        outbox: Outbox,
        copy: Callable[[Array], Array] = copied,
    ) -> None:
        self.server = server
        self._names = names
        self._limit = limit
        self._outbox = outbox
        self.copy = copy
        self._batches = itertools.count()
        self._local = threading.local()
        self._making: list[Fetch] = []

    def fetch(self) -> Fetch:
        """The batch that this thread is making, or helps a loader to make; else a new one."""
        current: Fetch | None = getattr(self._local, "fetch", None)
        if current is not None and not current.ended:
            return current
        for fetch in reversed(self._making):
            return fetch
        return self.begin(*self._next_place(), told=False)

    def begin(self, epoch: int | str, batch: int, *, told: bool = True) -> Fetch:
        """Begin a batch whose place is known. `told`: before any work was done on it."""
        self._local.fetch = Fetch(self, epoch, batch, told=told)
        return self._local.fetch  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def making(self, fetch: Fetch) -> Iterator[Fetch]:
        """A loader makes this batch, or goes on with it: calls of all idle threads are for it."""
        self._local.fetch = fetch
        self._making.append(fetch)
        try:
            yield fetch
        finally:
            self._making.remove(fetch)

    def _next_place(self) -> tuple[int | str, int]:
        """In a DataLoader's worker, torch's order: worker w of n has the batches w, w + n, …"""
        number = next(self._batches)
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            return 0, number
        return f"{worker.seed - worker.id:x}", number * worker.num_workers + worker.id

    def call(self, inputs: Sequence[Sample]) -> Call:
        return self.fetch().add(inputs)

    def send(self, fetch: Fetch, calls: Sequence[Call]) -> None:
        """Send calls as parts of at most the pipeline's batch size."""
        for begin in range(0, len(calls), self._limit):
            sent = perf_counter()
            group = calls[begin : begin + self._limit]
            columns: list[list[Sample]] = [[] for _ in self._names]
            for call in group:
                assert call.inputs is not None
                for column, sample in zip(columns, call.inputs, strict=True):
                    column.append(sample)
            message = Submit(
                number=0,
                epoch=fetch.epoch,
                batch=fetch.batch,
                rows=[call.row for call in group],
                indices=[call.sample[0] for call in group],
                samples=[call.sample[1] for call in group],
                columns=[
                    protocol.describe(name, column)
                    for name, column in zip(self._names, columns, strict=True)
                ],
                data=None,
                begun=fetch.begun(sent),
                sent=sent,
            )
            part = self._outbox(message, columns)
            for position, call in enumerate(group):
                call.part, call.position, call.inputs = part, position, None
            fetch.begin_next()


class RemoteOutbox:
    """Sends parts to the server of another process. Connects when first used."""

    def __init__(self, server: str, address: Address, key: bytes) -> None:
        self._server = server
        self._address = address
        self._key = key
        self._line: _Line | None = None
        self._lock = threading.Lock()

    def __call__(self, message: Submit, columns: list[list[Sample]]) -> Part:
        with self._lock:
            try:
                try:
                    return self._send(message, columns)
                except Disconnected:  # a server that was stopped may have started again
                    return self._send(message, columns)
            except Disconnected as error:
                raise ServerStopped(f"the proxy's server is gone: {error}") from None

    def copy(self, array: Array) -> Array:
        """A copy of an input, which lies where the server will read it if there is room."""
        line = self._line
        return copied(array) if line is None else line.arena.copy(array)

    def _send(self, message: Submit, columns: list[list[Sample]]) -> Part:
        if self._line is None:
            self._line = _Line(self._address, self._key)
        try:
            number = self._line.send(message, columns)
        except Disconnected:
            self._line.connection.close()
            self._line = None
            raise
        return Part(Ticket(self._server, self._line.name, number))


class _Line:
    """A connection to the server, and the memory that is shared over it."""

    def __init__(self, address: Address, key: bytes) -> None:
        self.name = secrets.token_hex(8)
        self.connection = connect(address)
        self.arena = Arena()
        self._numbers = itertools.count()
        loader = torch.utils.data.get_worker_info() is not None
        hello = Hello(key, self.name, os.getpid(), loader)
        self.connection.send(protocol.encode_hello(hello))

    def send(self, message: Submit, columns: list[list[Sample]]) -> int:
        """Add the number and the data to the message, and send it. Raises Disconnected.

        Returns:
            The part's number.
        """
        message = message._replace(number=next(self._numbers))
        size = sum(column.size for column in message.columns)
        if size < protocol.SMALL or not HAS_SEGMENTS:
            data = np.zeros(size, np.uint8)
            protocol.write(columns, data)
            self.connection.send(protocol.encode(message._replace(data=data.tobytes())))
            return message.number
        placed = self.arena.place(columns, message.columns)
        fd = placed.descriptor
        try:
            placed.segment.mark()
            message = message._replace(
                columns=placed.columns,
                segment=placed.number,
                size=None if fd is None else placed.segment.size,
                dropped=placed.dropped,
            )
            self.connection.send(protocol.encode(message), () if fd is None else (fd,))
        finally:
            if fd is not None:
                os.close(fd)
        return message.number


clients: dict[str, tuple[int, Client]] = {}
"""Server name → process and client. A forked process finds its parent's and makes its own."""

_making = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: globals().update(_making=threading.Lock()))


class Proxy:
    """A callable that hands a sample to the pipeline and gives references to its outputs.

    It can be pickled, and used in any process and thread. Its parameters are the names of the
    pipeline's external sources, positional or by keyword, in the order of their definition.

    Inputs are arrays, tensors, numbers, lists of numbers, pictures of Pillow's (height x width x
    channels), bytes (taken as uint8), or paths and strings (their UTF-8 bytes as uint8, as
    `fn.io.file.read` takes them). They are copied, unless
    the external source says `no_copy` or they lie in `bytes`, which nobody can change.

    Returns:
        A reference for one output; a tuple of references for several.

    Raises:
        ValueError: missing, unknown or too many arguments, or data that cannot be used.
    """

    def __init__(
        self,
        server: str,
        address: Address,
        key: bytes,
        inputs: dict[str, tuple[Form, bool]],
        outputs: int,
        limit: int,
    ) -> None:
        self._server = server
        self._address = address
        self._key = key
        self._inputs = inputs
        self._outputs = outputs
        self._limit = limit
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(name, kind) for name in inputs if name.isidentifier()],
            return_annotation=SampleRef if outputs == 1 else (SampleRef,) * outputs,
        )
        # Calls take the class's method; who looks at the object's sees the inputs in its signature.
        seen = vars(self)["__call__"] = partial(type(self).__call__, self)
        seen.__signature__ = self.__signature__  # type: ignore[attr-defined]  # as inspect has it

    @property
    def client(self) -> Client:
        """This process's client, made when first asked for."""
        pid, client = clients.get(self._server, (None, None))
        if client is None or pid != os.getpid():
            with _making:
                pid, client = clients.get(self._server, (None, None))
                if client is None or pid != os.getpid():
                    outbox = RemoteOutbox(self._server, self._address, self._key)
                    client = Client(
                        self._server, list(self._inputs), self._limit, outbox, outbox.copy
                    )
                    clients[self._server] = os.getpid(), client
        return client

    def __call__(self, *args: Any, **kwargs: Any) -> SampleRef | tuple[SampleRef, ...]:
        values = self._bind(args, kwargs)
        client = self.client
        samples = []
        for (name, (form, no_copy)), value in zip(self._inputs.items(), values, strict=True):
            try:
                samples.append(form.sample(value, None if no_copy else client.copy))
            except (SourceError, TypeError) as error:  # TypeError: torch types that numpy lacks
                raise RequestRefused(f"input '{name}' of the proxy: {error}") from None
        call = client.call(samples)
        if self._outputs == 1:
            return SampleRef(call, 0)
        return tuple(SampleRef(call, output) for output in range(self._outputs))

    def _bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
        if not kwargs and len(args) == len(self._inputs):
            return args
        names = list(self._inputs)
        given = dict(zip(names, args, strict=False))
        errors = ["too many positional arguments"] if len(args) > len(names) else []
        errors += [
            f"multiple values for argument '{name}'"
            for name in names
            if name in kwargs and name in given
        ]
        given |= kwargs
        errors += [
            f"got an unexpected keyword argument '{name}'" for name in given if name not in names
        ]
        errors += [f"missing a required argument: '{name}'" for name in names if name not in given]
        if errors:
            expected = f"proxy({', '.join(names)})"
            raise RequestRefused(f"Expected signature is: {expected}, error: {errors[0]}")
        return [given[name] for name in names]

    def __repr__(self) -> str:
        return f"<proxy({', '.join(self._inputs)})>"
