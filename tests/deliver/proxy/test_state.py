"""A loop that was left goes on in a new process, as if nothing had happened."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DistributedSampler, Sampler, WeightedRandomSampler

import forebay
import resuming
from forebay.errors import ArgumentError
from forebay.torch import proxy
from proxies import BOUND, Failing, Numbers, Stream, drawn
from resuming import EPOCH, KINDS, PLACES, SIZE, left, make, read, seen, whole

pytestmark = pytest.mark.filterwarnings(
    "ignore:This DataLoader will create", "ignore:.*samples failed and were:UserWarning"
)

WORKERS = (0, 2)


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    """(kind, workers, place) → what the new process got."""
    torch.manual_seed(5)
    states = {
        (kind, workers, place): state
        for kind in KINDS
        for workers in WORKERS
        for place, state in left(kind, workers).items()
        if place in PLACES
    }
    path = tmp_path_factory.mktemp("states") / "states.pt"
    torch.save(states, path)
    folders = [Path(forebay.__file__).parents[1], Path(resuming.__file__).parent]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", resuming.__file__, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return torch.load(path, weights_only=True)


@pytest.fixture(scope="module")
def expected():
    """Kind and workers → three epochs that nothing interrupts. Each is asked for once."""
    runs: dict[Any, Any] = {}

    def run(kind, workers):
        if (kind, workers) not in runs:
            torch.manual_seed(5)
            runs[kind, workers] = whole(kind, workers, EPOCH + 3)
        return runs[kind, workers]

    return run


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_process_goes_on_as_if_nothing_had_happened(kind, workers, place, resumed, expected):
    epochs = expected(kind, workers)
    if place == "before":
        wanted = epochs[:2]
    elif place in ("last", "end"):
        wanted = epochs[EPOCH + 1 : EPOCH + 3]
    else:
        wanted = [epochs[EPOCH][place:], epochs[EPOCH + 1]]
    assert resumed[kind, workers, place] == wanted


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "persistent, generator"])
def test_the_expected_epochs_do_not_depend_on_the_workers(kind, expected):
    assert expected(kind, 0) == expected(kind, 2)


@pytest.mark.parametrize("kind", ["shuffled", "generator", "distributed", "weighted"])
def test_shuffled_epochs_differ(kind, expected):
    orders = [tuple(i for indices, _ in epoch for i in indices) for epoch in expected(kind, 0)]
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0)])
def test_the_number_of_workers_may_change(before, after, expected):
    torch.manual_seed(5)
    state = left("generator", before)[3]
    epochs = expected("generator", 0)
    wanted = [epochs[EPOCH][3:], epochs[EPOCH + 1]]
    assert resuming.resumed("generator", after, 3, state) == wanted


# ── the state ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def server():
    with proxy.Server(drawn()) as made:
        yield made


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_that_was_loaded_is_given_again(kind, server):
    for state in left(kind, 0).values():
        loader = make(server, kind, 0)
        loader.load_state_dict(state)
        assert loader.state_dict() == state


def test_a_state_is_plain_values(server, tmp_path):
    state = left("generator", 0)[3]
    assert json.loads(json.dumps(state)) == state
    torch.save(state, tmp_path / "state.pt")
    assert torch.load(tmp_path / "state.pt", weights_only=True) == state
    assert state["epoch"] == EPOCH
    assert state["step"] == 3


def test_a_state_does_not_change_when_the_loop_goes_on(server):
    loader = make(server, "own sampler", 0)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    kept = json.loads(json.dumps(state))
    list(iterator)
    assert state == kept
    assert loader.state_dict() != kept


class Asked(Numbers):
    """Keeps which samples it was asked for."""

    def __init__(self, proxy: Any) -> None:
        super().__init__(proxy, SIZE)
        self.asked: list[int] = []

    def __getitem__(self, index: int) -> Any:
        self.asked.append(index)
        return super().__getitem__(index)


def test_what_was_had_before_is_not_loaded_again(server):
    options = {"batch_size": 4, "shuffle": True}
    loader = proxy.DataLoader(server, Asked(server.proxy), **options)
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    state = loader.state_dict()
    rest = [i for batch in iterator for i in seen(batch)[0]]
    dataset = Asked(server.proxy)
    again = proxy.DataLoader(server, dataset, **options)
    again.load_state_dict(state)
    assert [i for batch in again for i in seen(batch)[0]] == rest
    assert dataset.asked == rest
    assert len(rest) == SIZE - 16


def test_a_loop_leaves_torchs_global_generator_alone(server):
    """So a training step draws the same after going on."""
    loader = make(server, "shuffled", 0)
    before = torch.get_rng_state()
    read(loader, 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_without_a_seed_of_the_pipeline_torchs_global_one_decides_the_order():
    def order(seed):
        torch.manual_seed(seed)
        with proxy.Server(drawn(seed=None)) as server:
            return [i for indices, _ in read(make(server, "shuffled", 0), 0) for i in indices]

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_loaders_of_one_server_do_not_have_the_same_order(server):
    a, b = make(server, "shuffled", 0), make(server, "shuffled", 0)
    pairs = [(seen(left), seen(right)) for left, right in zip(a, b, strict=True)]
    assert [i for (i, _), _ in pairs] != [i for _, (i, _) in pairs]


# ── going back, and other loops ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("kind", ["shuffled", "generator", "persistent", "persistent, generator"])
def test_a_loader_can_go_back(kind, workers, server):
    loader = make(server, kind, workers)
    start = loader.state_dict()
    epochs = [read(loader, 0)]
    iterator = iter(loader)
    epochs.append([seen(next(iterator)) for _ in range(2)])
    middle = loader.state_dict()
    epochs[1] += [seen(batch) for batch in iterator]
    epochs += [read(loader, 2), read(loader, 3)]
    del iterator
    for _ in range(2):
        loader.load_state_dict(middle)
        assert read(loader, 1) == epochs[1][2:]
        assert read(loader, 2) == epochs[2]
    loader.load_state_dict(middle)
    assert read(loader, 1) == epochs[1][2:]
    loader.load_state_dict(start)
    assert [read(loader, epoch) for epoch in range(4)] == epochs
    del loader


@pytest.mark.parametrize("workers", WORKERS)
def test_a_state_loaded_during_a_loop_is_for_the_next(workers, server):
    loader = make(server, "persistent", workers)
    iterator = iter(loader)
    first = [seen(next(iterator))]
    state = loader.state_dict()
    first += [seen(next(iterator)) for _ in range(2)]
    loader.load_state_dict(state)
    assert loader.state_dict() == state
    first += [seen(batch) for batch in iterator]
    assert loader.state_dict() == state
    assert sorted(i for indices, _ in first for i in indices) == list(range(SIZE))
    assert read(loader, 0) == first[1:]
    del iterator, loader


def test_of_several_loops_the_latest_counts(server):
    loader = make(server, "generator", 0)
    older, newer = iter(loader), iter(loader)
    next(older)
    next(newer)
    next(older)
    state = loader.state_dict()
    rest = [seen(batch) for batch in newer]
    loader.load_state_dict(state)
    assert read(loader, 0) == rest


@pytest.mark.parametrize("loading", [("train", "test"), ("test", "train")])
def test_loaders_of_one_server_go_on_together(loading):
    """Testing in the middle of an epoch, as training scripts do."""

    def loaders(server):
        return {"train": make(server, "shuffled", 0), "test": make(server, "in order", 0)}

    def tested(its):
        return [*read(its["test"], 0), *(seen(batch) for batch in its["train"])]

    with proxy.Server(drawn()) as server:
        its = loaders(server)
        read(its["train"], 0)
        read(its["test"], 0)
        iterator = iter(its["train"])
        next(iterator)
        states = {"test": its["test"].state_dict()}
        read(its["test"], 0)
        next(iterator)
        states["train"] = its["train"].state_dict()
        wanted = [seen(batch) for batch in iterator] + tested(its)
    with proxy.Server(drawn()) as server:
        its = loaders(server)
        for name in loading:
            its[name].load_state_dict(states[name])
        found = [seen(batch) for batch in its["train"]]
        assert found + tested(its) == wanted


def test_an_epoch_that_was_told_in_the_new_process_counts_from_the_next(expected):
    torch.manual_seed(5)
    state = left("distributed", 0)[3]
    with proxy.Server(drawn()) as server:
        loader = make(server, "distributed", 0)
        loader.load_state_dict(state)
        assert read(loader, 0) == expected("distributed", 0)[EPOCH][3:]
        assert read(loader, EPOCH + 1) == expected("distributed", 0)[EPOCH + 1]


# ── batches that fail ────────────────────────────────────────────────────────────────────────────


class Gap(Numbers):
    """The samples of the second and the last batch cannot be loaded."""

    def __getitem__(self, index: int) -> Any:
        if 4 <= index < 8 or index >= 20:
            raise ValueError(f"no sample {index}")
        return super().__getitem__(index)


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_that_were_passed_over_count(workers):
    def loader(server):
        return proxy.DataLoader(server, Gap(server.proxy, SIZE), batch_size=4, num_workers=workers)

    with proxy.Server(drawn(), on_error="skip") as server:
        made = loader(server)
        iterator = iter(made)
        assert [seen(next(iterator))[0][0] for _ in range(2)] == [0, 8]
        state = made.state_dict()
        rest = [seen(batch) for batch in iterator]
        over = made.state_dict()
        following = read(made, 0)
        del iterator
    assert state["step"] == 3
    assert over["step"] == 6
    for taken, wanted in ((state, rest), (over, following)):
        with proxy.Server(drawn(), on_error="skip") as server:
            made = loader(server)
            made.load_state_dict(taken)
            assert read(made, 0) == wanted


@pytest.mark.parametrize("workers", WORKERS)
def test_a_batch_that_raised_comes_again_unless_a_later_one_was_had(workers, server):
    loader = proxy.DataLoader(
        server, Failing(server.proxy, 5, SIZE), batch_size=4, num_workers=workers
    )
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(KeyError, match="no sample 5"):
        next(iterator)
    assert loader.state_dict()["step"] == 1
    if workers:
        assert seen(next(iterator))[0] == [8, 9, 10, 11]
        assert loader.state_dict()["step"] == 3
    del iterator


class Stuck(Numbers):
    """Its second batch waits for an event."""

    def __init__(self, proxy: Any, event: Any) -> None:
        super().__init__(proxy, SIZE)
        self.event = event

    def __getitem__(self, index: int) -> Any:
        if index == 4:
            self.event.wait(BOUND)
        return super().__getitem__(index)


def test_waiting_in_vain_for_a_batch_does_not_count(server):
    event = multiprocessing.get_context("fork").Event()
    dataset = Stuck(server.proxy, event)
    loader = proxy.DataLoader(server, dataset, batch_size=4, num_workers=1, timeout=1)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(RuntimeError, match="timed out"):
        next(iterator)
    event.set()
    assert seen(next(iterator))[0] == [4, 5, 6, 7]
    assert loader.state_dict()["step"] == 2
    del iterator


# ── what does not fit ────────────────────────────────────────────────────────────────────────────


def refused(state, *, seed=5, size=SIZE, **options):
    """The text with which a loader refuses a state."""
    with proxy.Server(drawn(seed=seed)) as server:
        dataset = Numbers(server.proxy, size)
        options = {k: v(dataset) if callable(v) else v for k, v in options.items()}
        loader = proxy.DataLoader(server, dataset, **{"batch_size": 4, **options})
        with pytest.raises(ArgumentError) as caught:
            loader.load_state_dict(state)
        assert loader.state_dict()["epoch"] == 0
        return str(caught.value)


def ranks(count, **options):
    return lambda dataset: DistributedSampler(dataset, count, 1, **{"seed": 3, **options})


def test_what_differs_is_named():
    state = left("shuffled", 0)[3]
    assert "size=23, but this one has 24" in refused(state, size=24, shuffle=True)
    text = refused(state, seed=6, shuffle=True)
    assert "seed=5, but this one has 6" in text
    assert "give it one" in text
    text = refused(state)
    assert "sampler='BatchSampler of RandomSampler', but" in text
    assert "'BatchSampler of SequentialSampler'" in text
    assert "batch_size=4, but this one has 5" in refused(state, batch_size=5, shuffle=True)
    assert "drop_last=False, but" in refused(state, drop_last=True, shuffle=True)
    state = left("distributed", 0)[3]
    text = refused(state, batch_size=2, sampler=ranks(3))
    assert "num_replicas=2, but this one has 3" in text
    assert "seed" not in text
    assert "Sampler.seed=3, but" in refused(state, batch_size=2, sampler=ranks(2, seed=4))
    assert "shuffle=True, but" in refused(state, batch_size=2, sampler=ranks(2, shuffle=False))


def test_all_that_differs_is_named():
    text = refused(left("shuffled", 0)[3], size=24, seed=6)
    for name in ("size=23", "seed=5", "sampler="):
        assert name in text


def test_a_pipeline_without_a_seed_is_advised_to_have_one():
    assert "give it one" in refused(left("shuffled", 0)[3], seed=None, shuffle=True)


def test_what_is_no_state_is_refused():
    for wrong in ({}, {"version": 2, "fits": {}}, None):
        assert "no state of a proxy's DataLoader" in refused(wrong)


def test_persistent_workers_must_be_the_same_if_torch_draws_from_the_users_generator():
    state = left("persistent, generator", 2)[3]
    text = refused(state, shuffle=True, generator=torch.Generator())
    assert "persistent_workers=True, but this one has False" in text


def test_a_state_of_one_rank_goes_for_the_others():
    def options(server, rank):
        dataset = Numbers(server.proxy, SIZE)
        return dataset, {"batch_size": 2, "sampler": DistributedSampler(dataset, 2, rank)}

    with proxy.Server(drawn()) as server:
        dataset, mine = options(server, 0)
        loader = proxy.DataLoader(server, dataset, **mine)
        iterator = iter(loader)
        for _ in range(3):
            next(iterator)
        state = loader.state_dict()
    with proxy.Server(drawn()) as server:
        dataset, others = options(server, 1)
        wanted = read(proxy.DataLoader(server, dataset, **others), 0)[3:]
        other = proxy.DataLoader(server, dataset, **others)
        other.load_state_dict(state)
        assert [seen(batch) for batch in other] == wanted


class Unknown(Sampler[int]):
    """Draws from numpy's global generator, of which nobody knows."""

    def __len__(self) -> int:
        return SIZE

    def __iter__(self):
        yield from np.random.permutation(SIZE).tolist()


@pytest.mark.parametrize("place", [1, 6])
@pytest.mark.parametrize("workers", WORKERS)
def test_a_sampler_whose_order_cannot_be_found_again_is_refused(workers, place, server):
    np.random.seed(0)
    loader = proxy.DataLoader(
        server,
        Numbers(server.proxy, SIZE),
        batch_size=4,
        sampler=Unknown(),
        num_workers=workers,
    )
    iterator = iter(loader)
    for _ in range(place):
        next(iterator)
    loader.load_state_dict(loader.state_dict())
    with pytest.raises(ArgumentError, match=f"first {place} batches.*set_epoch.*state_dict"):
        iter(loader)
    del iterator


def test_weights_that_changed_are_refused_at_the_begin_of_the_loop(server):
    state = left("weighted", 0)[3]
    dataset = Numbers(server.proxy, SIZE)
    sampler = WeightedRandomSampler([1, *[0.001] * 22], SIZE)
    loader = proxy.DataLoader(server, dataset, batch_size=4, sampler=sampler)
    loader.load_state_dict(state)
    with pytest.raises(ArgumentError, match="other indices than before"):
        iter(loader)


@pytest.mark.parametrize("options", [{}, {"in_order": False}], ids=["stream", "any order"])
def test_an_epoch_without_order_goes_on_at_its_end_only(options):
    def loader(server):
        dataset = Numbers(server.proxy, SIZE) if options else Stream(server.proxy, SIZE)
        return proxy.DataLoader(server, dataset, batch_size=4, num_workers=2, **options)

    def epoch(loader):
        return {i: n for batch in read(loader, 0) for i, n in zip(*batch, strict=True)}

    with proxy.Server(drawn()) as server:
        made = loader(server)
        iterator = iter(made)
        next(iterator)
        within = made.state_dict()
        list(iterator)
        over = made.state_dict()
        following = epoch(made)
        del iterator
    assert sorted(following) == list(range(SIZE))
    with proxy.Server(drawn()) as server:
        again = loader(server)
        with pytest.raises(ArgumentError, match=r"after \d batches, but .*end of an epoch"):
            again.load_state_dict(within)
        again.load_state_dict(over)
        assert epoch(again) == following
