"""Fifty epochs that are left early cost nothing and spoil nothing."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import sys
import tempfile

import numpy as np
import pytest
from torch.utils.data import default_collate

import stress
from forebay.torch import proxy
from forebay.torch.proxy import Server
from proxies import Numbers, twice

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="what is open is read from Linux's /proc"),
    pytest.mark.slow,
]

MIB = 2**20


@pytest.fixture(autouse=True)
def exact_memory():
    """Have the C library give back what is freed at once, so that what is resident is in use."""
    mmap_threshold = -3  # of glibc's malloc.h; saying it also ends its adaption
    ctypes.CDLL(None).mallopt(mmap_threshold, 2**17)


class Wide(Numbers):
    """Samples of 400 kB, so that a batch of each epoch that is kept would be seen in the memory."""

    def __getitem__(self, index):
        return self.proxy(np.full(100_000, index, np.int32)), index


class EnoughError(Exception):
    pass


def by_break(loader):
    for batch in loader:
        check_wide(batch)
        break


def by_exception(loader):
    try:
        for batch in loader:
            check_wide(batch)
            raise EnoughError  # noqa: TRY301 - as a loop does
    except EnoughError:
        return


def by_dropping_a_generator(loader):
    batches = (check_wide(batch) for batch in loader)
    next(batches)


def check_wide(batch):
    data, labels = batch
    assert (data == labels[:, None] * 2 + 1).all()
    return labels.tolist()


def leave_early(loader, times):
    ways = itertools.cycle([by_break, by_exception, by_dropping_a_generator])
    for way in itertools.islice(ways, times):
        way(loader)


@pytest.mark.parametrize("persistent", [False, True])
def test_fifty_epochs_that_are_left_early_leave_nothing(persistent, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = stress.State.now()
    with Server(twice()) as server:
        loader = proxy.DataLoader(
            server, Wide(server.proxy), 4, num_workers=1, persistent_workers=persistent, timeout=60
        )
        leave_early(loader, 10)
        resident = stress.resident()
        leave_early(loader, 50)
        assert stress.resident() - resident < 40 * MIB  # fifty batches are 80 MB, or more
        assert [label for batch in loader for label in check_wide(batch)] == list(range(23))
        del loader
    del server
    assert stress.State.now() == before


# ── batches that never come out of the worker ────────────────────────────────────────────────────


class CollateError(Exception):
    pass


def labels_alone(samples):
    return default_collate(samples)[1]


def collated_in_vain(samples):
    default_collate(samples)
    raise CollateError


@pytest.mark.parametrize("collate", [labels_alone, collated_in_vain])
def test_batches_that_were_sent_but_never_come_out_of_the_worker_are_freed(collate):
    with Server(twice()) as server:
        loader = proxy.DataLoader(
            server,
            Wide(server.proxy),
            4,
            num_workers=1,
            persistent_workers=True,
            collate_fn=collate,
            timeout=60,
        )
        seen = []
        for _ in range(25):
            batches = iter(loader)
            for _ in range(6):
                with contextlib.suppress(CollateError):
                    next(batches)
            seen.append(stress.resident())
        assert seen[-1] - seen[4] < 40 * MIB  # twenty epochs are 180 MB
        del loader, batches
