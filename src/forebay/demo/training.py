"""A small network, its training, and what the training costs."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import torch
from torch import nn


def network(classes: int) -> nn.Module:
    """Three convolutions; so small that feeding it is a good part of the work."""
    layers: list[nn.Module] = []
    for before, after, size, stride in ((3, 24, 7, 4), (24, 48, 3, 2), (48, 64, 3, 2)):
        convolution = nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False)
        layers += [convolution, nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


@dataclass(frozen=True)
class Progress:
    """How far a training is.

    Attributes:
        pictures: trained on so far.
        seconds: passed so far.
        waiting: seconds of these in which the loop waited for data.
        loss: of late.
    """

    pictures: int = 0
    seconds: float = 0.0
    waiting: float = 0.0
    loss: float = 0.0

    @property
    def speed(self) -> float:
        return self.pictures / self.seconds if self.seconds else 0.0

    @property
    def wait_share(self) -> float:
        return self.waiting / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Outcome:
    """What a training took and gave.

    Attributes:
        progress: at its end.
        cpu_seconds: of the process and its workers; None where the system does not count them.
        accuracy: the share of held-out pictures that the network names rightly.
    """

    progress: Progress
    cpu_seconds: float | None
    accuracy: float


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread: so small a network gains nothing from more.

    Threads that share too few cores with those that decode even make it several times slower.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    loader_of: AbstractContextManager[Any],
    epochs: int,
    classes: int,
    seed: int,
    held_out: Iterable[Any],
    show: Callable[[Progress], object],
) -> Outcome:
    """Train a fresh network.

    Args:
        loader_of: gives the loader when entered. Its start and end are part of the time.
        epochs: how often to go through the loader.
        classes: how many.
        seed: of the network's first weights.
        held_out: batches to measure the accuracy on, outside the time.
        show: called after each batch.
    """
    torch.manual_seed(seed)
    model = network(classes)
    step = _step(model)
    begin, cpu = perf_counter(), _cpu_seconds()
    progress = Progress()
    with loader_of as loader:
        for _ in range(epochs):
            batches = iter(loader)
            while True:
                asked = perf_counter()
                batch = next(batches, None)
                got = perf_counter()
                progress = replace(
                    progress, waiting=progress.waiting + got - asked, seconds=got - begin
                )
                if batch is None:
                    break
                progress = _after(progress, step(*batch), len(batch[1]), begin)
                show(progress)
        del loader, batches
    progress = replace(progress, seconds=perf_counter() - begin)
    spent = None if cpu is None else (_cpu_seconds() or 0.0) - cpu
    return Outcome(progress, spent, _accuracy(model, held_out))


def _after(progress: Progress, loss: float, pictures: int, begin: float) -> Progress:
    late = 0.9 * progress.loss + 0.1 * loss if progress.pictures else loss
    return replace(
        progress,
        pictures=progress.pictures + pictures,
        seconds=perf_counter() - begin,
        loss=late,
    )


def _step(model: nn.Module) -> Callable[[torch.Tensor, torch.Tensor], float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)

    def step(images: torch.Tensor, labels: torch.Tensor) -> float:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch does not say its types
        optimizer.step()
        return loss.item()

    return step


def warm_up(batch: tuple[torch.Tensor, torch.Tensor], classes: int) -> None:
    """Let torch make its kernels, so that the first training does not pay for them alone."""
    step = _step(network(classes))
    for _ in range(3):
        step(*batch)


def _accuracy(model: nn.Module, batches: Iterable[Any]) -> float:
    model.eval()
    right = total = 0
    with torch.inference_mode():
        for images, labels in batches:
            right += int((model(images).argmax(1) == labels).sum())
            total += len(labels)
    return right / total


def _cpu_seconds() -> float | None:
    """Of this process and of those children that have ended; None if workers are not counted.

    Windows does not count them, and those of a fork server are its children, not ours.
    """
    if sys.platform == "win32" or multiprocessing.get_start_method() == "forkserver":
        return None
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
