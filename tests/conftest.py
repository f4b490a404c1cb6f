"""What every test gets: a check that it leaves nothing behind, and DALI if it asks for it."""

from __future__ import annotations

import importlib.util
import multiprocessing
import threading
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.dali"):
        return
    for item in items:
        if item.get_closest_marker("dali"):
            item.add_marker(pytest.mark.skip(reason="nvidia-dali is not installed"))


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """Fail a test that leaves a thread, a child process or a shared-memory file."""
    shm = Path("/dev/shm")
    threads = set(threading.enumerate())
    files = set(shm.iterdir()) if shm.is_dir() else set()
    yield
    left = [t for t in threading.enumerate() if t not in threads and t.name.startswith("forebay")]
    for thread in left:
        thread.join(5)
    assert not [t.name for t in left if t.is_alive()], "threads left behind"
    assert not multiprocessing.active_children(), "processes left behind"
    if shm.is_dir():
        assert not set(shm.iterdir()) - files, "shared-memory files left behind"
