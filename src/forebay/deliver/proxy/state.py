"""Where the loop over a loader is, so that a new process can go on from there.

Nothing of an epoch is kept but how its order is drawn again, and how many of its batches were
handed out. Going on draws the order anew and passes over the indices of those.
"""

from __future__ import annotations

import copy
import itertools
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from forebay.deliver.proxy.server import Server
from forebay.errors import ArgumentError
from forebay.operators._rng import node_key

_DRAWING = tuple(c.__iter__ for c in (RandomSampler, SubsetRandomSampler, WeightedRandomSampler))
"""How samplers draw that take torch's global generator if they have none."""

_SETTINGS = ("batch_size", "drop_last", "num_replicas", "seed", "shuffle", "replacement")
"""What is read of samplers, to see whether a state fits."""


class Sources:
    """What the order of a loader's batches comes from: samplers, and generators of the user's.

    Attributes:
        samplers: the one that is asked, then the ones that these ask.
        generators: each once.
    """

    def __init__(self, loader: torch.utils.data.DataLoader[Any]) -> None:
        sampler: Any = loader.sampler if loader.batch_sampler is None else loader.batch_sampler
        self.samplers: list[Any] = []
        while sampler is not None and not any(sampler is known for known in self.samplers):
            self.samplers.append(sampler)
            sampler = getattr(sampler, "sampler", None)
        found = [getattr(owner, "generator", None) for owner in (loader, *self.samplers)]
        self.generators = list(dict.fromkeys(g for g in found if isinstance(g, torch.Generator)))

    def state(self) -> dict[str, Any]:
        """What the next order is drawn from, in plain values."""
        return {
            "generators": [bytes(g.get_state().tolist()).hex() for g in self.generators],
            "samplers": [_state(sampler) for sampler in self.samplers],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        for generator, text in zip(self.generators, state["generators"], strict=True):
            generator.set_state(torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8))
        for sampler, own in zip(self.samplers, state["samplers"], strict=True):
            if "state" in own:
                sampler.load_state_dict(copy.deepcopy(own["state"]))
            if "epoch" in own:
                sampler.set_epoch(own["epoch"])

    def epochs(self) -> list[tuple[Any, int]]:
        """The samplers that are told the epoch, with what they were told."""
        return [(s, s.epoch) for s in self.samplers if _is_told(s)]

    @property
    def rank(self) -> int:
        return next((s.rank for s in self.samplers if hasattr(s, "num_replicas")), 0)

    def settings(self) -> dict[str, Any]:
        """What must be the same for the order to be."""
        names = [type(sampler).__name__ for sampler in self.samplers]
        found: dict[str, Any] = {
            "sampler": " of ".join(names),
            "generators": len(self.generators),
        }
        for name, sampler in zip(names, self.samplers, strict=True):
            for setting in _SETTINGS:
                value = getattr(sampler, setting, None)
                if isinstance(value, int):
                    found[f"{name}.{setting}"] = value
        return found


def _is_told(sampler: Any) -> bool:
    return hasattr(sampler, "set_epoch") and isinstance(getattr(sampler, "epoch", None), int)


def _state(sampler: Any) -> dict[str, Any]:
    found = {}
    if hasattr(sampler, "state_dict") and hasattr(sampler, "load_state_dict"):
        found["state"] = copy.deepcopy(sampler.state_dict())
    if _is_told(sampler):
        found["epoch"] = sampler.epoch
    return found


class Epoch:
    """An epoch of a loader, and how far its loop has come.

    Args:
        number: what its random numbers depend on.
        seed: of the order, where torch would draw it from its global generator.
        sources: of the order.
        had: what `state` gave in another process, to go on from there.

    Attributes:
        step: how many batches the loop has had. What was prefetched does not count.
        first: how many of these it had before it was resumed.
        over: whether the loop has come to the end.
    """

    def __init__(
        self, number: int, seed: int, sources: Sources, had: Mapping[str, Any] | None = None
    ) -> None:
        self.number = number
        self.resumed = had is not None
        self.waiting = self.resumed
        self.over = False
        self.step = self.first = 0 if had is None else had["step"]
        self._seed = seed
        self._sources = sources
        self._origin = had  # as soon as something was drawn
        self._checksum = 0 if had is None else had["checksum"]
        self._drawn = 0
        self._checksums: dict[int, int] = {}  # after each batch that was drawn and not yet had
        self._rest: Iterator[tuple[int, Any]] | None = None

    def state(self) -> dict[str, Any]:
        """Its part of the loader's state."""
        origin = self._origin or self._sources.state()
        return {
            "epoch": self.number,
            "step": self.step,
            "checksum": self._checksum,
            "generators": origin["generators"],
            "samplers": copy.deepcopy(origin["samplers"]),
        }

    def generator(self, use: int) -> torch.Generator:
        """A generator that depends on the epoch and its use alone."""
        return torch.Generator().manual_seed(node_key(node_key(self._seed, self.number), use))

    def resume(self) -> bool:
        """Draw the order of the resumed epoch up to where its loop was; whether there is more.

        Raises ArgumentError: the order is not what it was.
        """
        assert self._origin is not None
        told = self._sources.epochs()
        self._sources.load(self._origin)
        rest = self._draw()
        passed = sum(1 for _ in itertools.islice(rest, self.step))
        if passed < self.step or self._checksum not in (None, self._checksums.get(self.step, 0)):
            raise ArgumentError(
                f"the sampler gives other indices than before: the first {self.step} batches of "
                f"the epoch are not those that the state is of. Its order must be the same in a "
                f"new process: it may draw from a torch generator that it or the loader is given, "
                f"follow set_epoch, or have state_dict and load_state_dict"
            )
        self._checksum = self._checksums.get(self.step, 0)
        self._checksums.clear()
        self.waiting = False
        following = list(itertools.islice(rest, 1))
        self._rest = itertools.chain(following, rest)
        if not following:
            for sampler, epoch in told:
                sampler.set_epoch(epoch)  # for the next one
        return bool(following)

    def batches(self) -> Iterator[tuple[int, Any]]:
        """The batches of indices that the loop has not had yet, with their numbers."""
        rest, self._rest = self._rest, None
        if rest is None:
            self._origin = self._sources.state()
            rest = self._draw()
        return rest

    def _draw(self) -> Iterator[tuple[int, Any]]:
        sampler = _drawing_from(self.generator(0), self._sources.samplers[0])
        checksum = 0
        for batch, indices in enumerate(sampler):
            checksum = self._checksums[batch + 1] = zlib.crc32(_text(indices), checksum)
            self._drawn = batch + 1
            yield batch, indices

    def advance(self, step: int) -> None:
        """The loop has had so many batches."""
        for batch in range(self.step, step):
            self._checksum = self._checksums.pop(batch + 1, self._checksum)
        self.step = max(self.step, step)

    def end(self) -> None:
        """The loop has had all."""
        self.advance(self._drawn)
        self.over = True


def _text(indices: Any) -> bytes:
    # Items one by one: a list shows them by repr, which changes with numpy's version.
    items = indices if isinstance(indices, list | tuple) else [indices]
    return " ".join(map(str, [*items, ""])).encode()


def _drawing_from(generator: torch.Generator, sampler: Any) -> Any:
    """A sampler like this one, with a generator where it would take torch's global one."""
    inner = None
    iterate = getattr(type(sampler), "__iter__", None)
    if iterate is BatchSampler.__iter__:
        inner = _drawing_from(generator, sampler.sampler)
        if inner is sampler.sampler:
            return sampler
    elif iterate not in _DRAWING or sampler.generator is not None:
        return sampler
    sampler = copy.copy(sampler)
    vars(sampler).update({"generator": generator} if inner is None else {"sampler": inner})
    return sampler


def length_of(dataset: Any) -> int | None:
    """The number of its samples; None if it does not say."""
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


class Resumable(torch.utils.data.DataLoader[Any]):
    """A loader that says where its loop is, and goes there.

    Attributes:
        dali_server: numbers the epochs.
    """

    dali_server: Server

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._epoch: list[Epoch] = []  # the one that was begun last, or that waits to go on
        self._order_seed: int | None = None
        self._was_resumed = False
        super().__init__(*args, **kwargs)

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that the latest loop was handed, in plain values.

        It can be saved by `torch.save`, and as JSON if the state of the user's own sampler can.
        """
        epoch = self._epoch[0] if self._epoch else None
        if epoch is None or (epoch.over and self._disorder()):
            epoch = Epoch(self.dali_server.deliveries.desk.begun, self._seed(), Sources(self))
        return {
            "version": 1,
            **epoch.state(),
            "epochs": self.dali_server.deliveries.desk.begun,
            "order_seed": self._seed(),
            "rank": Sources(self).rank,
            "fits": self._settings(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to the place of a state: the next loop gives the rest of that epoch.

        Following loops give the epochs after it. A state that was taken at an epoch's end goes on
        with the next. A loop that is under way is not changed. The indices of batches that were
        handed out are passed over, and not loaded. The number of workers may be another one.

        Raises:
            ArgumentError: the state is of another pipeline's seed, dataset length, sampler or
                number of ranks, or within an epoch whose order cannot be found again.
        """
        self._check(state)
        self._order_seed = state["order_seed"]
        self.dali_server.deliveries.desk.go_on(state["epochs"])
        self._iterator = None  # persistent workers are of the epochs before
        sources = Sources(self)
        sources.load(state)
        begun = state["epoch"] < state["epochs"]
        self._was_resumed = begun
        self._epoch.clear()
        if begun:
            had = copy.deepcopy(dict(state))
            if state["rank"] != sources.rank:
                had["checksum"] = None  # ranks have had as many batches, but others
            self._epoch.append(Epoch(state["epoch"], self._seed(), sources, had))

    def _begin(self) -> Epoch:
        """The epoch of a new loop: the rest of the one that was loaded, or the next."""
        epoch = self._epoch[0] if self._epoch else None
        if epoch is not None and epoch.waiting and epoch.resume():
            self.dali_server.deliveries.desk.begin_epoch(again=epoch.number)
            return epoch
        epoch = Epoch(self.dali_server.deliveries.desk.begin_epoch(), self._seed(), Sources(self))
        self._epoch[:] = [epoch]
        return epoch

    def _worker_seeds(self) -> torch.Generator:
        """What torch's iterator draws the seed of its workers from."""
        epoch, given = self._epoch[0], self.generator
        drawn_before = epoch.resumed or (self.persistent_workers and self._was_resumed)
        return epoch.generator(1) if given is None or drawn_before else given

    def _seed(self) -> int:
        """Of the orders that torch would draw from its global generator."""
        if self._order_seed is None:
            pipeline = self.dali_server.pipeline
            drawn = None if pipeline.seeded else torch.randint(1 << 62, ()).item()
            self._order_seed = pipeline.seed if drawn is None else int(drawn)
        return self._order_seed

    def _disorder(self) -> str | None:
        """Why the middle of an epoch cannot be found again; None if it can."""
        if isinstance(self.dataset, IterableDataset):
            return "an IterableDataset can only be read from its start"
        if self.num_workers and not getattr(self, "in_order", True):  # torch has it since 2.6
            return "with in_order=False it is not known which batches were handed out"
        return None

    def _settings(self) -> dict[str, Any]:
        found = {
            "seed": self.dali_server.pipeline.seed,
            "size": length_of(self.dataset),
            **Sources(self).settings(),
        }
        if self.generator is not None:  # torch's workers draw from it, persistent ones once
            found["persistent_workers"] = self.persistent_workers
        return found

    def _check(self, state: Mapping[str, Any]) -> None:
        if not isinstance(state, Mapping) or state.get("version") != 1 or "fits" not in state:
            raise ArgumentError(
                "this is no state of a proxy's DataLoader, or of another version of forebay"
            )
        theirs, mine = state["fits"], self._settings()
        differing = [name for name in {**theirs, **mine} if theirs.get(name) != mine.get(name)]
        if differing:
            each = "; ".join(
                f"{name}={theirs.get(name)!r}, but this one has {mine.get(name)!r}"
                for name in differing
            )
            hint = "; a pipeline without a seed has another one in each process: give it one"
            raise ArgumentError(
                f"the state is of a loader with {each}. The same batches need the same"
                f"{hint if 'seed' in differing else ''}"
            )
        reason = self._disorder()
        if state["step"] and reason:
            raise ArgumentError(
                f"the state is within an epoch, after {state['step']} batches, but {reason}. Take "
                f"it at the end of an epoch, or use a dataset with indices and in_order=True"
            )
