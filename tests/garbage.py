"""Garbage is closed by a thread of its own; what looks at what is left must wait for that."""

from __future__ import annotations

import gc
import threading


def collect() -> None:
    """Collect garbage, and wait until what was found is closed."""
    gc.collect()
    wait()


def wait() -> None:
    """Wait until what was found to be garbage is closed."""
    for thread in threading.enumerate():
        if thread.name == "forebay end":
            thread.join(60)
