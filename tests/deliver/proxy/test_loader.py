"""Loaders: ours and torch's, with any workers, in any order, left early, killed, interleaved."""

from __future__ import annotations

import collections
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Sampler,
    Subset,
    default_collate,
)

from forebay.errors import ArgumentError, ProxyError
from forebay.torch import proxy
from forebay.torch.proxy import Server
from naming import stable
from proxies import (
    BOUND,
    Failing,
    Late,
    Numbers,
    Processes,
    Stream,
    check,
    check_all,
    drawn,
    failure,
    in_thread,
    row,
    twice,
)

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

ALL = list(range(23))


@pytest.fixture
def server():
    with Server(twice()) as made:
        yield made


def load(server, dataset=None, batch_size=4, **options):
    if options.get("num_workers"):
        options.setdefault("timeout", 30)
    dataset = Numbers(server.proxy) if dataset is None else dataset
    return proxy.DataLoader(server, dataset, batch_size=batch_size, **options)


# ── what it takes ────────────────────────────────────────────────────────────────────────────────


def test_it_is_torchs_loader_and_takes_dalis_keyword(server):
    loader = proxy.DataLoader(
        dali_server=server, dataset=Numbers(server.proxy), batch_size=4, drop_last=True
    )
    assert isinstance(loader, DataLoader)
    assert len(loader) == 5
    assert check_all(loader) == ALL[:20]


def test_the_server_must_be_there(server):
    dataset = Numbers(server.proxy)
    with pytest.raises(ArgumentError, match=r"first argument.*is the server.*NoneType"):
        proxy.DataLoader(None, dataset)
    with pytest.raises(
        TypeError, match=r"is the server, but got Numbers: proxy\.DataLoader\(server"
    ):
        proxy.DataLoader(dataset, batch_size=4)
    with pytest.raises(TypeError, match="is the server"):
        proxy.DataLoader(dataset, dataset)


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_epochs_are_whole_and_in_order(server, workers):
    loader = load(server, num_workers=workers)
    for _ in range(2):
        batches = list(loader)
        assert [len(labels) for _, labels in batches] == [4, 4, 4, 4, 4, 3]
        assert check_all(batches) == ALL


@pytest.mark.parametrize("workers", [0, 2])
def test_torchs_loader_gives_the_same(server, workers):
    loader = DataLoader(Numbers(server.proxy), batch_size=4, num_workers=workers)
    for _ in range(2):
        assert check_all(map(server.produce_data, loader)) == ALL


@pytest.mark.parametrize(
    "method",
    [
        "fork",
        pytest.param("spawn", marks=pytest.mark.slow),
        pytest.param("forkserver", marks=pytest.mark.slow),
    ],
)
def test_workers_may_start_in_any_way(server, method):
    assert method in multiprocessing.get_all_start_methods()
    options = {"num_workers": 1, "multiprocessing_context": method, "timeout": 90}
    loader = load(server, persistent_workers=True, **options)
    assert check_all(loader) == ALL
    assert check_all(loader) == ALL
    del loader
    assert check_all(load(server, Stream(server.proxy), worker_init_fn=seeded, **options)) == ALL


def seeded(worker):
    torch.manual_seed(worker)


@pytest.mark.parametrize("workers", [0, 2])
def test_persistent_workers_or_none_do_many_epochs(server, workers):
    loader = load(server, num_workers=workers, persistent_workers=workers > 0)
    for _ in range(4):
        assert check_all(loader) == ALL
    del loader


@pytest.mark.parametrize(
    "options",
    [
        {"prefetch_factor": 1},
        {"prefetch_factor": 4},
        {"pin_memory": True},
        {"worker_init_fn": seeded},
        {"in_order": False},
    ],
    ids=stable,
)
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")
def test_torchs_options_are_kept(server, options):
    assert sorted(check_all(load(server, num_workers=2, **options))) == ALL


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")
def test_memory_may_be_pinned_without_workers(server):
    assert check_all(load(server, pin_memory=True)) == ALL


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("dataset", [Numbers, Stream])
def test_the_last_batch_may_be_dropped(server, dataset, drop_last, workers):
    loader = load(server, dataset(server.proxy), drop_last=drop_last, num_workers=workers)
    sizes = sorted(len(labels) for _, labels in loader)
    assert sizes == [3] * (not drop_last) + [4] * 5  # of two workers, one has 12 samples
    assert len(check_all(loader)) == (20 if drop_last else 23)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sampler_of_the_users_own(server, workers):
    loader = load(server, sampler=ALL[::-2], num_workers=workers)
    for _ in range(2):
        assert check_all(loader) == ALL[::-2]


@pytest.mark.parametrize("workers", [0, 2])
def test_shuffling_gives_every_row_once_in_the_generators_order(server, workers):
    def order(seed):
        generator = torch.Generator().manual_seed(seed)
        return check_all(load(server, shuffle=True, generator=generator, num_workers=workers))

    first = order(3)
    assert sorted(first) == ALL
    assert first == order(3)
    assert first != order(4)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_sampler_with_changing_sizes(server, workers):
    batches = [[3], [1, 2, 5, 7, 9, 11, 13, 15, 17, 19, 21], [0, 0]]
    loader = proxy.DataLoader(
        server, Numbers(server.proxy), batch_sampler=batches, num_workers=workers
    )
    assert [check(batch) for batch in loader] == batches


@pytest.mark.parametrize("workers", [0, 2])
def test_streams_of_samples(server, workers):
    loader = load(server, Stream(server.proxy), num_workers=workers)
    for _ in range(2):
        assert sorted(check_all(loader)) == ALL


def test_subsets_and_concatenations(server):
    numbers = Numbers(server.proxy)
    dataset = ConcatDataset([Subset(numbers, [5, 3]), numbers])
    assert check_all(load(server, dataset, num_workers=2)) == [5, 3, *ALL]


def test_a_dataset_that_never_calls_the_proxy(server):
    loader = load(server, [1, 2, 3], batch_size=2, num_workers=1)
    assert [batch.tolist() for batch in loader] == [[1, 2], [3]]


Record = collections.namedtuple("Record", ["data", "label"])


def as_record(batch):
    data, labels = zip(*batch, strict=True)
    return {"record": Record(default_collate(list(data)), list(labels)), "text": "kept"}


def without_thirds(batch):
    return default_collate([sample for sample in batch if sample[1] % 3])


def reversed_without_first(batch):
    return default_collate(batch[:0:-1])


@pytest.mark.parametrize("workers", [0, 2])
def test_custom_collate_functions(server, workers):
    for batch in load(server, collate_fn=as_record, num_workers=workers):
        record = batch["record"]
        assert type(record) is Record
        assert batch["text"] == "kept"
        assert record.data[:, 0].tolist() == [2 * label + 1 for label in record.label]
    loader = load(server, collate_fn=without_thirds, num_workers=workers)
    assert check_all(loader) == [i for i in ALL if i % 3]
    loader = load(server, collate_fn=reversed_without_first, batch_size=10, num_workers=workers)
    assert check_all(loader) == [*range(9, 0, -1), *range(19, 10, -1), 22, 21]


class Batched(Numbers):
    def __getitems__(self, indices):
        return [(self.proxy(row(i)), i) for i in indices]


def test_a_dataset_that_loads_whole_batches(server):
    assert check_all(load(server, Batched(server.proxy), num_workers=2)) == ALL


class Big(Numbers):
    """Samples that travel in shared memory."""

    def __getitem__(self, index):
        return self.proxy(np.full((100, 1000), index, np.int32)), index


def test_big_samples_come_through_shared_memory(server):
    kept = list(load(server, Big(server.proxy, 60), num_workers=2))
    for data, labels in kept:
        assert (data == labels[:, None, None] * 2 + 1).all()
    assert sum(len(labels) for _, labels in kept) == 60


# ── orders and ends ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
def test_an_epoch_left_early_leaves_nothing_to_the_next(server, workers, persistent):
    loader = load(server, shuffle=True, num_workers=workers, persistent_workers=persistent)
    for stop in (0, 1, 3):
        for number, batch in enumerate(loader):
            check(batch)
            if number == stop:
                break
        del batch
    assert sorted(check_all(loader)) == ALL
    assert not [p for p in server._desk._peers.values() if p.entries and p.lost]
    del loader


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_a_look_at_one_batch_before_the_epochs(server, workers):
    loader = load(server, shuffle=True, num_workers=workers)
    check(next(iter(loader)))
    for _ in range(2):
        assert sorted(check_all(loader)) == ALL


def test_two_loaders_of_one_server_at_the_same_time(server):
    a = load(server, num_workers=2)
    b = load(server, Late(server.proxy), num_workers=2, shuffle=True)
    seen = []
    for left, right in zip(a, b, strict=True):
        seen.append((check(left), check(right)))
    assert [i for left, _ in seen for i in left] == ALL
    assert sorted(i for _, right in seen for i in right) == ALL


def test_one_loader_iterated_twice_at_the_same_time(server):
    loader = load(server, num_workers=1)
    for left, right in zip(loader, loader, strict=True):
        assert check(left) == check(right)


@pytest.mark.parametrize("workers", [0, 2])
def test_two_servers_in_one_dataset(server, workers):
    with Server(twice()) as other:

        class Both(Numbers):
            def __getitem__(self, index):
                return server.proxy(row(index)), other.proxy(row(index + 100)), index

        for batch in load(server, Both(None), num_workers=workers):
            left, right, labels = other.produce_data(batch)
            assert left[:, 0].tolist() == [2 * i + 1 for i in labels.tolist()]
            assert right[:, 0].tolist() == [2 * i + 201 for i in labels.tolist()]


def test_a_loader_made_before_the_server_starts_it():
    made = Server(twice())
    loader = load(made, num_workers=2)
    assert check_all(loader) == ALL
    made.stop_thread()
    assert check_all(loader) == ALL
    made.stop_thread()


def test_a_server_used_in_its_process_first_and_by_workers_afterwards(server):
    dataset = Numbers(server.proxy)
    kept = [dataset[i] for i in range(3)]
    assert check_all(load(server, dataset, num_workers=2)) == ALL
    half = [dataset[i] for i in range(4)]
    check(server.produce_data(default_collate(half)))
    assert check_all(load(server, dataset, num_workers=3)) == ALL
    assert check(server.produce_data(default_collate(kept))) == [0, 1, 2]


def test_a_slow_pipeline_of_depth_one_with_many_workers_is_no_deadlock():
    with Server(twice(batch_size=2, num_threads=1, prefetch_queue_depth=1)) as server:
        loader = load(server, Numbers(server.proxy, 120), batch_size=6, num_workers=4)
        assert in_thread(lambda: check_all(loader)) == list(range(120))


def test_batches_that_are_kept_never_change(server):
    kept = list(load(server, Numbers(server.proxy, 400), num_workers=2))
    assert check_all(kept) == list(range(400))


# ── workers ──────────────────────────────────────────────────────────────────────────────────────


def test_workers_are_other_processes_and_never_touch_cuda(server):
    seen = set()
    for _, pids, cuda in load(server, Processes(server.proxy), num_workers=2):
        seen.update(pids.tolist())
        assert not cuda.any()
    assert len(seen) == 2
    assert os.getpid() not in seen


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_in_the_dataset_is_its_own_batchs(server, workers):
    loader = load(server, Failing(server.proxy, 9), num_workers=workers)
    iterator = iter(loader)
    assert check(next(iterator)) == [0, 1, 2, 3]
    assert check(next(iterator)) == [4, 5, 6, 7]
    with pytest.raises(KeyError, match="no sample 9"):
        next(iterator)
    if workers:  # torch's own iterator without workers goes on too, as a map dataset's sampler does
        assert check_all(iterator) == ALL[12:]
    assert check(next(iter(load(server, num_workers=workers)))) == [0, 1, 2, 3]


class Stuck(Numbers):
    def __init__(self, proxy, event):
        super().__init__(proxy, 8)
        self.event = event

    def __getitem__(self, index):
        if index == 5:
            self.event.wait(BOUND)
        return super().__getitem__(index)


def test_torchs_timeout_ends_the_wait_for_a_slow_dataset(server):
    event = multiprocessing.get_context("fork").Event()
    iterator = iter(load(server, Stuck(server.proxy, event), num_workers=1, timeout=1))
    assert check(next(iterator)) == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
        next(iterator)
    event.set()
    del iterator
    assert check_all(load(server, num_workers=1)) == ALL


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system must tell it")
# torch's signal handler raises wherever the loop is, even where Python cannot pass an error on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_stopped_worker_is_named_and_neither_it_nor_the_next_loader_hangs(server):
    dataset = Processes(server.proxy, 400)
    iterator = iter(load(server, dataset, num_workers=2, timeout=2))
    stopped = next(iterator)[1][0].item()
    os.kill(stopped, signal.SIGSTOP)
    with pytest.raises(ProxyError, match=rf"timed out.*worker process {stopped} was stopped"):
        collections.deque(iterator, maxlen=0)
    del iterator
    assert not multiprocessing.active_children()
    assert check_all(load(server, num_workers=2)) == ALL


def refuse(worker):
    raise ValueError("no worker today")


def test_a_failing_worker_init_fn_is_an_error_and_nothing_hangs(server):
    error = failure(lambda: next(iter(load(server, num_workers=1, worker_init_fn=refuse))))
    assert isinstance(error, ValueError)
    assert "no worker today" in str(error)
    assert check_all(load(server, num_workers=1)) == ALL


class Producer(Numbers):
    """Asks for the data in the worker, where it is not."""

    def __init__(self, server):
        super().__init__(server.proxy, 4)
        self.server = server

    def __getitem__(self, index):
        return self.server.produce_data(self.proxy(row(index))), index


def test_asking_for_data_in_a_worker_is_refused_with_the_reason(server):
    error = failure(lambda: next(iter(load(server, Producer(server), num_workers=1))))
    assert "the server runs in process" in str(error)


# ── random numbers ───────────────────────────────────────────────────────────────────────────────


class Shuffled(Sampler):
    """Another order in each epoch; the same ones again from a new sampler."""

    def __init__(self):
        self.epoch = 0

    def __len__(self):
        return len(ALL)

    def __iter__(self):
        self.epoch += 1
        yield from np.random.default_rng(self.epoch).permutation(len(ALL)).tolist()


def draws(workers, *, leave=None, seed=5, persistent=False, dataset=Numbers, epochs=2, **options):
    """Epoch → index → the random number that the index got."""
    with Server(drawn(seed=seed, **options)) as server:
        loader = load(
            server,
            dataset(server.proxy),
            num_workers=workers,
            sampler=Shuffled(),
            persistent_workers=persistent,
        )
        result = []
        for _ in range(epochs):
            drawn_by = {}
            for number, ((data, numbers), labels) in enumerate(loader):
                assert data[:, 0].tolist() == labels.tolist()
                drawn_by.update(zip(labels.tolist(), numbers.tolist(), strict=True))
                if number == leave:
                    break
            result.append(drawn_by)
        del loader
        return result


def test_random_numbers_do_not_depend_on_the_workers():
    expected = draws(0)
    assert len(set(expected[0].values())) == 23
    assert expected[0] != expected[1]
    assert draws(1) == expected
    assert draws(2, dataset=Late) == expected
    assert draws(2, persistent=True) == expected
    assert draws(3, num_threads=1, prefetch_queue_depth=1) == expected


def test_random_numbers_do_not_depend_on_an_epoch_that_was_left():
    left = [draws(workers, leave=1, epochs=3) for workers in (0, 1, 2)]
    assert left[0] == left[1] == left[2]
    whole = draws(2, epochs=3)
    for epoch in range(3):
        assert left[0][epoch].items() <= whole[epoch].items()


class ByThreads(Numbers):
    """The samples of a batch are made by threads, the last one first."""

    def __getitems__(self, indices):
        done = [threading.Event() for _ in range(len(indices) + 1)]
        done[-1].set()

        def make(row):
            assert done[row + 1].wait(BOUND)
            sample = self[indices[row]]
            done[row].set()
            return sample

        with ThreadPoolExecutor(len(indices)) as threads:
            return list(threads.map(make, range(len(indices))))


def test_random_numbers_do_not_depend_on_the_threads_of_the_dataset():
    expected = draws(0)
    assert [draws(workers, dataset=ByThreads) for workers in (0, 1, 2)] == [expected] * 3
    assert draws(1, dataset=ByThreads, persistent=True) == expected


def test_threads_of_the_dataset_take_no_epochs_number():
    with Server(drawn()) as server:
        loader = load(server, ByThreads(server.proxy), num_workers=1)
        for _ in range(2):
            assert sum(len(labels) for _, labels in loader) == 23
        assert loader.state_dict()["epochs"] == 2


def stream_draws(workers, *, dataset=Stream, persistent=False, turns=1, **options):
    """Loop → index → random number. In `turns` the loops go on at the same time."""
    with Server(drawn()) as server:
        loaders = [
            load(
                server,
                dataset(server.proxy),
                num_workers=workers,
                persistent_workers=persistent,
                **options,
            )
            for _ in range(turns)
        ]
        result = [{} for _ in range(4)]
        for first in range(0, 4, turns):
            for batches in zip(*loaders, strict=True):
                for loop, ((_, numbers), labels) in enumerate(batches, first):
                    own = torch.as_tensor(labels).reshape(-1).tolist()
                    result[loop].update(zip(own, numbers.reshape(-1).tolist(), strict=True))
        assert loaders[0].state_dict()["epochs"] == 4
        del loaders
        return result


def test_random_numbers_of_a_stream_without_workers_and_with_one_are_those_of_a_map():
    expected = stream_draws(0, dataset=Numbers)
    assert stream_draws(0) == stream_draws(1) == expected
    assert stream_draws(1, persistent=True) == expected
    assert stream_draws(0, turns=2) == stream_draws(1, turns=2) == expected


def test_random_numbers_of_a_stream_are_the_same_again_with_as_many_workers():
    expected = stream_draws(2)
    assert len({number for loop in expected for number in loop.values()}) == 4 * 23
    assert stream_draws(2) == stream_draws(2, persistent=True) == expected


@pytest.mark.parametrize("workers", [0, 1])
def test_random_numbers_of_a_stream_without_batches(workers):
    found = stream_draws(workers, batch_size=None)
    assert found == stream_draws(0, batch_size=None)
    assert len({number for loop in found for number in loop.values()}) == 4 * 23


def test_runs_without_a_seed_differ():
    assert draws(1, seed=None) != draws(1, seed=None)


# ── tensors beside the references ────────────────────────────────────────────────────────────────


class Beside(Numbers):
    """A tensor twice in a sample, and an array."""

    def __getitem__(self, index):
        own = torch.full((2,), index)
        return self.proxy(row(index)), {"a": own, "b": own}, np.full(2, index), index


def keep_own(samples):
    refs, own, arrays, labels = zip(*samples, strict=True)
    return default_collate(list(refs)), own, arrays, torch.tensor(labels)


@pytest.mark.parametrize("workers", [0, 2])
def test_tensors_of_a_sample_arrive_in_memory_of_their_own(server, workers):
    for data, own, arrays, labels in load(
        server, Beside(server.proxy), collate_fn=keep_own, num_workers=workers
    ):
        assert check((data, labels)) == labels.tolist()
        for label, tensors, array in zip(labels.tolist(), own, arrays, strict=True):
            assert type(tensors) is dict
            assert tensors["a"] is tensors["b"]
            assert tensors["a"].tolist() == array.tolist() == [label, label]
            assert not tensors["a"].is_shared()
        assert not labels.is_shared()


# ── proxies of other servers ─────────────────────────────────────────────────────────────────────


class OfTwo(Numbers):
    """Sample i is row(i) through both proxies, and i."""

    def __init__(self, proxy, other):
        super().__init__(proxy)
        self.other = other

    def __getitem__(self, index):
        return self.proxy(row(index)), {"other": self.other(row(index))}, index


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_whose_dataset_has_only_another_servers_proxy_warns_of_it_once(server, workers):
    with Server(drawn(seed=8)) as other:
        dataset = Numbers(other.proxy)
        loader = proxy.DataLoader(server, dataset, batch_size=4, num_workers=workers)
        with pytest.warns(UserWarning, match="no reference of the loader's own") as told:
            found = list(loader)
        assert len(told) == 1
        assert told[0].filename == __file__
        text = str(told[0].message)
        assert text.index(f"own server, {server!r}") < text.index(f"some of {other!r}")
        ((data, _), labels), *_ = map(other.produce_data, found)  # they are the other's to give
        assert data[:, 0].tolist() == labels.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_of_two_servers_leaves_the_others_references(server, workers):
    with Server(drawn(seed=8)) as other:
        dataset = OfTwo(server.proxy, other.proxy)
        loader = proxy.DataLoader(server, dataset, batch_size=4, num_workers=workers)
        for batch in loader:  # without a warning, which would be an error here
            data, both, labels = other.produce_data(batch)
            check((data, labels))
            assert both["other"][0][:, 0].tolist() == labels.tolist()


def test_a_loader_without_references_is_one_of_tensors(server):
    loader = proxy.DataLoader(server, [torch.ones(2)] * 4, batch_size=2)
    assert [batch.shape for batch in loader] == [(2, 2)] * 2


# ── what is seen of it ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("dataset", "options", "shown"),
    [
        (Numbers, {"batch_size": 4, "num_workers": 2}, "Numbers of 23 batch_size=4 num_workers=2"),
        (Stream, {}, "Stream batch_size=1 num_workers=0"),
        (Numbers, {"batch_size": None}, "Numbers of 23 batch_size=None num_workers=0"),
        (Numbers, {"batch_sampler": [[1, 2]]}, "Numbers of 23 batch_sampler=list num_workers=0"),
    ],
)
def test_a_loader_shows_its_dataset_batches_workers_and_server(server, dataset, options, shown):
    loader = proxy.DataLoader(server, dataset(server.proxy), **options)
    assert repr(loader) == f"<proxy.DataLoader dataset={shown} server={server!r}>"
