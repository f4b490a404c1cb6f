"""The server without its public face, so that its threads do not keep the face alive.

A part is taken in by `accept`, and its entry lives as long as a reference to it may still come. An
entry that no reference in this process holds is dropped when the connection that brought it ends,
because a DataLoader ends a worker only when it has no use for the worker's results.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from forebay.batch import Batch, Sample
from forebay.deliver.pipeline import Pipeline
from forebay.deliver.proxy import protocol, reference
from forebay.deliver.proxy.protocol import Hello, Submit
from forebay.deliver.proxy.reference import BatchRef, Part, RowRef, SampleRef, Ticket
from forebay.deliver.proxy.transport import Connection, Disconnected, Listener, Segment
from forebay.deliver.ragged import Ragged, assemble
from forebay.errors import RequestRefused, ServerStopped, WorkerDied
from forebay.execute.channel import Closed
from forebay.execute.run import Place, Run
from forebay.execute.scope import Scope


class Entry:
    """What the server keeps of a part: how to run it, then its run.

    Attributes:
        tensors: what was made of its outputs, so that asking again gives the same.
    """

    def __init__(self, start: Callable[[], Run]) -> None:
        self._start: Callable[[], Run] | None = start
        self._lock = threading.Lock()
        self._run: Run | None = None
        self._error: Exception | None = None
        self.tensors: dict[Any, Any] = {}

    def begin(self) -> None:
        """Begin the run, once. What goes wrong is kept for who asks for the result."""
        with self._lock:
            start, self._start = self._start, None
            if start is not None:
                try:
                    self._run = start()
                except Exception as error:
                    self._error = error

    def result(self) -> tuple[Batch, ...]:
        """Wait for the outputs. Raises what the run raises; ServerStopped if it was ended."""
        self.begin()
        if self._error is not None:
            raise self._error
        assert self._run is not None
        try:
            return self._run.result()
        except Closed:
            raise ServerStopped("the server was stopped before this batch was done") from None


class _Peer:
    """A worker's connection: whether it still lives, and what came through it."""

    def __init__(self, hello: Hello, connection: Connection) -> None:
        self.client = hello.client
        self.pid = hello.pid
        self.loader = hello.loader
        self.connection = connection
        self.gone = False
        self.entries: dict[int, Entry] = {}


class Desk:
    """Takes in parts, and gives out results."""

    def __init__(self, pipeline: Pipeline, *, deterministic: bool) -> None:
        self.name = secrets.token_hex(8)
        self.key = secrets.token_bytes(16)
        self.listener = Listener()
        self._pipeline = pipeline
        self._deterministic = deterministic
        self._changed = threading.Condition()
        self._scope: Scope | None = None
        self._peers: dict[str, _Peer] = {}
        self._parts: weakref.WeakValueDictionary[Ticket, Part] = weakref.WeakValueDictionary()
        self._epochs: dict[str, int] = {}
        self._begun = 0
        self._pid = os.getpid()
        _desks.add(self)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def running(self) -> bool:
        return self._scope is not None

    def start(self) -> None:
        """Accept connections. Idempotent."""
        with self._changed:
            if self._scope is None:
                self._pipeline.build()
                self._scope = Scope("server")
                self._scope.start(self._accept_all, "door")

    def stop(self) -> None:
        """End all threads and connections, and what is being run. Idempotent."""
        if os.getpid() != self._pid:
            return
        with self._changed:
            scope, self._scope = self._scope, None
            peers = list(self._peers.values())
            self._peers.clear()
            self._changed.notify_all()
        if scope is None:
            return
        self._pipeline.close()
        self.listener.wake()
        for peer in peers:
            peer.connection.close()
        scope.close()

    def abandon(self) -> None:
        """In a forked child: close the copies of what belongs to the parent."""
        reference.receivers.pop(self.name, None)
        self.listener.abandon()
        for peer in list(self._peers.values()):
            peer.connection.abandon()

    def begin_epoch(self, token: str | None = None) -> int:
        """The number of a new epoch, or of the epoch that workers call `token`."""
        with self._changed:
            if token in self._epochs:
                return self._epochs[token]
            number = self._begun
            self._begun += 1
            if token is not None:
                self._epochs[token] = number
            return number

    # ── taking in ────────────────────────────────────────────────────────────────────────────────

    def accept(self, message: Submit, batches: Sequence[Batch]) -> Entry:
        """Take in a part and, unless the server is deterministic, begin its run."""
        epoch = message.epoch
        number = epoch if isinstance(epoch, int) else self.begin_epoch(epoch)
        place = Place(number, message.batch, message.rows)
        fed = dict(zip(self._pipeline.inputs(), batches, strict=True))
        sources = message.sources

        entry = Entry(lambda: self._pipeline.submit(place, fed, sources))
        if not self._deterministic:
            entry.begin()
        return entry

    def take_local(self, message: Submit, columns: list[list[Sample]]) -> Part:
        """The outbox of the client in the server's own process."""
        self.start()
        ticket = Ticket(self.name, "", message.number)
        part = Part(ticket, self.accept(message, [Batch(column) for column in columns]))
        self._parts[ticket] = part
        return part

    def _accept_all(self) -> None:
        scope = self._scope
        while scope is not None and self._scope is scope:
            try:
                connection = self.listener.accept()
            except Disconnected:
                return
            if self._scope is not scope:
                connection.close()
                return
            scope.start(partial(self._serve, connection), "connection")

    def _serve(self, connection: Connection) -> None:
        hello = self._welcome(connection)
        if hello is None:
            connection.close()
            return
        peer = _Peer(hello, connection)
        with self._changed:
            if self._scope is None:
                connection.close()
                return
            self._forget_old_peers()
            self._peers[hello.client] = peer
            self._changed.notify_all()
        with contextlib.suppress(Disconnected):
            self._receive_all(peer)
        connection.close()
        with self._changed:
            peer.gone = True
            if peer.loader:
                peer.entries.clear()
            self._changed.notify_all()

    def _welcome(self, connection: Connection) -> Hello | None:
        """The connection's first message; None if it does not show the key."""
        with contextlib.suppress(Disconnected, RequestRefused):
            hello = protocol.decode_hello(connection.receive()[0])
            if hmac.compare_digest(hello.key, self.key):
                return hello
        return None

    def _forget_old_peers(self) -> None:
        """Keep the last few that have gone, to be able to say so."""
        gone = [name for name, peer in self._peers.items() if peer.gone and not peer.entries]
        for name in gone[:-64]:
            del self._peers[name]

    def _receive_all(self, peer: _Peer) -> None:
        segments: dict[int, Segment] = {}
        while True:
            data, fds = peer.connection.receive()
            message = protocol.decode(data)
            for dropped in message.dropped:
                segments.pop(dropped, None)
            if message.segment is None:
                assert message.data is not None
                buffer = np.frombuffer(message.data, np.uint8)
            else:
                if message.size is not None:
                    segments[message.segment] = Segment(message.size, fds[0])
                    os.close(fds[0])
                buffer = segments[message.segment].lend()
            ticket = Ticket(self.name, peer.client, message.number)
            entry = self.accept(message, protocol.read(message.columns, buffer))
            del data, buffer, message  # the segment is free again when nobody has an array of it
            with self._changed:
                part = self._parts.get(ticket)
                if part is None:
                    peer.entries[ticket.number] = entry
                else:
                    part.entry = entry
                self._changed.notify_all()

    # ── giving out ───────────────────────────────────────────────────────────────────────────────

    def receive(self, ticket: Ticket) -> Part:
        """The part of a ticket that came out of another process."""
        with self._changed:
            part = self._parts.get(ticket)
            if part is None:
                part = self._parts[ticket] = Part(ticket)
                peer = self._peers.get(ticket.client)
                if peer is not None:
                    part.entry = peer.entries.pop(ticket.number, None)
        return part

    def entry(self, part: Part) -> Entry:
        """The entry of a part; wait until its worker's message is there.

        Raises:
            ServerStopped, RequestRefused, WorkerDied: it will not come.
        """
        with self._changed:
            while part.entry is None:
                if self._scope is None:
                    raise ServerStopped("the server was stopped before this reference was used")
                peer = self._peers.get(part.ticket.client)
                if peer is None:
                    raise RequestRefused(
                        "this reference is from before the server was stopped and started again, "
                        "or from a worker of long ago; its data is gone"
                    )
                if peer.gone:
                    raise WorkerDied(
                        f"the worker process {peer.pid} ended before it had sent its batch"
                    )
                self._changed.wait()
        entry: Entry = part.entry
        return entry

    def value(self, ref: SampleRef | RowRef | BatchRef, ragged: Ragged) -> Any:
        """What a reference stands for: a tensor; else what `ragged` makes of the samples."""
        if isinstance(ref, SampleRef):
            if ref.call.part is None:
                ref.call.fetch.send_waiting()
            assert ref.call.part is not None
            ref = RowRef(ref.call.part, ref.call.index, ref.output)
        if isinstance(ref, RowRef):
            return self.entry(ref.part).result()[ref.output][ref.row]
        home = self.entry(ref.pieces[0][0]).tensors
        key = (ref.output, *((part.ticket, tuple(rows)) for part, rows in ref.pieces))
        if key not in home:
            home[key] = self._batch(ref, ragged)
        return home[key]

    def _batch(self, ref: BatchRef, ragged: Ragged) -> Any:
        samples: list[Sample] = []
        for part, rows in ref.pieces:
            batch = self.entry(part).result()[ref.output]
            if len(ref.pieces) == 1 and list(rows) == list(range(len(batch))):
                return assemble(batch, ragged, ref.output)
            samples += [batch.samples[row] for row in rows]
        return assemble(Batch(samples), ragged, ref.output)

    def owns(self, ref: SampleRef | RowRef | BatchRef) -> bool:
        """Whether the reference is to this server's data."""
        if isinstance(ref, SampleRef):
            return ref.call.fetch.client.server == self.name
        part = ref.part if isinstance(ref, RowRef) else ref.pieces[0][0]
        return part.ticket.server == self.name


_desks: weakref.WeakSet[Desk] = weakref.WeakSet()


def _abandon_all() -> None:
    for desk in list(_desks):
        desk.abandon()


os.register_at_fork(after_in_child=_abandon_all)
