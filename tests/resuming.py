"""Loaders of all kinds that are left and resumed; also run by the new process that resumes them."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DistributedSampler, Sampler, WeightedRandomSampler

from forebay.torch import proxy
from proxies import Numbers, drawn

SIZE = 23
BATCHES = 6
EPOCH = 1  # in which loops are left
PLACES = ["before", 0, 3, 5, "last", "end"]
"""Where states are taken: before all epochs, then within one, and after its loop."""

Batches = list[tuple[list[int], list[float]]]
"""The indices of each batch, and the random number of each row."""


class Rotated(Sampler[int]):
    """Begins one later in each epoch, and has a state of its own."""

    def __init__(self) -> None:
        self.begun = 0

    def __len__(self) -> int:
        return SIZE

    def __iter__(self) -> Iterator[int]:
        first, self.begun = self.begun, self.begun + 1
        return iter([(first + i) % SIZE for i in range(SIZE)])

    def state_dict(self) -> dict[str, int]:
        return {"begun": self.begun}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.begun = state["begun"]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(torch.initial_seed())


def distributed(shuffle: bool) -> Callable[[Any], dict[str, Any]]:
    return lambda dataset: {
        "sampler": DistributedSampler(dataset, 2, 1, shuffle=shuffle, seed=3),
        "batch_size": 2,
    }


KINDS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "in order": lambda _: {},
    "shuffled": lambda _: {"shuffle": True},
    "shuffled, dropping": lambda _: {"shuffle": True, "drop_last": True, "batch_size": 3},
    "samples": lambda _: {"shuffle": True, "batch_size": None},
    "generator": lambda _: {"shuffle": True, "generator": generator()},
    "weighted": lambda _: {"sampler": WeightedRandomSampler(range(1, SIZE + 1), SIZE)},
    "distributed": distributed(shuffle=True),
    "distributed, in order": distributed(shuffle=False),
    "batches": lambda _: {
        "batch_sampler": [[3, 4], [5], [0], [1, 1], [2], [22]],
        "batch_size": 1,
    },
    "own sampler": lambda _: {"sampler": Rotated()},
    "persistent": lambda _: {"shuffle": True, "persistent_workers": True},
    "persistent, generator": lambda _: {
        "shuffle": True,
        "persistent_workers": True,
        "generator": generator(),
    },
}


def make(server: proxy.Server, kind: str, workers: int) -> proxy.DataLoader:
    dataset = Numbers(server.proxy, SIZE)
    options = {"batch_size": 4, **KINDS[kind](dataset), "num_workers": workers}
    if workers:
        options["timeout"] = 60
    else:
        options.pop("persistent_workers", None)
    return proxy.DataLoader(server, dataset, **options)


def tell(loader: proxy.DataLoader, epoch: int) -> None:
    """What a training script does at the begin of each epoch."""
    if hasattr(loader.sampler, "set_epoch"):
        loader.sampler.set_epoch(epoch)


def seen(batch: Any) -> tuple[list[int], list[float]]:
    (data, numbers), labels = batch
    labels = torch.as_tensor(labels)
    assert torch.equal(data[..., 0], labels.to(data.dtype))
    return labels.reshape(-1).tolist(), numbers.reshape(-1).tolist()


def read(loader: proxy.DataLoader, epoch: int) -> Batches:
    tell(loader, epoch)
    return [seen(batch) for batch in loader]


def whole(kind: str, workers: int, epochs: int) -> list[Batches]:
    """A run that nothing interrupts."""
    with proxy.Server(drawn()) as server:
        loader = make(server, kind, workers)
        found = [read(loader, epoch) for epoch in range(epochs)]
        del loader
        return found


def left(kind: str, workers: int) -> dict[Any, Any]:
    """Place → the state there."""
    with proxy.Server(drawn()) as server:
        loader = make(server, kind, workers)
        states = {"before": loader.state_dict()}
        for epoch in range(EPOCH):
            read(loader, epoch)
        tell(loader, EPOCH)
        iterator = iter(loader)
        states[0] = loader.state_dict()
        for number, _ in enumerate(iterator, 1):
            states[number] = states["last"] = loader.state_dict()
        states["end"] = loader.state_dict()
        del iterator, loader
        return states


def resumed(kind: str, workers: int, place: Any, state: Any) -> list[Batches]:
    """The rest of the epoch, and the next."""
    with proxy.Server(drawn()) as server:
        loader = make(server, kind, workers)
        loader.load_state_dict(state)
        # Of an epoch that is over, the script knows as much as its own checkpoint says.
        first = {"before": 0, "last": EPOCH + 1, "end": EPOCH + 1}.get(place, EPOCH)
        found = [read(loader, first), read(loader, first + 1)]
        del loader
        return found


def resume_all(path: str) -> None:
    """What the new process does: (kind, workers, place) → state becomes → batches, or the error."""
    torch.manual_seed(77)
    states = torch.load(path, weights_only=True)
    results: dict[Any, Any] = {}
    for case, state in states.items():
        try:
            results[case] = resumed(*case, state)
        except Exception:
            results[case] = traceback.format_exc()
    torch.save(results, path)


if __name__ == "__main__":
    resume_all(sys.argv[1])
