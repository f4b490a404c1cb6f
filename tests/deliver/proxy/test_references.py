"""References and their collation: any order, any choice, any number of calls."""

from __future__ import annotations

import collections
import copy
import dataclasses
import gc
import pickle
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, default_collate

from forebay.deliver.proxy.reference import Ticket
from forebay.errors import ProxyError, RequestRefused, ServerStopped
from forebay.torch import proxy
from forebay.torch.proxy import BatchRef, Server
from proxies import (
    Numbers,
    Stream,
    as_list,
    check,
    check_all,
    drawn,
    failure,
    in_thread,
    row,
    sum_and_difference,
    twice,
)

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@pytest.fixture
def server():
    with Server(twice()) as made:
        yield made


def refs(server, *indices):
    return [server.proxy(row(index)) for index in indices]


def first_numbers(tensor):
    return [int(value) for value in tensor[:, 0]]


def expected(*indices):
    return [2 * index + 1 for index in indices]


def test_collating_makes_a_batch_reference(server):
    batch = default_collate(refs(server, 1, 2))
    assert isinstance(batch, BatchRef)
    assert first_numbers(server.produce_data(batch)) == expected(1, 2)


@pytest.mark.parametrize("order", [[3, 0, 2, 1], [3], [0, 2], [1, 1, 3, 1], [3, 2, 1, 0, 0]])
def test_rows_may_be_reordered_dropped_and_repeated(server, order):
    made = refs(server, 0, 1, 2, 3)
    batch = default_collate([made[i] for i in order])
    assert first_numbers(server.produce_data(batch)) == expected(*order)


def test_dropped_samples_are_not_sent(server):
    made = refs(server, 0, 1, 2)
    batch = default_collate(made[:2])
    server.produce_data(batch)
    assert made[2].call.part is None
    assert first_numbers(server.produce_data(default_collate(made[2:]))) == expected(2)


def test_references_of_several_batches_make_one(server):
    a, b = refs(server, 0, 1), None
    first = default_collate(a)
    b = refs(server, 5, 6)
    mixed = default_collate([a[1], b[0], a[0], b[1]])
    assert first_numbers(server.produce_data(mixed)) == expected(1, 5, 0, 6)
    assert first_numbers(server.produce_data(first)) == expected(0, 1)


def test_references_kept_as_a_list_become_single_tensors(server):
    made = refs(server, 4, 5)
    data = server.produce_data({"list": made, "again": made[0]})
    assert [value.tolist() for value in data["list"]] == [[9] * 3, [11] * 3]
    assert data["again"].tolist() == [9] * 3


def test_an_uncollated_reference_may_be_collated_later(server):
    made = refs(server, 4, 5)
    server.produce_data(made)
    assert first_numbers(server.produce_data(default_collate(made))) == expected(4, 5)


def test_several_calls_a_sample_are_rows_of_their_own(server):
    samples = [(server.proxy(row(i)), server.proxy(row(i + 100)), i) for i in range(3)]
    left, right, labels = server.produce_data(default_collate(samples))
    assert first_numbers(left) == expected(0, 1, 2)
    assert first_numbers(right) == expected(100, 101, 102)
    assert labels.tolist() == [0, 1, 2]


def test_one_reference_used_thrice_gives_the_same_tensor(server):
    made = refs(server, 1, 2)
    a, _, b, c = server.produce_data(
        default_collate([(ref, i, ref, {"k": ref}) for i, ref in enumerate(made)])
    )
    assert a is b
    assert a is c["k"]


def test_asking_again_gives_the_same_tensor(server):
    batch = default_collate(refs(server, 1))
    assert server.produce_data(batch) is server.produce_data(batch)
    ref = server.proxy(row(3))
    assert torch.equal(server.produce_data(ref), server.produce_data(ref))


def test_outputs_may_be_asked_for_one_by_one_and_in_any_order():
    with Server(sum_and_difference()) as server:
        batches = [
            default_collate([server.proxy(row(i), row(1)) for i in range(3)]) for _ in range(3)
        ]
        for added, subtracted in reversed(batches):
            assert first_numbers(server.produce_data(subtracted)) == [-1, 0, 1]
            assert first_numbers(server.produce_data(added)) == [1, 2, 3]


def test_two_outputs_do_not_make_one_batch():
    with Server(sum_and_difference()) as server:
        pair = server.proxy(row(1), row(1))
        with pytest.raises(ProxyError, match="one output"):
            default_collate(list(pair))


def test_another_servers_references_are_left_in_place(server):
    with Server(twice()) as other:
        mine, theirs = refs(server, 1)[0], default_collate(refs(other, 2))
        result = server.produce_data([mine, theirs])
        assert result[1] is theirs
        assert first_numbers(other.produce_data(result)[1]) == expected(2)
        with pytest.raises(ProxyError, match="several"):
            default_collate([mine, other.proxy(row(1))])


def test_samples_that_do_not_go_together_are_refused_when_collated(server):
    with pytest.raises(RequestRefused, match=r"'x'.*int32.*float64"):
        default_collate([server.proxy(row(1)), server.proxy(np.zeros(3))])
    assert first_numbers(server.produce_data(default_collate(refs(server, 1)))) == expected(1)


def test_samples_that_do_not_go_together_may_stand_alone(server):
    data = server.produce_data([server.proxy(row(1)), server.proxy(np.zeros(2))])
    assert [value.tolist() for value in data] == [[3, 3, 3], [1, 1]]


def test_a_larger_batch_than_the_pipelines_is_split_and_joined(server):
    batch = default_collate(refs(server, *range(21)))
    assert first_numbers(server.produce_data(batch)) == expected(*range(21))


def test_copies_of_references_are_the_reference(server):
    ref = server.proxy(row(1))
    assert copy.copy(ref) is ref
    assert copy.deepcopy({"a": [ref]})["a"][0] is ref


def test_references_survive_pickling_in_their_own_process(server):
    made = refs(server, 1, 2, 3)
    batch = default_collate(made)
    again = pickle.loads(pickle.dumps((batch, made)))
    assert first_numbers(server.produce_data(again[0])) == expected(1, 2, 3)
    assert server.produce_data(again[1])[2].tolist() == [7, 7, 7]


def test_a_pickled_reference_alone_does_not_keep_the_data(server):
    data = pickle.dumps(default_collate(refs(server, 1)))
    gc.collect()
    with pytest.raises(RequestRefused, match="dropped"):
        in_thread(lambda: server.produce_data(pickle.loads(data)))


def test_results_are_free_when_their_references_are_gone(server):
    batch = default_collate(refs(server, 1))
    kept = weakref.ref(server.produce_data(batch))
    assert kept() is not None
    del batch
    gc.collect()
    assert kept() is None


def test_random_numbers_follow_the_sample_into_another_order():
    def draws(order):
        with Server(drawn()) as server:
            made = [server.proxy(row(i)) for i in range(6)]
            batch = default_collate([made[i] for i in order])
            data, numbers = server.produce_data(batch)
            return dict(zip(first_numbers(data), numbers.tolist(), strict=True))

    assert draws([0, 1, 2, 3, 4, 5]) == draws([5, 3, 1, 0, 2, 4])


# ── uncollated references of workers ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("own", [False, True])
def test_a_collate_function_that_leaves_samples_alone(server, workers, own):
    options = {"batch_size": 4, "collate_fn": as_list, "num_workers": workers, "timeout": 30}
    if not workers:
        del options["timeout"]
    dataset = Numbers(server.proxy)
    loader = proxy.DataLoader(server, dataset, **options) if own else DataLoader(dataset, **options)
    seen = []
    for batch in loader:
        data = batch if own else server.produce_data(batch)
        for value, label in data:
            assert value.tolist() == [2 * label + 1] * 3
            seen.append(label)
    assert seen == list(range(23))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("own", [False, True])
def test_samples_without_batches(server, workers, own):
    dataset = Numbers(server.proxy)
    options = {"batch_size": None, "num_workers": workers}
    loader = proxy.DataLoader(server, dataset, **options) if own else DataLoader(dataset, **options)
    seen = []
    for value, label in loader:
        data = value if own else server.produce_data(value)
        assert data.tolist() == [2 * label + 1] * 3
        seen.append(label)
    assert seen == list(range(23))


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_of_a_stream_without_batches(server, workers):
    loader = proxy.DataLoader(server, Stream(server.proxy), batch_size=None, num_workers=workers)
    seen = []
    for data, label in loader:
        assert data.tolist() == [2 * label + 1] * 3
        seen.append(label)
    assert sorted(seen) == list(range(23))


Pair = collections.namedtuple("Pair", ["data", "label"])


@dataclasses.dataclass
class Record:
    data: Any
    label: Any


class Slots:
    """As `attrs` makes classes."""

    __slots__ = ("data", "label")

    def __init__(self, data: Any, label: Any) -> None:
        self.data = data
        self.label = label


def as_dict(data: Any, label: Any) -> dict[str, Any]:
    return {"label": label, "inner": {"data": [data]}}


def as_pair(*members: Any) -> list[Any]:
    return [*members]


FORMS = {
    as_dict: lambda sample: (sample["inner"]["data"][0], sample["label"]),
    as_pair: list,
    Pair: list,
    Record: lambda sample: (sample.data, sample.label),
    Slots: lambda sample: (sample.data, sample.label),
}


class Formed(Numbers):
    def __init__(self, proxy: Any, form: Any) -> None:
        super().__init__(proxy)
        self.form = form

    def __getitem__(self, index: int) -> Any:
        return self.form(self.proxy(row(index)), index)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("form", FORMS)
def test_samples_of_any_form_keep_it(server, form, workers):
    options = {"batch_size": 4, "collate_fn": as_list, "num_workers": workers}
    seen = []
    for batch in proxy.DataLoader(server, Formed(server.proxy, form), **options):
        assert type(batch) is list
        for sample in batch:
            assert type(sample) is type(form(None, 0))
            data, label = FORMS[form](sample)
            assert data.tolist() == [2 * label + 1] * 3
            seen.append(label)
    assert seen == list(range(23))


class Views(Numbers):
    """Two calls of the proxy; the first one's reference is there twice."""

    def __getitem__(self, index: int) -> Any:
        left = self.proxy(row(index))
        return {"left": left, "again": left, "right": self.proxy(row(index + 100)), "label": index}


@pytest.mark.parametrize("workers", [0, 2])
def test_several_calls_and_a_reference_twice_in_a_sample(server, workers):
    labels = []
    for batch in proxy.DataLoader(server, Views(server.proxy), 4, num_workers=workers):
        assert first_numbers(batch["left"]) == expected(*batch["label"].tolist())
        assert first_numbers(batch["right"]) == expected(*(batch["label"] + 100).tolist())
        assert batch["again"] is batch["left"]
        labels += batch["label"].tolist()
    assert labels == list(range(23))


class Second(Numbers):
    """The first of two outputs is not used."""

    def __getitem__(self, index: int) -> Any:
        _, difference = self.proxy(row(index), row(1))
        return difference, index


@pytest.mark.parametrize("workers", [0, 2])
def test_outputs_that_nobody_uses(workers):
    with Server(sum_and_difference()) as server:
        loader = proxy.DataLoader(server, Second(server.proxy), 4, num_workers=workers)
        for data, labels in loader:
            assert first_numbers(data) == [label - 1 for label in labels.tolist()]


class Thing:
    """Neither a reference nor anything that leads to one."""

    def __eq__(self, other: object) -> bool:
        return type(other) is Thing

    __hash__ = None


def others(index: int) -> list[Any]:
    return [
        None,
        True,
        2.5,
        "text",
        b"bytes",
        {1, index},
        frozenset({2}),
        range(index),
        1 + 2j,
        np.float32(index),
        np.arange(index),
        torch.arange(index),
        Thing(),
        Pair(1, [index]),
        collections.OrderedDict(a=index),
        collections.Counter("aab"),
        Path("a"),
        len,
        Thing,
    ]


class Passing(Numbers):
    def __getitem__(self, index: int) -> Any:
        return self.proxy(row(index)), others(index)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_no_reference_passes_with_its_type(server, workers):
    options = {"batch_size": None, "collate_fn": as_list, "num_workers": workers}
    for index, (data, passed) in enumerate(
        proxy.DataLoader(server, Passing(server.proxy, 5), **options)
    ):
        assert data.tolist() == [2 * index + 1] * 3
        for there, wanted in zip(passed, others(index), strict=True):
            assert type(there) is type(wanted)
            if isinstance(wanted, torch.Tensor | np.ndarray):
                assert there.tolist() == wanted.tolist()
                assert there.dtype == wanted.dtype
            else:
                assert there == wanted


def test_uncollated_references_of_workers_may_be_collated_in_the_loop(server):
    loader = DataLoader(
        Numbers(server.proxy), batch_size=4, collate_fn=as_list, num_workers=2, timeout=30
    )
    batches = (server.produce_data(default_collate(batch)) for batch in loader)
    assert check_all(batches) == list(range(23))


class Mixed(Numbers):
    def __getitem__(self, index):
        data = row(index) if index % 2 else row(index).astype(np.float64)
        return self.proxy(data), index


def test_a_workers_samples_that_do_not_go_together_do_not_hang_the_loop(server):
    dataset = Mixed(server.proxy, 4)
    loader = DataLoader(dataset, batch_size=4, num_workers=1, timeout=30)
    assert "must have one element type" in str(failure(lambda: next(iter(loader))))
    loader = DataLoader(dataset, batch_size=4, collate_fn=as_list, num_workers=1, timeout=30)
    (batch,) = server.produce_data(list(loader))
    assert [value.tolist() for value, _ in batch] == [[1] * 3, [3] * 3, [5] * 3, [7] * 3]


class Prepared(Numbers):
    """References that were made before the worker was forked."""

    def __init__(self, proxy, size=4):
        super().__init__(proxy, size)
        self.made = [proxy(row(i)) for i in range(size)]

    def __getitem__(self, index):
        return self.made[index], index


@pytest.mark.parametrize("collate", [None, as_list])
def test_references_made_before_the_fork_are_refused_with_the_reason(server, collate):
    dataset = Prepared(server.proxy)
    loader = DataLoader(dataset, batch_size=4, num_workers=1, timeout=30, collate_fn=collate)
    error = failure(lambda: server.produce_data(next(iter(loader))))
    assert isinstance(error, RuntimeError)
    assert "before this one was forked" in str(error)


# ── a server that was stopped ────────────────────────────────────────────────────────────────────


def test_a_workers_reference_from_before_a_restart_is_refused_by_name(server):
    (batch,) = DataLoader(Numbers(server.proxy, 2), batch_size=2, num_workers=1, timeout=30)
    ticket = batch[0].pieces[0][0].ticket
    assert check(server.produce_data(batch)) == [0, 1]
    server.stop_thread()
    assert check(server.produce_data(batch)) == [0, 1]
    server.start_thread()
    late = Ticket(ticket.server, ticket.client, ticket.number + 1)
    ref = BatchRef([(server._desk.receive(late, [0]), [0])], 0, 1)
    with pytest.raises(ProxyError, match=r"ended before|before the server was stopped"):
        in_thread(lambda: server.produce_data(ref))
    assert first_numbers(server.produce_data(default_collate(refs(server, 1)))) == expected(1)


def test_a_reference_whose_server_is_gone_is_refused():
    made = Server(twice())
    call = made.proxy
    made.stop_thread()
    del made
    gc.collect()
    with pytest.raises(ServerStopped, match="gone"):
        default_collate([call(row(1))])
