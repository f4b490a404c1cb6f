"""Does the memory of a training process stay flat while images of all sizes come and go?

    python benchmarks/proxy_soak.py [--epochs 30] [--images 1024] [--workers 2] [--json FILE]

Each epoch sends its images, of 32 to 512 pixels a side and in another order, through the proxy and
takes their batches of 64 × 64. The resident memory of the process, with all that is shared with the
workers, is read at the end of each epoch, when nothing is kept. *Growth* is the mean of the last
third of the epochs less that of the third before it: the first epochs fill caches and allocators.

Needs Linux's /proc.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from imagenet_cpu import machine, versions

from forebay import fn, pipeline_def
from forebay.torch import proxy

BATCH = 96
SIDES = (32, 512)


class Images:
    """Image i has a size of its own, and i in every pixel."""

    def __init__(self, size: int, give: Any) -> None:
        self.sides = np.random.default_rng(0).integers(*SIDES, (size, 2), endpoint=True)
        self.give = give

    def __len__(self) -> int:
        return len(self.sides)

    def __getitem__(self, index: int) -> Any:
        return self.give(np.full((*self.sides[index], 3), index % 256, np.uint8)), index


@pipeline_def(batch_size=BATCH, num_threads=2)
def resized():
    return fn.resize(fn.external_source(name="image"), size=[64, 64])


def resident() -> float:
    """MiB of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def soak(epochs: int, images: int, workers: int) -> list[float]:
    """Resident MiB after each epoch."""
    found = []
    with proxy.Server(resized()) as server:
        dataset = Images(images, server.proxy)
        loader = proxy.DataLoader(server, dataset, BATCH, shuffle=True, num_workers=workers)
        for epoch in range(epochs):
            rows = 0
            for data, labels in loader:
                assert torch.equal(data[:, 0, 0, 0], (labels % 256).to(torch.uint8))
                rows += len(labels)
            assert rows == images
            del data, labels
            gc.collect()
            found.append(resident())
            print(f"epoch {epoch:3}  {found[-1]:7.1f} MiB", flush=True)
    return found


def growth(found: list[float]) -> float:
    third = len(found) // 3
    return statistics.mean(found[-third:]) - statistics.mean(found[-2 * third : -third])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--images", type=int, default=1024, help="images an epoch")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found = soak(args.epochs, args.images, args.workers)
    print(f"growth {growth(found):.1f} MiB")
    if args.json:
        result = {
            "question": "Resident memory while images of 32 to 512 pixels go through the proxy",
            "date": date.today().isoformat(),
            "machine": machine(),
            "versions": versions("forebay", "torch", "numpy"),
            "images": args.images,
            "workers": args.workers,
            "growth_mib": round(growth(found), 2),
            "resident_mib": [round(mib, 1) for mib in found],
        }
        args.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
