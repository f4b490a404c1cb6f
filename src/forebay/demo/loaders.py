"""The two ways of feeding the demo's network: the same Dataset, pictures, order and augmentation.

With forebay the Dataset hands over paths, and a pipeline in the training process does the work. The
plain way is the usual one: Pillow and torchvision's transforms in DataLoader workers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch.utils.data import DataLoader, Subset
from torchvision.transforms import v2

from forebay import fn, pipeline_def, types
from forebay.torch import proxy

SIZE = 96
AREA = (0.25, 1.0)
ASPECT = (3 / 4, 4 / 3)
MEAN = (0.485 * 255, 0.456 * 255, 0.406 * 255)
STD = (0.229 * 255, 0.224 * 255, 0.225 * 255)

HELD_OUT = 5
"""One picture of so many is kept for measuring the accuracy."""


class BadPictures(Exception):  # noqa: N818 - the pictures are bad, not the program
    """The folder cannot be trained on, for the reason in the text."""


@dataclass(frozen=True)
class Pictures:
    """Class folders, and which of their pictures are used for what.

    Attributes:
        folder: holds a folder for each class.
        classes: their names.
        training, held_out: indices into torchvision's ImageFolder of the folder.
    """

    folder: Path
    classes: list[str]
    training: list[int]
    held_out: list[int]

    def dataset(self, indices: list[int], **arguments: Any) -> Subset[Any]:
        """An ordinary dataset: ImageFolder with these arguments."""
        return Subset(torchvision.datasets.ImageFolder(self.folder, **arguments), indices)

    def paths(self) -> list[str]:
        """Of all pictures that are used."""
        folder = torchvision.datasets.ImageFolder(self.folder)
        return [folder.samples[index][0] for index in sorted(self.training + self.held_out)]


def find_pictures(folder: Path, most: int) -> Pictures:
    """Choose `most` pictures of a tree of class folders, evenly.

    Raises:
        BadPictures: there are no class folders, fewer than two, or one without pictures.
    """
    wanted = "one folder for each class, with its pictures inside: DIR/cat/1.jpg, DIR/dog/2.jpg, …"
    try:
        found = torchvision.datasets.ImageFolder(folder)
    except FileNotFoundError as error:
        raise BadPictures(f"{folder} does not look like {wanted} ({error})") from None
    if len(found.classes) < 2:
        raise BadPictures(f"{folder} has one class folder only; wanted is {wanted}")
    step = max(1.0, len(found) / most)
    chosen = [int(k * step) for k in range(int(len(found) / step))]
    held_out = chosen[HELD_OUT - 1 :: HELD_OUT]
    if not held_out:
        raise BadPictures(f"{folder} has {len(chosen)} pictures; the demo needs {HELD_OUT} or more")
    kept = set(held_out)
    return Pictures(folder, found.classes, [i for i in chosen if i not in kept], held_out)


@dataclass(frozen=True)
class Options:
    """What both ways have in common.

    Attributes:
        workers: DataLoader workers, and the threads of forebay's pipeline.
    """

    batch_size: int
    workers: int
    seed: int

    def loader_arguments(self) -> dict[str, Any]:
        return {
            "batch_size": self.batch_size,
            "shuffle": True,
            "num_workers": self.workers,
            "persistent_workers": self.workers > 0,
            "generator": torch.Generator().manual_seed(self.seed),
        }


# ── with forebay ─────────────────────────────────────────────────────────────────────────────────


def _normalised(images: Any, **arguments: Any) -> Any:
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD, **arguments
    )


@pipeline_def
def augmented() -> Any:
    """Paths → random crops, resized, mirrored by chance, normalised."""
    files = fn.io.file.read(fn.external_source(name="paths", no_copy=True))
    images = fn.decoders.image_random_crop(files, random_area=AREA, random_aspect_ratio=ASPECT)
    images = fn.resize(images, size=(SIZE, SIZE))
    return _normalised(images, mirror=fn.random.coin_flip())


@pipeline_def
def plain() -> Any:
    """Paths → whole pictures, resized, normalised: what the accuracy is measured on."""
    files = fn.io.file.read(fn.external_source(name="paths", no_copy=True))
    images = fn.resize(fn.decoders.image(files), size=(SIZE, SIZE))
    return _normalised(images)


def _pipeline(graph: Any, options: Options) -> Any:
    return graph(
        batch_size=options.batch_size, num_threads=max(1, options.workers), seed=options.seed
    )


@pipeline_def
def sizes() -> Any:
    """Paths → height, width and channels of the whole picture."""
    files = fn.io.file.read(fn.external_source(name="paths", no_copy=True))
    return fn.decoders.image(files).shape()


def refuse_damaged(pictures: Pictures, options: Options) -> None:
    """Read and decode every picture. Raises BadPictures with all those that cannot be."""
    every = sorted(pictures.training + pictures.held_out)
    with proxy.Server(_pipeline(sizes, options), on_error="skip") as server:
        dataset = pictures.dataset(every, loader=str, transform=server.proxy)
        with warnings.catch_warnings():  # that there are some: they are listed below
            warnings.simplefilter("ignore", UserWarning)
            for _ in proxy.DataLoader(server, dataset, batch_size=options.batch_size):
                pass
        damaged = [f"\n  {bad.path or bad.index}: {bad.cause}" for bad in server.errors]
    if damaged:
        raise BadPictures(
            f"{len(damaged)} of the {len(every)} pictures cannot be decoded; take them away or "
            f"repair them:{''.join(damaged)}"
        )


@contextmanager
def forebay_loader(pictures: Pictures, options: Options) -> Iterator[Any]:
    """Batches through the proxy."""
    with proxy.Server(_pipeline(augmented, options)) as server:
        dataset = pictures.dataset(pictures.training, loader=str, transform=server.proxy)
        yield proxy.DataLoader(server, dataset, **options.loader_arguments())


def held_out_batches(pictures: Pictures, options: Options) -> list[Any]:
    """The pictures that no training sees."""
    with proxy.Server(_pipeline(plain, options)) as server:
        dataset = pictures.dataset(pictures.held_out, loader=str, transform=server.proxy)
        return list(proxy.DataLoader(server, dataset, batch_size=options.batch_size))


def augmented_samples(pictures: Pictures, options: Options, columns: int, rows: int) -> Any:
    """Several augmentations each of a few pictures: uint8, rows × columns × height × width × 3."""
    paths = pictures.paths()
    chosen = [paths[k * len(paths) // columns] for k in range(columns)]
    with proxy.Server(augmented(batch_size=columns * rows, num_threads=1, seed=options.seed)) as s:
        references = [s.proxy(path) for _ in range(rows) for path in chosen]
        batch = s.produce_data(torch.utils.data.default_collate(references))
    mean, std = (torch.tensor(v).reshape(3, 1, 1) for v in (MEAN, STD))
    pixels = (batch * std + mean).clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)
    return pixels.reshape(rows, columns, SIZE, SIZE, 3)


# ── the plain way ────────────────────────────────────────────────────────────────────────────────


@contextmanager
def plain_loader(pictures: Pictures, options: Options) -> Iterator[Any]:
    """Batches from DataLoader workers that decode and augment, as most training scripts do."""
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(SIZE, scale=AREA, ratio=ASPECT),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32),
            v2.Normalize(MEAN, STD),
        ]
    )
    dataset = pictures.dataset(pictures.training, transform=transform)
    yield DataLoader(dataset, **options.loader_arguments())
