"""Data instead of references in loops that make another loader of ours, as Accelerate does.

Such a loop reads the loader's arguments and gives them to torch's class, which knows of no server.
The collate function is among them, so it is what brings the data along: its batches become data
when they come out of the worker, in the process in which the server lives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from torch._utils import ExceptionWrapper

from forebay.deliver.proxy.recorded import homes
from forebay.deliver.proxy.unshared import unshared


@dataclass(frozen=True)
class Delivering:
    """The collate function of our loader, as others see it. Ours uses `collate` itself.

    Attributes:
        collate: the user's.
        server: the name of the server whose references become data.
    """

    collate: Callable[[Any], Any]
    server: str

    def __call__(self, samples: Any) -> Any:
        batch = self.collate(samples)
        return homes[self.server](batch) if self.server in homes else _Parcel(self.server, batch)


def plain(collate: Any) -> Any:
    """The user's collate function, whether it was wrapped or not."""
    return collate.collate if isinstance(collate, Delivering) else collate


class _Parcel:
    """A batch on its way from a worker to the process of the server."""

    def __init__(self, server: str, batch: Any) -> None:
        self._content = server, batch

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, self._content


def _open(server: str, batch: Any) -> Any:
    produce = homes.get(server)
    if produce is None:
        return batch
    try:
        return produce(unshared(batch))
    except Exception as error:
        return _Failed(error)


class _Failed(ExceptionWrapper):
    """In the place of a batch: torch's loader raises it in the batch's turn, and can go on."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def reraise(self) -> NoReturn:
        try:
            raise self._error
        finally:  # else the error's traceback and this frame would keep each other alive
            del self._error, self
