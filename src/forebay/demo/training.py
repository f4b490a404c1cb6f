"""A small network, its training, and what the training costs."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Self

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

    @property
    def cpu_per_picture(self) -> float | None:
        """CPU seconds a picture, which depend less on what else the machine does than time does."""
        return None if self.cpu_seconds is None else self.cpu_seconds / self.progress.pictures


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


class Training:
    """A fresh network, and its training, an epoch at a time. While entered it has its loader.

    What is done between its epochs is not counted: several trainings can take turns.

    Args:
        loader_of: gives the loader when entered. Its start and end are part of the time.
        classes: how many.
        seed: of the network's first weights.
        show: called after each batch.
    """

    def __init__(
        self,
        loader_of: AbstractContextManager[Any],
        classes: int,
        seed: int,
        show: Callable[[Progress], object],
    ) -> None:
        torch.manual_seed(seed)
        self._model = network(classes)
        self._step = _step(self._model)
        self._loader_of = loader_of
        self._loader: Any = None
        self._show = show
        self._progress = Progress()
        self._cpu: float | None = 0.0

    def __enter__(self) -> Self:
        with self._counted():
            self._loader = self._loader_of.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        with self._counted():
            self._loader = None  # its workers end with it
            self._loader_of.__exit__(*error)

    def epoch(self) -> None:
        """Go through the loader once."""
        with self._counted() as seconds:
            batches = iter(self._loader)
            while True:
                asked = seconds()
                batch = next(batches, None)
                got = seconds()
                progress = self._progress
                self._progress = replace(
                    progress, waiting=progress.waiting + got - asked, seconds=got
                )
                if batch is None:
                    break
                loss = self._step(*batch)
                self._progress = _after(self._progress, loss, len(batch[1]), seconds())
                self._show(self._progress)

    @contextmanager
    def _counted(self) -> Iterator[Callable[[], float]]:
        """Add what is done to the time and the CPU seconds. Gives the training's clock."""
        cpu, begin = _cpu_seconds(), perf_counter() - self._progress.seconds
        try:
            yield lambda: perf_counter() - begin
        finally:
            self._progress = replace(self._progress, seconds=perf_counter() - begin)
            now = _cpu_seconds()
            spent = None if cpu is None or now is None else now - cpu
            self._cpu = None if self._cpu is None or spent is None else self._cpu + spent

    def outcome(self, held_out: Iterable[Any]) -> Outcome:
        """What it took. The accuracy is measured on these batches, outside the time."""
        return Outcome(self._progress, self._cpu, _accuracy(self._model, held_out))


def _after(progress: Progress, loss: float, pictures: int, seconds: float) -> Progress:
    late = 0.9 * progress.loss + 0.1 * loss if progress.pictures else loss
    return replace(
        progress,
        pictures=progress.pictures + pictures,
        seconds=seconds,
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
