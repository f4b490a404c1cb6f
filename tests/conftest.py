"""What every test gets: a check that it leaves nothing behind, and DALI if it asks for it."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from garbage import collect, wait


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.dali"):
        return
    for item in items:
        if item.get_closest_marker("dali"):
            item.add_marker(pytest.mark.skip(reason="nvidia-dali is not installed"))


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """Fail a test that leaves a thread, a child process or a shared-memory file."""
    threads = set(threading.enumerate())
    files = set(shared_memory_files())
    yield
    if set(threading.enumerate()) - threads or multiprocessing.active_children():
        collect()  # `with pytest.raises(…) as caught` makes a cycle with the test's own frame
    wait()  # what a thread held until just now may be ending
    left = [t for t in threading.enumerate() if t not in threads and t.name.startswith("forebay")]
    assert not [t.name for t in left], "threads left behind"
    assert not multiprocessing.active_children(), "processes left behind"
    assert not set(shared_memory_files()) - files, "shared-memory files left behind"


def shared_memory_files() -> list[str]:
    """Those that torch or Python make; semaphores of other programs come and go."""
    folder = Path("/dev/shm")
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return [name for name in names if name.startswith(("psm_", f"torch_{os.getpid()}"))]
