"""Errors that are kept until someone asks, and raised then, maybe more than once.

An exception holds the frames that it went through, with their variables, and the frames that called
them. So a kept error would hold the batch that it came from, and everyone to whom it was raised;
and an error that a user keeps would hold the server.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from forebay.errors import ForebayError

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=BaseException)

_OURS = ("forebay", "torch")  # torch's iterator, with its workers and what they have sent


def kept(error: E) -> E:
    """An error, to be kept: without frames. The traceback becomes a note, unless it is ours."""
    link: BaseException | None = error
    while link is not None:
        if not isinstance(link, ForebayError):
            note_lines(link)
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error


def note_lines(error: BaseException) -> None:
    """Add the traceback of an error, if it has one, to its notes."""
    if error.__traceback__ is not None:
        lines = traceback.format_tb(error.__traceback__)
        error.add_note("".join(["Traceback (most recent call last):\n", *lines]).rstrip())


def fresh(error: BaseException) -> BaseException:
    """A kept error, to be raised: the frames that it goes through are not the kept one's."""
    if not isinstance(error, ForebayError):  # another class may not be fit to be copied
        return error.with_traceback(None)
    made = copy.copy(error)
    made.__cause__ = error.__cause__
    return made


def forgetful(call: Callable[P, T]) -> Callable[P, T]:
    """Clear forebay's and torch's frames of what a function raises: they show lines, hold nothing.

    The frames of the user's code stay as they are, for debuggers. A frame of a closure holds what
    it closes over also when it is cleared, so what raises must be none.
    """

    @functools.wraps(call)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        before = sys.exception()  # belongs to the caller, who is handling it
        try:
            return call(*args, **kwargs)
        except BaseException as error:
            link: BaseException | None = error
            while link is not None and link is not before:
                _clear(link.__traceback__)
                link = link.__cause__ or link.__context__
            raise
        finally:
            del args, kwargs, before

    return called


def _clear(trace: TracebackType | None) -> None:
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
            with contextlib.suppress(RuntimeError):  # it still runs
                trace.tb_frame.clear()
        trace = trace.tb_next
