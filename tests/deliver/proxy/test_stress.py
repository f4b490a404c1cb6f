"""Some dozens of the random rounds of tests/stress.py, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the driver reads Linux's /proc")

DRIVER = Path(__file__).parents[2] / "stress.py"


@pytest.mark.parametrize("seed", [1, 2])
def test_random_rounds_give_every_row_and_leave_nothing(seed):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(DRIVER.parent), *sys.path])}
    played = subprocess.run(
        [sys.executable, DRIVER, "--rounds", "12", "--seed", str(seed)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert played.stdout.endswith(f"12 rounds of seed {seed} are right\n")
