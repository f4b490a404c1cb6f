"""The proxy's tests must leave no descriptor behind either."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from garbage import collect


def open_descriptors() -> list[str]:
    """Sockets and shared memory of this process."""
    found = []
    for link in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):
            target = str(link.readlink())
            if target.startswith(("socket:", "/memfd:forebay")):
                found.append(target)
    return found


@pytest.fixture(autouse=True)
def no_descriptor_left(request):
    before = open_descriptors()
    yield
    request.node.funcargs = {}  # servers among them
    if len(open_descriptors()) > len(before):
        collect()
    assert len(open_descriptors()) <= len(before)
