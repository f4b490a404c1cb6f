"""Pipelines, datasets and checks that the proxy's tests share. Worker processes import them too."""

from __future__ import annotations

import os
import random
import threading
import time
import traceback
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from forebay import fn, pipeline_def

BOUND = 60
"""No wait in a test is longer, whatever goes wrong."""


def twice(batch_size: int = 8, **options: Any) -> Any:
    """One input, one output: 2 x + 1."""

    @pipeline_def(batch_size=batch_size, **{"num_threads": 2, **options})
    def pipe():
        return fn.external_source(name="x") * 2 + 1

    return pipe()


def drawn(batch_size: int = 8, seed: int | None = 5, **options: Any) -> Any:
    """The input as it is, and a random number for each row."""

    @pipeline_def(batch_size=batch_size, seed=seed, **{"num_threads": 2, **options})
    def pipe():
        return fn.external_source(name="x"), fn.random.uniform(range=[0, 1])

    return pipe()


def sum_and_difference(batch_size: int = 8, **options: Any) -> Any:
    """Two inputs, two outputs."""

    @pipeline_def(batch_size=batch_size, **{"num_threads": 2, **options})
    def pipe():
        a = fn.external_source(name="a")
        b = fn.external_source(name="b")
        return a + b, a - b

    return pipe()


def row(index: int) -> np.ndarray[Any, Any]:
    return np.full((3,), index, np.int32)


class Numbers(Dataset):
    """Sample i is row(i) through the proxy, and i."""

    def __init__(self, proxy: Any, size: int = 23) -> None:
        self.proxy = proxy
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        return self.proxy(row(index)), index


class Late(Numbers):
    """Workers take random times, so that batches are made in any order."""

    def __getitem__(self, index: int) -> Any:
        time.sleep(random.random() * 0.01)
        return super().__getitem__(index)


class Failing(Numbers):
    """One index cannot be loaded."""

    def __init__(self, proxy: Any, bad: int, size: int = 23) -> None:
        super().__init__(proxy, size)
        self.bad = bad

    def __getitem__(self, index: int) -> Any:
        sample = super().__getitem__(index)
        if index == self.bad:
            raise KeyError(f"no sample {index}")
        return sample


class Processes(Numbers):
    """Labels are the process that made the sample, and whether it has touched CUDA."""

    def __getitem__(self, index: int) -> Any:
        return self.proxy(row(index)), os.getpid(), torch.cuda.is_initialized()


class Stream(IterableDataset):
    """Each worker gives its share."""

    def __init__(self, proxy: Any, size: int = 23) -> None:
        self.proxy = proxy
        self.size = size

    def __iter__(self):
        worker = get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for index in range(first, self.size, step):
            yield self.proxy(row(index)), index


def as_list(batch: list[Any]) -> list[Any]:
    return batch


def check(batch: Any) -> list[int]:
    """The labels of a batch of `Numbers` through `twice`; its data must belong to them."""
    data, labels = batch
    expected = labels[:, None].expand(-1, 3) * 2 + 1
    assert torch.equal(data, expected.to(data.dtype)), (data, labels)
    return labels.tolist()


def check_all(batches: Any) -> list[int]:
    return [label for batch in batches for label in check(batch)]


def in_thread(function: Any) -> Any:
    """Call a function in another thread; its result, or its exception. Fails if it hangs."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((function(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(BOUND)
    assert not thread.is_alive(), "it hangs"
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


def failure(call: Any) -> BaseException:
    """What a call raises. Its frames are cleared: torch's iterators in them end at once.

    Found by the garbage collector in a cycle, they wait five seconds for their workers.
    """
    try:
        call()
    except Exception as error:
        link: BaseException | None = error
        while link is not None:
            traceback.clear_frames(link.__traceback__)
            link = link.__cause__ or link.__context__
        return error
    raise AssertionError("it did not fail")
