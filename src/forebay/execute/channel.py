"""A bounded queue between two threads, and the only thing they wait on.

It ends in order (`close`: what is in it is still taken) or at once (`cancel`: what is in it is
dropped). Whoever waits is woken by either.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Closed(Exception):  # noqa: N818 - the end of a stream rather than a mistake
    """Nothing more comes out of the channel, or can be put into it."""


class Channel(Generic[T]):
    """First in, first out; at most `capacity` items."""

    def __init__(self, capacity: int) -> None:
        self._items: deque[T] = deque()
        self._capacity = capacity
        self._open = True
        self._changed = threading.Condition(threading.Lock())

    def put(self, item: T) -> None:
        """Add an item; wait while the channel is full. Raises Closed."""
        with self._changed:
            while self._open and len(self._items) >= self._capacity:
                self._changed.wait()
            if not self._open:
                raise Closed
            self._items.append(item)
            self._changed.notify_all()

    def get(self) -> T:
        """Take the oldest item; wait while there is none. Raises Closed."""
        with self._changed:
            while self._open and not self._items:
                self._changed.wait()
            if not self._items:
                raise Closed
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def close(self) -> None:
        """Let nothing more in; what is there can still be taken."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def cancel(self) -> list[T]:
        """End at once. Returns what was dropped."""
        with self._changed:
            self._open = False
            dropped = list(self._items)
            self._items.clear()
            self._changed.notify_all()
            return dropped
