"""Bytes between processes: a private local socket, and memory that both sides see.

The socket lies in a folder that only this user can enter; where the system has no such sockets it
is one of the loopback interface. Either way the first message must show the server's key. A segment
of shared memory has no name, so nothing is left of it when both processes are gone, however they
ended.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import socket
import struct
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np

_LENGTH = struct.Struct("<QI")
HAS_SEGMENTS = hasattr(socket, "send_fds")
_CHUNK = 1 << 14
_PREFIX = "forebay-"
_LONGEST = 70  # systems take paths of about 100 bytes for a socket
Address = str | tuple[str, int]


class Disconnected(Exception):  # noqa: N818 - an end rather than a mistake
    """The other side has gone."""


class Connection:
    """Whole messages over a socket, with file descriptors. One thread sends, one receives."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._ahead = bytearray()  # what came of the messages that are still to be received
        self._fds: list[int] = []

    def send(self, data: bytes, fds: tuple[int, ...] = ()) -> None:
        """Send one message. Raises Disconnected."""
        message = memoryview(_LENGTH.pack(len(data), len(fds)) + data)
        try:
            sent = socket.send_fds(self._socket, [message], fds) if fds else 0
            self._socket.sendall(message[sent:])
        except OSError as error:
            raise Disconnected(str(error)) from error

    def receive(self, limit: int | None = None) -> tuple[bytearray, list[int]]:
        """Wait for one message. Raises Disconnected when the other side has gone.

        Args:
            limit: a longer message ends the connection.
        """
        self._read(_LENGTH.size)
        length, count = _LENGTH.unpack_from(self._ahead)
        if limit is not None and length > limit:
            raise Disconnected(f"a message of {length} bytes, where {limit} are the most")
        end = _LENGTH.size + length
        self._read(end)
        data, self._ahead = self._ahead[_LENGTH.size : end], self._ahead[end:]
        fds, self._fds = self._fds[:count], self._fds[count:]
        return data, fds

    def _read(self, size: int) -> None:
        """Have at least so many bytes ahead. A system call for each is what costs most."""
        while len(self._ahead) < size:
            wanted = max(size - len(self._ahead), _CHUNK)
            try:
                if HAS_SEGMENTS:
                    data, fds, _, _ = socket.recv_fds(self._socket, wanted, 8)
                    self._fds += fds
                else:
                    data = self._socket.recv(wanted)
            except OSError as error:
                raise Disconnected(str(error)) from error
            if not data:
                raise Disconnected
            self._ahead += data

    def end(self) -> None:
        """Have the thread that waits in `receive` get what has come, then Disconnected."""
        with contextlib.suppress(OSError):  # the other side may have been faster
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give up this process's copy of the socket; no thread may wait for it any more."""
        self._socket.close()
        while self._fds:
            os.close(self._fds.pop())


class Listener:
    """The server's end. Workers can connect, and send, before anyone accepts."""

    def __init__(self) -> None:
        self._folder: str | None = None
        if hasattr(socket, "AF_UNIX"):
            short = len(tempfile.gettempdir()) < _LONGEST
            parent = Path(tempfile.gettempdir() if short else "/tmp")
            _remove_dead(parent)
            self._folder = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
            path = Path(self._folder) / "socket"
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.bind(str(path.with_name("new")))
            self._socket.listen(1024)
            path.with_name("new").rename(path)  # who finds it there can connect
            self.address: Address = str(path)
        else:
            self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
            self.address = self._socket.getsockname()
        self._finalizer = weakref.finalize(self, _remove, self._socket, self._folder, os.getpid())

    def accept(self) -> Connection:
        """Wait for the next connection. Raises Disconnected after `close`."""
        try:
            return Connection(self._socket.accept()[0])
        except OSError as error:
            raise Disconnected(str(error)) from error

    def wake(self) -> None:
        """Let a thread that waits in `accept` have a connection that says nothing."""
        with contextlib.suppress(Disconnected):
            connect(self.address).close()

    def close(self) -> None:
        """Accept nothing more, and remove the socket."""
        self._finalizer()

    def abandon(self) -> None:
        """Close this process's copy of the listening socket."""
        self._socket.close()


def _remove_dead(parent: Path) -> None:
    """Remove the folders of listeners whose processes were killed: nobody listens there."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            connect(str(folder / "socket")).close()
        except Disconnected as error:
            if isinstance(error.__cause__, ConnectionRefusedError):
                shutil.rmtree(folder, ignore_errors=True)


def _remove(sock: socket.socket, folder: str | None, pid: int) -> None:
    if os.getpid() != pid:
        return  # a forked child has only a copy
    with contextlib.suppress(OSError):  # where a listening socket cannot be shut down, close wakes
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def connect(address: Address) -> Connection:
    """Connect to a listener. Raises Disconnected if there is none."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.connect(address)
    except OSError as error:
        sock.close()
        raise Disconnected(f"no server listens at {address}: {error}") from error
    return Connection(sock)


class Segment:
    """Memory that two processes see. Its first bytes say whether the server still reads the rest.

    The worker makes it, fills it and marks it as in use; the server takes the mark away when the
    last array over it is gone; then the worker may fill it again, if its own are gone too.
    """

    HEAD = 64

    def __init__(self, size: int, fd: int) -> None:
        self.size = size
        self._filled: weakref.ref[np.ndarray[Any, Any]] | None = None
        self._memory = mmap.mmap(fd, size + self.HEAD)

    @classmethod
    def create(cls, size: int) -> tuple[Segment, int]:
        """A new one, and the descriptor to send. The caller closes it."""
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("forebay", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.ftruncate(fd, size + cls.HEAD)
        return cls(size, fd), fd

    @property
    def in_use(self) -> bool:
        filled = self._filled is not None and self._filled() is not None
        return filled or self._memory[0] != 0

    def fill(self) -> np.ndarray[Any, Any]:
        """The content as uint8, to write to. In use until this array and all views are gone."""
        content = self._content()
        self._filled = weakref.ref(content)
        return content

    def _content(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self._memory, np.uint8, self.size, self.HEAD)

    def mark(self) -> None:
        """Say that the content must stay, until `lend`'s array is gone."""
        self._memory[0] = 1

    def unmark(self) -> None:
        self._memory[0] = 0

    def lend(self) -> np.ndarray[Any, Any]:
        """The content as uint8. When this array and all views of it are gone, the mark is too."""
        lent = self._content()
        weakref.finalize(lent, self._return, os.getpid()).atexit = False
        return lent

    def _return(self, pid: int) -> None:
        if os.getpid() == pid:  # a forked child drops its copies of arrays that the parent reads
            self.unmark()
