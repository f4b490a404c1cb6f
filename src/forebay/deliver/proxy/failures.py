"""Samples that failed, and what the server does about them."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from forebay.errors import ForebayError, TooManyErrors
from forebay.execute.kept import kept, note_lines

OnError = Literal["raise", "skip", "substitute"]

_SHOWN = 20
"""So many samples are told in the text of an error."""


@dataclass(frozen=True)
class BadSample:
    """A sample that failed, in `Server.errors`.

    Attributes:
        index: in the dataset, where it is known: under the proxy's own DataLoader.
        path: of its file, where it is known.
        operator: the operator that failed; "dataset" if the Dataset did.
        cause: what it raised. Its traceback is in its notes.
        epoch, batch, row: where the sample lies, from 0.
    """

    index: Any
    path: str | None
    operator: str
    cause: BaseException
    epoch: int
    batch: int
    row: int

    def __str__(self) -> str:
        names = [] if self.index is None else [f"dataset index {self.index}"]
        names += [] if self.path is None else [self.path]
        where = f"epoch {self.epoch}, batch {self.batch}, row {self.row}"
        cause = f"{type(self.cause).__name__}: {self.cause}"
        return f"{', '.join(names) or 'sample'} ({where}): {self.operator}: {cause}"


class Failures:
    """All that failed in the life of a server.

    Args:
        on_error: what becomes of a batch in which samples failed.
        max_errors: how many may fail.
    """

    def __init__(self, on_error: OnError, max_errors: int | None) -> None:
        self.on_error: OnError = on_error
        self._max = max_errors
        self._lock = threading.Lock()
        self._all: list[BadSample] = []
        self._told = 0

    def all(self) -> tuple[BadSample, ...]:
        with self._lock:
            return tuple(self._all)

    def add(self, samples: Sequence[BadSample]) -> None:
        """Note them. Raises TooManyErrors."""
        if not samples:
            return
        with self._lock:
            self._all += samples
            found = list(self._all)
        if self._max is not None and len(found) > self._max:
            raise TooManyErrors(
                f"{len(found)} samples have failed, and max_errors is {self._max}:{_listed(found)}"
            )

    def warn(self) -> None:
        """Tell the user how many failed since this was last called, if any did."""
        with self._lock:
            new = self._all[self._told :]
            self._told = len(self._all)
        if new:
            done = "skipped" if self.on_error == "skip" else "substituted"
            text = f"{len(new)} samples failed and were {done}; see errors of the server:"
            warnings.warn(text + _listed(new[:3]), stacklevel=3)


def keep(on_error: OnError, size: int, failed: Collection[int]) -> list[int]:
    """The rows of a batch that go on, in the place of `range(size)`; empty if all failed."""
    good = [row for row in range(size) if row not in failed]
    if on_error == "skip" or not good:
        return good
    later = {row: next((g for g in good if g > row), good[0]) for row in failed}
    return [later.get(row, row) for row in range(size)]


def detached(error: BaseException) -> BaseException:
    """The error with its traceback as a note, so that it holds no frames and can be pickled.

    One that cannot be pickled becomes a ForebayError that says the same.
    """
    if isinstance(error, ForebayError):
        note_lines(error)  # those of the Dataset
    kept(error)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # its class may do anything
        made = ForebayError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            made.add_note(note)
        return made
    return error


def _listed(samples: Sequence[BadSample]) -> str:
    lines = [f"\n  {sample}" for sample in samples[:_SHOWN]]
    return "".join(lines) + ("\n  …" if len(samples) > _SHOWN else "")
