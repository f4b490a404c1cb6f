"""The proxy in the hands of a Dataset: it keeps inputs, gives references, sends whole batches."""

from __future__ import annotations

import inspect
import itertools
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import torch.utils.data

from forebay.batch import Sample
from forebay.define.form import Form
from forebay.deliver.proxy import protocol
from forebay.deliver.proxy.protocol import Hello, Submit
from forebay.deliver.proxy.reference import Call, Part, SampleRef, Ticket
from forebay.deliver.proxy.transport import HAS_SEGMENTS, Address, Disconnected, Segment, connect
from forebay.errors import RequestRefused, ServerStopped, SourceError

Outbox = Callable[[Submit, "list[list[Sample]]"], Part]
"""How a part leaves: gets the message without number and data, and the samples of each input."""


class Fetch:
    """The calls that one thread has made for the batch that it is making.

    A batch ends when its first references are collated or sent; the call after that begins another.

    Attributes:
        client: whose it is.
        epoch, batch: where the batch lies; see `Submit`.
    """

    def __init__(self, client: Client, epoch: int | str, batch: int, *, told: bool) -> None:
        self.epoch = epoch
        self.batch = batch
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

    def add(self, inputs: Sequence[Sample], index: Any) -> Call:
        call = Call(inputs, self, next(self._rows), index)
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
    """

    def __init__(self, server: str, names: Sequence[str], limit: int, outbox: Outbox) -> None:
        self.server = server
        self._names = names
        self._limit = limit
        self._outbox = outbox
        self._batches = itertools.count()
        self._local = threading.local()

    def fetch(self) -> Fetch:
        """The batch that this thread is making; a new one if the last one has ended."""
        current: Fetch | None = getattr(self._local, "fetch", None)
        if current is None or current.ended:
            return self.begin(*self._next_place(), told=False)
        return current

    def begin(self, epoch: int | str, batch: int, *, told: bool = True) -> Fetch:
        """Begin a batch whose place is known. `told`: before any work was done on it."""
        self._local.fetch = Fetch(self, epoch, batch, told=told)
        self._local.index = None
        return self._local.fetch  # type: ignore[no-any-return]

    def _next_place(self) -> tuple[int | str, int]:
        """In a DataLoader's worker, torch's order: worker w of n has the batches w, w + n, …"""
        number = next(self._batches)
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            return 0, number
        return f"{worker.seed - worker.id:x}", number * worker.num_workers + worker.id

    def note_index(self, index: Any) -> None:
        """Say to which sample of the dataset this thread's next calls belong."""
        self._local.index = index

    def call(self, inputs: Sequence[Sample]) -> Call:
        return self.fetch().add(inputs, getattr(self._local, "index", None))

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
                indices=[call.dataset_index for call in group],
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
    """A connection to the server, and the segments that it knows."""

    def __init__(self, address: Address, key: bytes) -> None:
        self.name = secrets.token_hex(8)
        self.connection = connect(address)
        self._numbers = itertools.count()
        self._segments: dict[int, Segment] = {}
        self._segment_numbers = itertools.count()
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
            data = bytearray(size)
            protocol.write(columns, data)
            self.connection.send(protocol.encode(message._replace(data=bytes(data))))
            return message.number
        number, segment, fd, dropped = self._free_segment(size)
        try:
            protocol.write(columns, segment.buffer)
            segment.mark()
            message = message._replace(
                segment=number,
                size=None if fd is None else segment.size,
                dropped=dropped,
            )
            self.connection.send(protocol.encode(message), () if fd is None else (fd,))
        finally:
            if fd is not None:
                os.close(fd)
        return message.number

    def _free_segment(self, size: int) -> tuple[int, Segment, int | None, list[int]]:
        """A segment that the server does not read, with its descriptor if it is new."""
        dropped: list[int] = []
        for number, segment in list(self._segments.items()):
            if segment.in_use:
                continue
            if segment.size >= size:
                return number, segment, None, dropped
            dropped.append(number)
            del self._segments[number]
        number = next(self._segment_numbers)
        segment, fd = Segment.create(1 << (size - 1).bit_length())
        self._segments[number] = segment
        return number, segment, fd, dropped


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
                    client = Client(self._server, list(self._inputs), self._limit, outbox)
                    clients[self._server] = os.getpid(), client
        return client

    def __call__(self, *args: Any, **kwargs: Any) -> SampleRef | tuple[SampleRef, ...]:
        values = self._bind(args, kwargs)
        samples = []
        for (name, (form, no_copy)), value in zip(self._inputs.items(), values, strict=True):
            try:
                samples.append(form.sample(value, copy=not no_copy))
            except (SourceError, TypeError) as error:  # TypeError: torch types that numpy lacks
                raise RequestRefused(f"input '{name}' of the proxy: {error}") from None
        call = self.client.call(samples)
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
