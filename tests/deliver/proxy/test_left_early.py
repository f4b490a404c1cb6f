"""Fifty epochs that are left early cost nothing and spoil nothing."""

from __future__ import annotations

import sys

import pytest

import stress
from forebay.torch import proxy
from forebay.torch.proxy import Server
from proxies import Numbers, twice

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="what is open is read from Linux's /proc"),
    pytest.mark.slow,
]

MIB = 2**20


class Wide(Numbers):
    """Samples of 400 kB, so that a batch of each epoch that is kept would be seen in the memory."""

    def __getitem__(self, index):
        return self.proxy([index] * 50_000), index


class Enough(Exception):
    pass


def by_break(loader):
    for batch in loader:
        check_wide(batch)
        break


def by_exception(loader):
    try:
        for batch in loader:
            check_wide(batch)
            raise Enough
    except Enough:
        return


def by_dropping_a_generator(loader):
    batches = (check_wide(batch) for batch in loader)
    next(batches)


def check_wide(batch):
    data, labels = batch
    assert (data == labels[:, None] * 2 + 1).all()
    return labels.tolist()


@pytest.mark.parametrize("leave", [by_break, by_exception, by_dropping_a_generator])
@pytest.mark.parametrize("persistent", [False, True])
def test_fifty_epochs_that_are_left_early_leave_nothing(leave, persistent):
    with Server(twice()) as server:
        loader = proxy.DataLoader(
            server, Wide(server.proxy), 4, num_workers=1, persistent_workers=persistent, timeout=60
        )
        for _ in range(10):
            leave(loader)
        before, resident = stress.State.now(), stress.resident()
        for _ in range(50):
            leave(loader)
        after = stress.State.now()
        assert after == before
        assert stress.resident() - resident < 40 * MIB  # fifty batches are 80 MB, or more
        assert [label for batch in loader for label in check_wide(batch)] == list(range(23))
        del loader
