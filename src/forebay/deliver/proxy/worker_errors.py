"""Exceptions of the user's code in a worker, on their way to the loop.

torch sends the class of an exception and its formatted traceback, and calls the class with that
text. A class that cannot be pickled gets lost on the way, and the loop waits for ever; others
drop the text. What goes through here arrives.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
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
