"""Where in the user's code something was written."""

from __future__ import annotations

import sys
from dataclasses import dataclass

_PARTS = ("define", "deliver", "fn", "ops", "math", "operators", "types")
_OURS = tuple(f"forebay.{part}" for part in _PARTS)


@dataclass(frozen=True)
class Origin:
    """A line of the user's code."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller() -> Origin:
    """The innermost line outside forebay that led to this call."""
    frame = sys._getframe(1)  # noqa: SLF001 - the public way, inspect.stack(), reads source files
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    code = frame.f_code
    return Origin(code.co_filename, frame.f_lineno, code.co_name)
