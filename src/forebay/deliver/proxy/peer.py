"""What the server keeps of a worker's connection."""

from __future__ import annotations

from forebay.deliver.proxy.entry import Entry, Lost
from forebay.deliver.proxy.protocol import Hello
from forebay.errors import RequestRefused


class Peer:
    """A worker's connection. Who uses it holds the server's lock.

    Attributes:
        entries: by number: what came through it and has rows of which no reference has come.
        arrived: how many parts came.
        lost: once it has ended: the entry of everything that did not come.
    """

    def __init__(self, hello: Hello) -> None:
        self.client = hello.client
        self.pid = hello.pid
        self.loader = hello.loader
        self.entries: dict[int, Entry] = {}
        self.arrived = 0
        self.lost: Lost | None = None
        self._epoch = -1

    def take(self, number: int, entry: Entry) -> None:
        """A part has come.

        What is left of earlier epochs is dropped, if a DataLoader makes them: it takes all that it
        can use of an epoch out of the worker before the next begins.
        """
        if self.lost is not None:
            return
        self.arrived = number + 1
        if self.loader and entry.epoch > self._epoch:
            self._epoch = entry.epoch
            self.entries = {n: e for n, e in self.entries.items() if e.epoch >= entry.epoch}
        if entry.missing:
            self.entries[number] = entry

    def forget(self) -> None:
        """Drop what has come, as if it had not."""
        self.entries.clear()
        self.arrived = 0


def dropped() -> Lost:
    return Lost(
        RequestRefused,
        "the data of this reference was dropped, with the last other reference to it or because "
        "its worker has begun a later epoch",
    )


def from_before() -> Lost:
    return Lost(
        RequestRefused,
        "this reference is from before the server was stopped; its data is gone. Take all batches "
        "of an epoch before stop_thread, or begin a new one",
    )
