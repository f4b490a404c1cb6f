"""The soak of benchmarks/proxy_soak.py, in short."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "proxy_soak.py"


@pytest.mark.skipif(sys.platform != "linux", reason="the script reads Linux's /proc")
def test_epochs_of_images_of_all_sizes_do_not_fill_the_memory(tmp_path):
    """One batch of inputs that is kept of each epoch makes it grow by 60 MiB."""
    result = tmp_path / "soak.json"
    arguments = ["--epochs", "9", "--images", "288", "--workers", "1", "--json", str(result)]
    subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    found = json.loads(result.read_text())
    assert len(found["resident_mib"]) == 9
    assert found["growth_mib"] < 33, found["resident_mib"]
