"""Exceptions of the user's code in a worker, on their way to the loop.

torch sends the class of an exception and its formatted traceback, and calls the class with that
text. A class that cannot be pickled gets lost on the way, and the loop waits for ever; others
drop the text. What goes through here arrives.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch._utils import ExceptionWrapper
from torch.utils.data import get_worker_info

from forebay.errors import ForebayError


def prepare(error: Exception, where: str | None = None) -> None:
    """Call it before an error is raised on to torch.

    Args:
        error: as the user's code raised it.
        where: what else is known of it; becomes a note.

    Raises:
        ForebayError: in the error's place, and caused by it, if torch would lose the error's text.
    """
    if where is not None and where not in getattr(error, "__notes__", ()):
        error.add_note(where)
    if get_worker_info() is not None and not _arrives(error):
        raise ForebayError(f"{type(error).__qualname__}: {error}") from error


def _arrives(error: Exception) -> bool:
    sent = ExceptionWrapper((type(error), error, error.__traceback__))  # type: ignore[no-untyped-call]  # torch
    try:
        pickle.loads(pickle.dumps(sent)).reraise()
    except Exception as arrived:  # its class may do anything
        return sent.exc_msg in str(arrived)
    return False


@dataclass(frozen=True)
class Told:
    """A function of the user's whose errors arrive."""

    function: Callable[[Any], Any]

    def __call__(self, argument: Any) -> Any:
        try:
            return self.function(argument)
        except Exception as error:
            prepare(error)
            raise


class ToldStream:
    """An IterableDataset whose errors arrive. It looks like the dataset from outside."""

    def __init__(self, dataset: Any) -> None:
        self.__dict__["_dataset"] = dataset

    def __getattr__(self, name: str) -> Any:
        if name == "_dataset":  # while it is being unpickled
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._dataset, name, value)

    def __iter__(self) -> Iterator[Any]:
        return _ToldItems(Told(iter)(self._dataset))


class _ToldItems:
    """No generator: the dataset's own iterator may go on after an error."""

    def __init__(self, items: Iterator[Any]) -> None:
        self._items = items

    def __iter__(self) -> _ToldItems:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._items)
        except StopIteration:
            raise
        except Exception as error:
            prepare(error)
            raise
