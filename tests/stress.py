"""A random driver of the proxy: rounds of starts, epochs, failures, kills and restarts.

    python tests/stress.py --rounds 500 --seed 1          the rounds of a seed
    python tests/stress.py --seed 1 --only 17             one of them again

A round draws how server, loader and dataset are made, what fails, and how each epoch ends. Every
number that goes through the proxy tells its epoch and its index, so each row that comes out is
known to be right or not. After a round threads, processes, descriptors and shared memory must be
what they were before. A failure prints the command that repeats it.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, default_collate

from forebay import fn, pipeline_def
from forebay.errors import OperatorError
from forebay.torch import proxy
from garbage import collect

BOUND = 120
"""A round that takes longer hangs; in seconds."""

STRIDE = 1000
"""Sample i of epoch e has the number STRIDE * e + i."""


# ── what a round is ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Epoch:
    """How an epoch ends, after how many batches, and the numbers that fail in it."""

    end: str
    after: int
    dataset: frozenset[int]
    operator: frozenset[int]
    collate: frozenset[int]
    sampler: frozenset[int]


@dataclass(frozen=True)
class Round:
    """What was drawn. `elements` are those of a sample, `limit` is the pipeline's batch size."""

    ours: bool
    size: int
    batch: int
    limit: int
    elements: int
    late: bool
    skip: bool
    deterministic: bool
    loader: dict[str, Any] = field(hash=False)
    pipeline: dict[str, Any] = field(hash=False)
    epochs: tuple[Epoch, ...]

    def failing(self, where: str) -> frozenset[int]:
        return frozenset().union(*(getattr(epoch, where) for epoch in self.epochs))


def draw(seed: int, number: int) -> Round:
    rng = random.Random(f"{seed}/{number}")
    size = rng.choice([0, 1, 7, 16, 23, 40])
    batch = rng.randint(1, 9)
    loader: dict[str, Any] = {"num_workers": rng.choice([0, 1, 1, 2, 2, 3])}
    if loader["num_workers"]:
        start = rng.choices(["fork", "forkserver", "spawn"], [40, 4, 1])[0]
        loader |= {
            "multiprocessing_context": start,
            "persistent_workers": rng.random() < 0.4,
            "prefetch_factor": rng.randint(1, 3),
        }
    return Round(
        ours=rng.random() < 0.7,
        size=size,
        batch=batch,
        limit=rng.randint(1, 8),
        elements=rng.choice([1, 3, 20_000]),
        late=rng.random() < 0.5,
        skip=rng.random() < 0.3,
        deterministic=rng.random() < 0.3,
        loader=loader,
        pipeline={"num_threads": rng.randint(1, 3), "prefetch_queue_depth": rng.randint(1, 3)},
        epochs=tuple(draw_epoch(rng, e, size, -(-size // batch)) for e in range(rng.randint(1, 3))),
    )


def draw_epoch(rng: random.Random, epoch: int, size: int, batches: int) -> Epoch:
    def some(share: float) -> frozenset[int]:
        count = rng.randint(1, 3) if rng.random() < share else 0
        return frozenset(STRIDE * epoch + i for i in rng.sample(range(size), min(size, count)))

    return Epoch(
        end=rng.choice(["whole", "whole", "break", "raise", "stop", "kill"]),
        after=rng.randint(0, batches),
        dataset=some(0.2),
        operator=some(0.2),
        collate=some(0.1),
        sampler=some(0.05),
    )


# ── what fails, and what must come out ───────────────────────────────────────────────────────────


class DatasetError(Exception):
    pass


class CollateError(Exception):
    pass


class SamplerError(Exception):
    pass


class LoopError(Exception):
    pass


class Rows:
    """A dataset of numbers through the proxy, each with itself as its label."""

    def __init__(self, call: Any, drawn: Round) -> None:
        self.call = call
        self.drawn = drawn
        self.failing = drawn.failing("dataset")
        self.longer = drawn.failing("operator")

    def __len__(self) -> int:
        return self.drawn.size

    def __getitem__(self, number: int) -> Any:
        if number in self.failing and number % 2:
            raise DatasetError(number)
        if self.drawn.late:
            time.sleep(random.random() * 0.004)
        elements = self.drawn.elements + (number in self.longer)
        ref = self.call(np.full(elements, number, np.int32))
        if number in self.failing:
            raise DatasetError(number)
        return ref, number


def collate(failing: frozenset[int], samples: list[Any]) -> Any:
    if any(number in failing for _, number in samples):
        raise CollateError
    return default_collate(samples)


class Order:
    """A sampler that gives the numbers of an epoch in an order of its own."""

    def __init__(self, drawn: Round) -> None:
        self.drawn = drawn
        self.epoch = 0

    def __len__(self) -> int:
        return self.drawn.size

    def __iter__(self) -> Iterator[int]:
        for number in self.numbers():
            if number in self.drawn.epochs[self.epoch].sampler:
                raise SamplerError
            yield number

    def numbers(self) -> list[int]:
        numbers = [STRIDE * self.epoch + i for i in range(self.drawn.size)]
        random.Random(self.epoch).shuffle(numbers)
        return numbers


def outcomes(drawn: Round, order: Order) -> list[list[int] | type[Exception]]:
    """For each batch of the epoch its rows, or what it raises. Batches passed over are left out."""
    numbers = order.numbers()
    batches = [numbers[i : i + drawn.batch] for i in range(0, len(numbers), drawn.batch)]
    found = [outcome(drawn, drawn.epochs[order.epoch], batch) for batch in batches]
    return [each for each in found if each]


def outcome(drawn: Round, epoch: Epoch, numbers: list[int]) -> list[int] | type[Exception]:
    loaded = [number for number in numbers if number not in epoch.dataset]
    lenient = drawn.skip and drawn.ours
    if loaded != numbers and not lenient:
        return DatasetError
    if epoch.collate.intersection(loaded):
        return CollateError
    good = [number for number in loaded if number not in epoch.operator]
    if good != loaded and not (drawn.skip and (good or lenient)):
        return OperatorError
    return good


# ── a round ──────────────────────────────────────────────────────────────────────────────────────


class Driver:
    """Goes through the epochs of a round. Raises AssertionError if a row is not right."""

    def __init__(self, drawn: Round) -> None:
        self.drawn = drawn

        @pipeline_def(batch_size=drawn.limit, **drawn.pipeline)
        def pipeline():
            doubled = fn.external_source(name="x") * 2 + 1
            return fn.reshape(doubled, shape=[drawn.elements])  # fails with one element more

        self.server = proxy.Server(
            pipeline(), drawn.deterministic, on_error="skip" if drawn.skip else "raise"
        )
        self.order = Order(drawn)
        self.loader = self.load()

    def load(self) -> Any:
        args = Rows(self.server.proxy, self.drawn), self.drawn.batch
        options = {
            "sampler": self.order,
            "collate_fn": partial(collate, self.drawn.failing("collate")),
            **self.drawn.loader,
        }
        if self.drawn.ours:
            return proxy.DataLoader(self.server, *args, **options)
        return DataLoader(*args, **options)

    def run(self) -> None:
        for number, epoch in enumerate(self.drawn.epochs):
            self.order.epoch = number
            with contextlib.suppress(LoopError, SamplerError):
                self.run_epoch(epoch, iter(self.loader))
            if epoch.end == "kill":
                self.loader = self.load()
        self.server.stop_thread()

    def run_epoch(self, epoch: Epoch, batches: Any) -> None:
        for number, expected in enumerate(outcomes(self.drawn, self.order)):
            if number == epoch.after and epoch.end != "whole":
                self.end(epoch.end, batches)
                return
            self.check(batches, expected)
        try:
            batch = next(batches)
        except StopIteration:
            return
        raise AssertionError(f"a batch more than there are: {batch}")

    def check(self, batches: Any, expected: list[int] | type[Exception]) -> None:
        """The next batch must be, or raise, what is expected."""
        raised = expected if isinstance(expected, type) else ()
        try:
            data, labels = self.next(batches)
        except raised:
            return
        assert labels.tolist() == expected, (labels, expected)
        wanted = (labels * 2 + 1)[:, None].expand(-1, self.drawn.elements)
        assert torch.equal(data, wanted.to(torch.int32)), (data, labels)

    def next(self, batches: Any) -> Any:
        batch = next(batches)
        return batch if self.drawn.ours else self.server.produce_data(batch)

    def end(self, how: str, batches: Any) -> None:
        if how == "raise":
            raise LoopError
        if how == "stop":
            self.server.stop_thread()
        if how == "kill":
            self.kill(batches)

    def kill(self, batches: Any) -> None:
        """Kill a worker, and go on until the loop is told of it."""
        workers = getattr(batches._batches if self.drawn.ours else batches, "_workers", ())
        if not workers:
            return
        try:
            os.kill(workers[0].pid, signal.SIGKILL)
            workers[0].join()
            while True:
                self.next(batches)
        except (RuntimeError, OSError, EOFError, StopIteration):
            return
        except (DatasetError, CollateError, SamplerError):
            return


@dataclass
class State:
    """What a round must leave as it was."""

    threads: list[str]
    children: list[int]
    descriptors: Counter[str]
    files: list[str]

    @classmethod
    def now(cls) -> State:
        collect()
        for thread in threading.enumerate():
            if thread.name == "QueueFeederThread":  # torch waits for none of a dead worker
                thread.join(BOUND)
        shared = [p.name for p in Path("/dev/shm").iterdir() if str(os.getpid()) in p.name]
        return cls(
            sorted(thread.name for thread in threading.enumerate()),
            sorted(process.pid or 0 for process in multiprocessing.active_children()),
            Counter(descriptors()),
            sorted([*shared, *map(str, Path(tempfile.gettempdir()).iterdir()), *segments()]),
        )


def descriptors() -> Iterator[str]:
    """The kind of each open descriptor."""
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            yield str(link.readlink()).split(":[")[0]


def segments() -> list[str]:
    """Shared memory of the proxy that is mapped."""
    return [
        line for line in Path("/proc/self/maps").read_text().splitlines() if "memfd:fore" in line
    ]


def resident() -> int:
    """Bytes of this process that are in memory, without what the C library keeps for later."""
    with contextlib.suppress(AttributeError):  # it is not glibc
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def play(drawn: Round) -> None:
    """Play a round. Raises AssertionError if a row is wrong or something is left behind."""
    before = State.now()
    faulthandler.dump_traceback_later(BOUND, exit=True)
    try:
        Driver(drawn).run()
    finally:
        faulthandler.cancel_dump_traceback_later()
    after = State.now()
    assert after == before, f"left behind:\n{before}\n{after}"


def prepare() -> None:
    """Make once what Python keeps: the fork server, the resource tracker, torch's threads."""
    warnings.simplefilter("ignore")
    multiprocessing.resource_tracker.ensure_running()
    multiprocessing.set_forkserver_preload(["stress"])
    multiprocessing.forkserver.ensure_running()
    with contextlib.suppress(AssertionError):
        play(draw(0, 0))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, help="play this round alone")
    args = parser.parse_args()
    numbers = range(args.first, args.first + args.rounds) if args.only is None else [args.only]
    prepare()
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        for number in numbers:
            drawn = draw(args.seed, number)
            print(f"{number:4} {drawn}", flush=True)
            try:
                play(drawn)
            except BaseException:  # whatever it is, it is told how to have it again
                faulthandler.dump_traceback_later(BOUND, exit=True)
                traceback.print_exc()
                again = f"python {sys.argv[0]} --seed {args.seed} --only {number}"
                print(f"round {number} failed; it is repeated by\n    {again}", flush=True)
                return 1
    print(f"{len(numbers)} rounds of seed {args.seed} are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
