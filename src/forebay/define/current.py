"""The pipelines whose definition is being written: a stack in each thread."""

from __future__ import annotations

import threading
from typing import Any


class _Stack(threading.local):
    def __init__(self) -> None:
        self.entries: list[Any] = []


stack = _Stack()


def current() -> Any | None:
    """The innermost Definition that is being written in this thread, or None."""
    return stack.entries[-1] if stack.entries else None
