"""Train on several processes (DDP), each with its own server and pipeline.

    torchrun --nproc-per-node 2 examples/proxy_ddp.py --data DIR [--epochs 2] [--workers 2]

DIR holds a folder of JPEG files for each class. Every process takes its part of the files from
torch's DistributedSampler, as in any DDP script; the proxy changes nothing in that. On GPUs use
`--backend nccl` and move the batches to the process's device.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Dataset, DistributedSampler

from forebay import fn, pipeline_def, types
from forebay.torch import proxy

SIZE = 96


class Pictures(Dataset):
    """(picture, class) of every file in the class folders."""

    def __init__(self, folder: Path, transform) -> None:
        self.classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
        self.files = [
            (path, label)
            for label, name in enumerate(self.classes)
            for path in sorted((folder / name).glob("*.jpg"))
        ]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int):
        path, label = self.files[index]
        return self.transform(path), label


@pipeline_def
def pipeline():
    files = fn.io.file.read(fn.external_source(name="path", no_copy=True))
    images = fn.decoders.image_random_crop(files)
    images = fn.resize(images, size=[SIZE, SIZE])
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, mean=[128.0], std=[64.0], mirror=fn.random.coin_flip()
    )


def network(classes: int) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=4),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(256, classes),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--backend", default="gloo")
    args = parser.parse_args()
    dist.init_process_group(args.backend)
    rank = dist.get_rank()
    torch.manual_seed(1)

    # Another seed for each process: they must not draw the same crops.
    pipe = pipeline(batch_size=args.batch_size, num_threads=2, seed=1 + rank)
    with proxy.Server(pipe) as server:
        pictures = Pictures(args.data, server.proxy)
        sampler = DistributedSampler(pictures, seed=7)
        loader = proxy.DataLoader(
            server,
            pictures,
            batch_size=args.batch_size,
            sampler=sampler,
            num_workers=args.workers,
            persistent_workers=args.workers > 0,
        )
        model = DistributedDataParallel(network(len(pictures.classes)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for epoch in range(args.epochs):
            sampler.set_epoch(epoch)
            seen, total = 0, torch.zeros(())
            for images, labels in loader:
                loss = torch.nn.functional.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                seen += len(labels)
                total += loss.detach() * len(labels)
            counts = torch.tensor([seen, float(total)])
            dist.all_reduce(counts)
            if rank == 0:
                print(f"epoch {epoch}: {int(counts[0])} pictures, loss {counts[1] / counts[0]:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
