"""The examples run as their first lines say, and print what they should."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLES = Path(__file__).parents[2] / "examples"
COLORS = {"blue": (20, 40, 220), "green": (30, 200, 50), "red": (210, 30, 40)}


@pytest.fixture
def pictures(tmp_path):
    """Three classes of eight pictures of one colour, in several sizes."""
    for name, color in COLORS.items():
        (tmp_path / name).mkdir()
        for i in range(8):
            Image.new("RGB", (120 + 8 * i, 150 - 5 * i), color).save(tmp_path / name / f"{i}.jpg")
    return tmp_path


def torchrun(processes: int, example: str, *args: str) -> str:
    """What the example prints; its errors are the test's."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    done = subprocess.run(
        [sys.executable, *launch, str(EXAMPLES / example), *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_two_processes_train_on_their_halves_of_every_epoch(pictures):
    printed = torchrun(
        2,
        "proxy_ddp.py",
        *("--data", str(pictures), "--epochs", "4"),
        *("--batch-size", "4", "--workers", "2"),
    )
    epochs = re.findall(r"^epoch (\d): (\d+) pictures, loss (\d\.\d{3})$", printed, re.MULTILINE)
    assert [(int(epoch), int(count)) for epoch, count, _ in epochs] == [(i, 24) for i in range(4)]
    assert len(printed.splitlines()) == 4
    losses = [float(loss) for *_, loss in epochs]
    assert losses[-1] < losses[0] < 2 * math.log(3)  # guessing costs log(3)
    assert losses[-1] < 0.5
