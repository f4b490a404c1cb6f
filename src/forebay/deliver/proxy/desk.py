"""The server without its public face, so that its threads do not keep the face alive.

A part is taken in by `accept`. Its entry lives until a reference to each of its rows has come, and
as long as there is one in this process. What no reference in this process holds is dropped when the
connection that brought it ends, because a DataLoader ends a worker only when it has no use for the
worker's results, and when its worker has come to a later epoch.

A worker sends a part before its reference, so the part of every reference arrives, or the end of
its connection does: then the part gets an entry that says so. A reference may overtake its part,
and even the connection; its reader waits for one of the two.
"""

from __future__ import annotations

import contextlib
import hmac
import itertools
import os
import secrets
import threading
import weakref
from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from forebay.batch import Batch, Sample
from forebay.deliver.pipeline import Pipeline
from forebay.deliver.proxy import protocol, reference
from forebay.deliver.proxy.entry import STOPPED, Entry, Lost
from forebay.deliver.proxy.peer import Peer, dropped, from_before
from forebay.deliver.proxy.protocol import Hello, Submit
from forebay.deliver.proxy.recorded import homes
from forebay.deliver.proxy.reference import Part, Ticket
from forebay.deliver.proxy.report import Trip
from forebay.deliver.proxy.transport import Connection, Disconnected, Listener, Segment
from forebay.errors import ProxyError, RequestRefused, ServerStopped, WorkerDied
from forebay.execute.channel import Closed
from forebay.execute.executor import Executor
from forebay.execute.run import Place, Run
from forebay.execute.scope import Scope

_REMEMBERED = 1024
"""So many connections that have ended are known by name."""


class Desk:
    """Takes in parts, and gives out results."""

    def __init__(self, pipeline: Pipeline, *, deterministic: bool) -> None:
        self.name = secrets.token_hex(8)
        self.key = secrets.token_bytes(16)
        self.listener = Listener()
        self._pipeline = pipeline
        self._inputs = list(pipeline.inputs().values())
        self._deterministic = deterministic
        self._life = threading.RLock()  # held while starting and stopping
        self._changed = threading.Condition()  # guards and announces all that follows
        self._scope: Scope | None = None
        self._executor: Executor | None = None
        self._door_error: str | None = None
        self._connections: set[Connection] = set()
        self._peers: dict[str, Peer] = {}
        self._parts: weakref.WeakValueDictionary[Ticket, Part] = weakref.WeakValueDictionary()
        self._local_numbers = itertools.count()
        self._epochs: dict[str, int] = {}
        self._begun = 0
        self._wanted = 0
        self._pid = os.getpid()
        own = self._peers[""] = Peer(Hello(self.key, "", self._pid, loader=False))
        own.lost = dropped()
        _desks.add(self)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Accept connections. Idempotent. Raises ProxyError in a forked child."""
        if os.getpid() != self._pid:
            raise ProxyError(
                f"the server runs in process {self._pid}, and its data is taken there: a worker "
                f"calls the proxy and returns the references"
            )
        if self._scope is not None:
            return
        with self._life:
            if self._scope is None:
                self._executor = self._pipeline.new_executor()
                self._door_error = None
                scope = self._scope = Scope("server")
                scope.on_close(self._end)
                scope.start(partial(self._accept_all, scope), "door")

    def stop(self) -> None:
        """End all threads and connections, and what is being run. Idempotent."""
        if os.getpid() != self._pid:
            return
        with self._life:
            scope = self._scope
            if scope is not None:
                scope.close()

    def _end(self) -> None:
        """Wake whoever waits: the scope is being closed."""
        with self._changed:
            self._scope = None
            executor, self._executor = self._executor, None
            connections = list(self._connections)
            for peer in list(self._peers.values()):
                self._lose(peer, from_before())
                peer.forget()
            self._changed.notify_all()
        if executor is not None:
            executor.close()
        for connection in connections:
            connection.end()
        self.listener.wake()

    def abandon(self) -> None:
        """In a forked child: close the copies of what belongs to the parent."""
        reference.receivers.pop(self.name, None)
        homes.pop(self.name, None)
        self.listener.abandon()
        for connection in list(self._connections):
            connection.close()

    @property
    def begun(self) -> int:
        """How many epochs have begun."""
        return self._begun

    def go_on(self, begun: int) -> None:
        """Number as if so many had begun. Of calls without an epoch between, the highest counts."""
        with self._changed:
            self._begun = self._wanted = max(begun, self._wanted)

    def begin_epoch(self, token: str | None = None, again: int | None = None) -> int:
        """The number of a new epoch, of the one that workers call `token`, or `again`."""
        with self._changed:
            self._wanted = 0
            if again is not None:
                return again
            if token in self._epochs:
                return self._epochs[token]
            number = self._begun
            self._begun += 1
            if token is not None:
                self._epochs[token] = number
            return number

    @property
    def scope(self) -> Scope | None:
        """The server's threads; None while it is stopped."""
        return self._scope

    # ── taking in ────────────────────────────────────────────────────────────────────────────────

    def accept(self, message: Submit, batches: Sequence[Batch], client: str, ready: float) -> Entry:
        """Take in a part and, unless the server is deterministic, begin its run."""
        stamps = message.begun, message.sent, ready, perf_counter()
        epoch = message.epoch
        number = epoch if isinstance(epoch, int) else self.begin_epoch(epoch)
        place = Place(number, message.batch, message.rows)
        fed = dict(zip(self._inputs, batches, strict=True))
        executor, indices = self._executor, message.indices

        def start() -> Run:
            if executor is None:
                raise Closed
            return executor.submit(place, fed, partial(_source, indices))

        entry = Entry(start, number, indices)
        entry.trip = Trip(client, epoch, message.batch, *stamps)
        if not self._deterministic:
            entry.begin()
        return entry

    def take_local(self, message: Submit, columns: list[list[Sample]]) -> Part:
        """The outbox of the client in the server's own process."""
        self.start()
        ticket = Ticket(self.name, "", next(self._local_numbers))
        batches = [Batch(column) for column in columns]
        part = Part(ticket, self.accept(message, batches, "", message.sent))
        with self._changed:
            self._parts[ticket] = part
        return part

    def _accept_all(self, scope: Scope) -> None:
        try:
            while True:
                connection = self.listener.accept()
                with self._changed:
                    self._connections.add(connection)
                    if self._scope is not scope:
                        connection.end()
                try:
                    scope.start(partial(self._serve, connection, scope), "connection")
                except Closed:
                    self._serve(connection, scope)  # it has ended, but must be known
                if self._scope is not scope:
                    return
        except Disconnected as error:
            with self._changed:
                self._door_error = f"the server can accept no more workers: {error}"
                self._changed.notify_all()

    def _serve(self, connection: Connection, scope: Scope) -> None:
        try:
            hello = self._welcome(connection)
            if hello is not None:
                self._serve_peer(Peer(hello), connection, scope)
        finally:
            with self._changed:
                self._connections.discard(connection)
            connection.end()
            connection.close()

    def _welcome(self, connection: Connection) -> Hello | None:
        """The connection's first message; None if it does not show the key."""
        with contextlib.suppress(Disconnected, RequestRefused):
            hello = protocol.decode_hello(connection.receive(protocol.HELLO_LIMIT)[0])
            if hmac.compare_digest(hello.key, self.key):
                return hello
        return None

    def _serve_peer(self, peer: Peer, connection: Connection, scope: Scope) -> None:
        with self._changed:
            self._forget_old_peers()
            self._peers[peer.client] = peer
            if self._scope is not scope:
                self._lose(peer, from_before())
                return
        lost = Lost(
            WorkerDied,
            f"the worker process {peer.pid} ended before it had sent this batch, or its DataLoader "
            f"ended it before the batch was taken",
        )
        try:
            segments: dict[int, Segment] = {}
            while True:
                self._receive_one(peer, connection, segments)
        except Disconnected:
            pass
        except Exception as error:  # whoever waits must be told, whatever it was
            text = f"the connection to worker process {peer.pid} failed: {error!r}"
            lost = Lost(ProxyError, text)
        with self._changed:
            self._lose(peer, lost)
            if peer.loader:
                peer.entries.clear()
            self._changed.notify_all()

    def _lose(self, peer: Peer, lost: Lost) -> None:
        """Nothing more comes from a peer. Called with the lock held."""
        if peer.lost is None:
            peer.lost = lost
            for part in list(self._parts.values()):
                if part.entry is None and part.ticket.client == peer.client:
                    part.entry = lost

    def _forget_old_peers(self) -> None:
        gone = [name for name, peer in self._peers.items() if peer.lost and not peer.entries]
        for name in gone[1:-_REMEMBERED]:  # the first is this process
            del self._peers[name]

    def _receive_one(
        self, peer: Peer, connection: Connection, segments: dict[int, Segment]
    ) -> None:
        # No local of the caller holds on to a part: it waits here with nothing in its hands.
        ready = perf_counter()
        data, fds = connection.receive()
        message = protocol.decode(data)
        for unused in message.dropped:
            segments.pop(unused, None)
        if message.segment is None:
            assert message.data is not None
            buffer = np.frombuffer(message.data, np.uint8)
        else:
            if message.size is not None:
                if not fds:
                    raise OSError("a descriptor did not come through: too many files are open")
                try:
                    segments[message.segment] = Segment(message.size, fds[0])
                finally:
                    os.close(fds[0])
            buffer = segments[message.segment].lend()
        ticket = Ticket(self.name, peer.client, message.number)
        entry = self.accept(message, protocol.read(message.columns, buffer), peer.client, ready)
        with self._changed:
            part = self._parts.get(ticket)
            if part is not None and part.entry is None:
                part.entry = entry
            entry.missing.update(range(len(message.rows)))
            if part is not None:
                entry.missing -= part.received
            peer.take(ticket.number, entry)
            self._changed.notify_all()

    # ── giving out ───────────────────────────────────────────────────────────────────────────────

    def receive(self, ticket: Ticket, rows: Sequence[int]) -> Part:
        """The part of a ticket, for a reference to some of its rows that came out of a worker."""
        with self._changed:
            part = self._parts.get(ticket)
            if part is None:
                part = self._parts[ticket] = Part(ticket)
            part.received.update(rows)
            peer = self._peers.get(ticket.client)
            if peer is not None:
                entry = peer.entries.get(ticket.number)
                if entry is not None:
                    part.entry = entry
                    entry.missing.difference_update(rows)
                    if not entry.missing:
                        del peer.entries[ticket.number]
                elif part.entry is None:
                    given = ticket.number < peer.arrived
                    part.entry = dropped() if given else peer.lost
        return part

    def entry(self, part: Part, timeout: float | None = None) -> Entry:
        """The entry of a part; wait until its worker's message is there, or that many seconds.

        Raises:
            ServerStopped, ProxyError: it will not come.
            TimeoutError: it has not come.
        """
        if part.entry is None:
            self.start()
            with self._changed:
                scope = self._scope
                if not self._changed.wait_for(lambda: self._has_come(part, scope), timeout):
                    raise TimeoutError
        entry: Entry = part.entry
        return entry

    def _has_come(self, part: Part, scope: Scope | None) -> bool:
        if part.entry is not None:
            return True
        if scope is None or self._scope is not scope:
            raise ServerStopped(STOPPED)
        if self._door_error is not None:
            raise ProxyError(self._door_error)
        return False


def _source(indices: Sequence[Any], row: int) -> str | None:
    return None if indices[row] is None else f"dataset index {indices[row]}"


_desks: weakref.WeakSet[Desk] = weakref.WeakSet()


def _abandon_all() -> None:
    for desk in list(_desks):
        desk.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
