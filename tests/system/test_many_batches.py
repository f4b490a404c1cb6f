"""Batches can be kept, however many there are, by a process that may open few files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such limit")

TESTS = Path(__file__).parents[1]

SCRIPT = """
import resource, sys, warnings
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
warnings.simplefilter("ignore")
import numpy as np, torch
from forebay.torch.proxy import DataLoader, Server
from proxies import Numbers, twice

SIZE, REBUILT = int(sys.argv[1]), sys.argv[2] == "rebuilt"

class Sized(Numbers):
    def __getitem__(self, index):
        own = torch.full((SIZE // 4,), index)  # beside the proxy's, and sent by torch
        return self.proxy(np.full((SIZE,), index, np.int32)), own, index

with Server(twice()) as server:
    loader = DataLoader(server, Sized(server.proxy, 1200), batch_size=2, num_workers=2)
    if REBUILT:
        loader = torch.utils.data.DataLoader(
            loader.dataset, batch_size=2, num_workers=2, collate_fn=loader.collate_fn
        )
    kept = list(loader)
    assert len(kept) == 600
    for number, (data, own, labels) in enumerate(kept):
        assert labels.tolist() == [2 * number, 2 * number + 1]
        assert torch.equal(data, (2 * labels + 1).int()[:, None].expand(-1, SIZE)), number
        assert torch.equal(own, labels[:, None].expand(-1, SIZE // 4)), number
print("all as they were")
"""


@pytest.mark.parametrize("loader", ["own", "rebuilt"])
@pytest.mark.parametrize("size", [8, 20_000])
def test_six_hundred_batches_stay_as_they_are_with_256_files(size, loader):
    """Inputs of 20 000 numbers travel in shared memory, those of 8 in messages."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(size), loader],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )
    assert (done.returncode, done.stdout) == (0, "all as they were\n"), done.stderr
