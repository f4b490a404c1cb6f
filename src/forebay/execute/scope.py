"""The only place where threads are made, and an end that none of them outlives.

A scope ends by `close`: it runs what was registered with `on_close` (which wakes every wait), then
joins every thread. It also ends when the interpreter does. In a process forked from the one that
made it a scope has no threads, and closing it does nothing.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable

from forebay.execute.channel import Closed

_alive: weakref.WeakSet[Scope] = weakref.WeakSet()


class Scope:
    """A set of threads that end together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._pid = os.getpid()
        self._threads: list[threading.Thread] = []
        self._wake: list[Callable[[], object]] = []
        self._closed = False
        self._lock = threading.Lock()
        _alive.add(self)

    def start(self, run: Callable[[], None], name: str) -> None:
        """Run a function in a thread of this scope. Raises Closed."""
        thread = threading.Thread(target=run, name=f"forebay {self.name} {name}", daemon=True)
        with self._lock:
            if self._closed:
                raise Closed
            self._threads = [*(t for t in self._threads if t.is_alive()), thread]
            thread.start()

    def holds(self, thread: threading.Thread) -> bool:
        """Whether the thread was started by this scope."""
        return thread in self._threads

    def on_close(self, wake: Callable[[], object]) -> None:
        """Register what makes this scope's threads return."""
        self._wake.append(wake)

    def close(self) -> None:
        """Wake all threads and wait until they have returned. Idempotent."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closed = True
            threads = list(self._threads)  # of several who close it each waits
        for wake in self._wake:
            wake()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()


def close_after(owner: object, close: Callable[[], object]) -> Callable[[], object]:
    """Have `close` called once `owner` is garbage, or when the returned function is called.

    Garbage is found anywhere, maybe in the middle of what `close` would wait for, or while a lock
    is held that the ending threads need. So it is closed by a thread of its own then.
    """
    finalizer = weakref.finalize(owner, _close_apart, close, os.getpid())

    def end() -> None:
        if finalizer.detach():
            close()

    return end


def _close_apart(close: Callable[[], object], pid: int) -> None:
    if os.getpid() != pid:
        return
    if threading.main_thread().is_alive():
        thread = threading.Thread(target=close, name="forebay end", daemon=True)
        _closing.add(thread)
        thread.start()
    else:  # the interpreter ends
        close()


_closing: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def _close_all() -> None:
    for thread in list(_closing):
        thread.join()
    for scope in list(_alive):
        scope.close()


atexit.register(_close_all)
