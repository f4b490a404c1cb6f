"""How many images a second, and a CPU second, from JPEG files to training batches on the CPU?

    python benchmarks/imagenet_cpu.py --data DIR [--rounds 5] [--threads 2] [--json FILE]

The work is the same for all peers: read a file, decode it, take a random resized crop of 224 × 224
(bilinear; without antialiasing, or with `--antialias`), mirror half of the images, normalise, and
give float32 CHW batches of 64. The peers take turns, each in its own process, `--rounds` times;
medians are reported. CPU seconds are those of the whole process tree while images flow, start-up
excluded. Needs the packages of the extra `bench`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 64
SIZE = 224
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]
WARM_UP = 3


def graph(fn, types, jpegs, antialias):
    """The pipeline of the proxy's documentation page, after the reading."""
    images = fn.decoders.image_random_crop(
        jpegs, random_aspect_ratio=[0.75, 4 / 3], random_area=[0.08, 1.0]
    )
    images = fn.resize(
        images, size=[SIZE, SIZE], interp_type=types.INTERP_LINEAR, antialias=antialias
    )
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        crop=(SIZE, SIZE),
        mean=MEAN,
        std=STD,
        mirror=fn.random.coin_flip(),
    )


def shuffled(paths: list[str]) -> Iterator[str]:
    """The paths in another order in each epoch, without end."""
    rng = np.random.default_rng(0)
    while True:
        yield from (paths[i] for i in rng.permutation(len(paths)))


def forebay_pipeline(data: Path, threads: int, antialias: bool) -> Iterator[int]:
    from forebay import fn, pipeline_def, types

    paths = shuffled(list_files(data))

    def next_batch():
        return [np.frombuffer(next(paths).encode(), np.uint8) for _ in range(BATCH)]

    @pipeline_def(batch_size=BATCH, num_threads=threads, seed=1)
    def pipeline():
        files = fn.io.file.read(fn.external_source(source=next_batch))
        return graph(fn, types, files, antialias)

    pipe = pipeline()
    while True:
        yield len(pipe.run()[0].as_tensor())


def forebay_proxy(data: Path, threads: int, antialias: bool) -> Iterator[int]:
    from forebay import fn, pipeline_def, types
    from forebay.torch import proxy

    @pipeline_def(batch_size=BATCH, num_threads=threads, seed=1)
    def pipeline():
        files = fn.io.file.read(fn.external_source(name="path", no_copy=True))
        return graph(fn, types, files, antialias)

    with proxy.Server(pipeline()) as server:
        dataset = Paths(list_files(data), server.proxy)
        loader = proxy.DataLoader(
            server,
            dataset,
            batch_size=BATCH,
            shuffle=True,
            num_workers=1,
            drop_last=True,
            persistent_workers=True,
        )
        while True:
            for images, _ in loader:
                yield len(images)


class Paths:
    """A dataset of (transformed path, label)."""

    def __init__(self, paths: list[str], transform: Callable) -> None:
        self.paths = paths
        self.transform = transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int):
        return self.transform(self.paths[index]), 0


def dali_pipeline(data: Path, threads: int, antialias: bool) -> Iterator[int]:
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=threads, device_id=None, seed=1)
    def pipeline():
        files, _ = fn.readers.file(file_root=str(data), random_shuffle=True)
        return graph(fn, types, files, antialias)

    pipe = pipeline()
    pipe.build()
    while True:
        yield len(pipe.run()[0].as_tensor().shape()) and BATCH


def torchvision_pillow(data: Path, threads: int, antialias: bool) -> Iterator[int]:
    from PIL import Image

    def load(path: str):
        with Image.open(path) as image:
            return image.convert("RGB")

    return _torchvision(data, threads, antialias, load)


def torchvision_io(data: Path, threads: int, antialias: bool) -> Iterator[int]:
    from torchvision.io import ImageReadMode, decode_image

    return _torchvision(
        data, threads, antialias, lambda path: decode_image(path, ImageReadMode.RGB)
    )


def _torchvision(data: Path, threads: int, antialias: bool, load: Callable) -> Iterator[int]:
    import torch
    from torchvision.transforms import v2

    transform = v2.Compose(
        [
            load,
            v2.ToImage(),
            v2.RandomResizedCrop(SIZE, antialias=antialias),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32),
            v2.Normalize(MEAN, STD),
        ]
    )
    loader = torch.utils.data.DataLoader(
        Paths(list_files(data), transform),
        batch_size=BATCH,
        shuffle=True,
        num_workers=threads,
        drop_last=True,
        persistent_workers=True,
    )
    while True:
        for images, _ in loader:
            yield len(images)


PEERS: dict[str, Callable[[Path, int, bool], Iterator[int]]] = {
    "forebay pipeline": forebay_pipeline,
    "forebay proxy": forebay_proxy,
    "DALI pipeline": dali_pipeline,
    "torchvision v2, torchvision.io": torchvision_io,
    "torchvision v2, Pillow": torchvision_pillow,
}


def list_files(data: Path) -> list[str]:
    return sorted(str(path) for path in data.rglob("*.jp*g"))


def cpu_seconds() -> float:
    """User and system time of this process and all its children so far."""
    import psutil

    me = psutil.Process()
    times = [process.cpu_times() for process in (me, *me.children(recursive=True))]
    return sum(t.user + t.system for t in times)


def measure(peer: str, data: Path, threads: int, images: int, antialias: bool) -> dict[str, float]:
    """Run one peer in this process."""
    batches = PEERS[peer](data, threads, antialias)
    for _ in range(WARM_UP):
        next(batches)
    cpu, wall, done = cpu_seconds(), time.perf_counter(), 0
    while done < images:
        done += next(batches)
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    batches.close()
    return {"per_second": done / wall, "per_cpu_second": done / cpu}


def versions(*packages: str) -> dict[str, str | None]:
    """The version of each package; None if it is not installed."""
    found: dict[str, str | None] = dict.fromkeys(packages)
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def machine() -> dict[str, Any]:
    return {"processor": processor(), "cores": os.cpu_count()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="a folder of JPEG files")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=1500, help="images a round")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--antialias", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peer", choices=list(PEERS), help="run this one alone, in this process")
    args = parser.parse_args()
    if args.peer:
        print(json.dumps(measure(args.peer, args.data, args.threads, args.images, args.antialias)))
        return
    rounds: dict[str, list[dict[str, float]]] = {peer: [] for peer in PEERS}
    for number in range(args.rounds):
        for peer, results in rounds.items():
            command = [sys.executable, __file__, *sys.argv[1:], "--peer", peer]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            results.append(json.loads(output.splitlines()[-1]))
            print(f"round {number + 1}  {peer:32} {results[-1]}", flush=True)
    report(args, rounds)


def report(args: argparse.Namespace, rounds: dict[str, list[dict[str, float]]]) -> None:
    medians = {
        peer: {key: statistics.median(r[key] for r in results) for key in results[0]}
        for peer, results in rounds.items()
    }
    print(f"\n{'':34}images/s  images/CPU s  (medians of {args.rounds})")
    for peer, figures in medians.items():
        print(f"{peer:34}{figures['per_second']:8.0f}  {figures['per_cpu_second']:12.0f}")
    if args.json:
        files = list_files(args.data)
        size = sum(Path(f).stat().st_size for f in files) / len(files)
        result = {
            "question": "JPEG files to 224 × 224 float batches on the CPU",
            "date": date.today().isoformat(),
            "machine": machine(),
            "versions": versions(
                "forebay",
                "torch",
                "torchvision",
                "simplejpeg",
                "opencv-python-headless",
                "pillow",
                "nvidia-dali-cuda130",
            ),
            "files": {"count": len(files), "mean_bytes": round(size)},
            "threads": args.threads,
            "antialias": args.antialias,
            "medians": medians,
            "rounds": rounds,
        }
        args.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
