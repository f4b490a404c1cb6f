"""The report names the stage in which the time goes. Here a sleep is what a stage has to do."""

from __future__ import annotations

import dataclasses
import itertools
import time
from types import SimpleNamespace

import pytest
from torch.utils.data import DataLoader, default_collate

from forebay import fn, pipeline_def
from forebay.deliver.proxy import client as client_module
from forebay.deliver.proxy import evaluate, protocol, report, transport
from forebay.deliver.proxy.client import Client
from forebay.deliver.proxy.report import STAGES, Meter, Report, Trip
from forebay.errors import OperatorError
from forebay.torch import proxy
from forebay.torch.proxy import Server
from proxies import Failing, Numbers, Stream, check, drawn, failure, row, twice

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

SLEEP = 0.03
SIZE = 2
BATCHES = 12


class Slow(Numbers):
    def __getitem__(self, index):
        time.sleep(SLEEP)
        return super().__getitem__(index)


class SlowStream(Stream):
    def __iter__(self):
        for sample in super().__iter__():
            time.sleep(SLEEP)
            yield sample


def asleep(value):
    time.sleep(SLEEP)
    return value


def delayed(function):
    """The function, after a sleep."""

    def call(*args, **kwargs):
        time.sleep(SLEEP)
        return function(*args, **kwargs)

    return call


@pipeline_def(batch_size=8, num_threads=2)
def slow_pipe():
    return fn.python_function(fn.external_source(name="x"), function=asleep)


def measure(pipe=None, dataset=Numbers, workers=1, plain=False, consumer=None, **options):
    """The report of one epoch, by our loader or torch's."""
    with Server(twice() if pipe is None else pipe) as server:
        data = dataset(server.proxy, SIZE * BATCHES)
        if plain:
            loader = DataLoader(data, SIZE, num_workers=workers, **options)
            batches = map(server.produce_data, loader)
        else:
            batches = loader = proxy.DataLoader(server, data, SIZE, num_workers=workers, **options)
        for _ in batches:
            if consumer is not None:
                consumer(None)
        return server.report() if plain else loader.report()


def assert_limit(found, stage):
    """The stage limits, and the report says so in every way."""
    assert found.batches == BATCHES
    assert found.limit == stage, found
    assert (found.waiting < 0.5) == (stage == "consumer"), found
    [marked] = [line for line in str(found).splitlines() if line.endswith("limits")]
    assert marked.split()[0] == stage
    assert str(found).endswith(found.advice)


# ── 30 ms in each stage in turn ──────────────────────────────────────────────────────────────────

ways = pytest.mark.parametrize("plain", [False, True], ids=["ours", "torchs"])


@ways
@pytest.mark.parametrize(("workers", "word"), [(0, "num_workers"), (1, "Raise"), (2, "Raise")])
def test_a_slow_dataset_limits(plain, workers, word):
    found = measure(dataset=Slow, workers=workers, plain=plain)
    assert_limit(found, "dataset")
    assert found.workers == workers
    assert word in found.advice
    assert found.dataset >= SIZE * SLEEP / max(1, workers) * 0.9  # the first batches overlap


@pytest.mark.parametrize("workers", [0, 2])
def test_a_slow_stream_limits(workers):
    assert_limit(measure(dataset=SlowStream, workers=workers), "dataset")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_slow_dataset_without_batches_limits(workers):
    """The first call of the proxy shows nothing of the time before it."""
    with Server(twice()) as server:
        loader = DataLoader(Slow(server.proxy, BATCHES), batch_size=None, num_workers=workers)
        for batch in loader:
            server.produce_data(batch)
        found = server.report()
    assert found.limit == ("dataset" if workers else "consumer")


@ways
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_slow_pipeline_limits(plain, workers):
    found = measure(slow_pipe(), workers=workers, plain=plain)
    assert_limit(found, "pipeline")
    assert "num_threads" in found.advice
    assert found.pipeline >= SIZE * SLEEP


@ways
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_slow_consumer_limits(plain, workers):
    found = measure(workers=workers, plain=plain, consumer=asleep)
    assert_limit(found, "consumer")
    assert "not what the loop waits for" in found.advice
    assert found.consumer >= SLEEP


@ways
@pytest.mark.parametrize("place", ["send", "decode"])
def test_a_slow_way_to_the_server_limits(monkeypatch, plain, place):
    where = {"send": transport.Connection, "decode": protocol}[place]
    monkeypatch.setattr(where, place, delayed(getattr(where, place)))
    found = measure(plain=plain)
    assert_limit(found, "transfer")
    assert "Move less" in found.advice


@pytest.mark.parametrize("workers", [0, 2])
def test_a_slow_way_from_results_to_tensors_limits(monkeypatch, workers):
    monkeypatch.setattr(evaluate, "assemble", delayed(evaluate.assemble))
    assert_limit(measure(workers=workers), "transfer")


class Heavy:
    """Takes its time to come out of torch's queue."""

    def __reduce__(self):
        return asleep, (None,)


class WithHeavy(Numbers):
    def __getitem__(self, index):
        return self.proxy(row(index)), Heavy()


def first_only(batch):
    return default_collate([ref for ref, _ in batch]), batch[0][1]


def test_a_slow_queue_of_torchs_limits():
    assert_limit(measure(dataset=WithHeavy, collate_fn=first_only), "transfer")


class Mapped(Numbers):
    def __getitem__(self, index):
        return self.proxy(row(index)).map(asleep), index


@ways
@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_recorded_on_references_is_the_loops_work(plain, workers):
    found = measure(dataset=Mapped, workers=workers, plain=plain)
    assert_limit(found, "consumer")
    assert "recorded" in found.advice
    assert found.consumer >= SIZE * SLEEP


def test_runs_in_order_of_being_asked_for_are_the_pipelines_time():
    with Server(slow_pipe(), deterministic=True) as server:
        loader = proxy.DataLoader(server, Numbers(server.proxy, 24), SIZE, num_workers=1)
        list(loader)
        assert_limit(loader.report(), "pipeline")


# ── which batches it covers ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def server():
    with Server(twice()) as made:
        yield made


def test_before_any_batch_it_says_so(server):
    loader = proxy.DataLoader(server, Numbers(server.proxy), 4)
    for found in (server.report(), loader.report()):
        assert found == Report()
        assert found.limit is None
        assert str(found) == "No batch was handed out yet."
    iter(loader)
    assert loader.report().batches == 0
    assert list(proxy.DataLoader(server, Numbers(server.proxy, 0), 4, shuffle=False)) == []
    assert server.report().batches == 0


def test_one_batch_is_too_few_to_name_a_stage(server):
    loader = proxy.DataLoader(server, Numbers(server.proxy), 4)
    check(next(iter(loader)))
    found = loader.report()
    assert found.batches == 1
    assert found.limit is None
    assert "second batch" in found.advice
    assert "limits" not in str(found)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_left_early_counts_what_was_taken_and_the_next_begins_anew(server, workers):
    loader = proxy.DataLoader(server, Numbers(server.proxy), 4, num_workers=workers)
    for _ in itertools.islice(loader, 3):
        pass
    left = loader.report()
    assert left.batches == 3
    assert left.limit in STAGES
    assert loader.report() == left
    assert server.report() == left
    for _ in loader:
        pass
    assert loader.report().batches == 6
    assert left.batches == 3
    assert left.startup <= left.seconds


def test_each_of_two_loaders_tells_of_itself(server):
    slow = proxy.DataLoader(server, Slow(server.proxy, 16), SIZE, num_workers=1)
    fast = proxy.DataLoader(server, Numbers(server.proxy, 30), SIZE, num_workers=1)
    for _ in zip(slow, fast, strict=False):
        pass
    assert slow.report().batches == 8
    assert slow.report().limit == "dataset"
    assert fast.report().batches == 8
    assert fast.report().limit == "consumer"  # of its batches; it waits for those of the other
    assert server.report() == fast.report()


def test_a_loader_without_references_is_measured_too(server):
    class Plain(Slow):
        def __getitem__(self, index):
            return super().__getitem__(index)[1]

    loader = proxy.DataLoader(server, Plain(server.proxy, 24), SIZE, num_workers=1)
    list(loader)
    assert_limit(loader.report(), "dataset")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_failed_batch_is_not_counted(workers):
    with Server(twice()) as server:
        loader = proxy.DataLoader(server, Failing(server.proxy, 9), 4, num_workers=workers)
        iterator = iter(loader)
        for _ in range(2):
            next(iterator)
        assert isinstance(failure(lambda: next(iterator)), KeyError)
        assert loader.report().batches == 2


def test_a_batch_whose_run_failed_is_not_counted():
    @pipeline_def(batch_size=4, num_threads=1)
    def three():
        return fn.reshape(fn.external_source(name="x"), shape=[3])

    with Server(three()) as server:
        good, bad = (default_collate([server.proxy(row(1)[:n])]) for n in (3, 2))
        server.produce_data(good)
        with pytest.raises(OperatorError):
            server.produce_data(bad)
        assert server.report().batches == 1


def test_workers_of_torchs_loader_begin_an_epoch(server):
    loader = DataLoader(Numbers(server.proxy), 4, num_workers=2)
    for count in (6, 4):
        for batch in itertools.islice(loader, count):
            server.produce_data(batch)
        found = (
            server.deliveries.meters._latest.report()
        )  # not asked for: a report would begin it too
        assert found.batches == count
    assert server.report() == found
    assert found.workers == 2


def test_two_of_torchs_loaders_at_a_time_are_told_apart(server):
    one, other = (DataLoader(Numbers(server.proxy), 4, num_workers=1) for _ in range(2))
    for left, right in zip(one, other, strict=True):
        server.produce_data(left)
        server.produce_data(right)
    assert server.report().batches == 6


def test_the_batch_after_a_report_begins_the_next_one_of_other_loops(server):
    batches = [default_collate([server.proxy(row(i))]) for i in range(5)]
    for batch in batches[:2]:
        server.produce_data(batch)
    assert server.report().batches == 2
    assert server.report().batches == 2
    for batch in batches[2:]:
        server.produce_data(batch)
    assert server.report().batches == 3


def test_asking_again_and_asking_in_pieces_is_one_batch():
    with Server(drawn()) as server:
        refs = [server.proxy(row(i)) for i in range(3)]
        left, right = (default_collate(list(group)) for group in zip(*refs, strict=True))
        for _ in range(3):
            server.produce_data(left)
            server.produce_data(right)
        assert server.report().batches == 1
        server.proxy(row(5))
        refs = [server.proxy(row(i)) for i in range(4)]
        halves = [default_collate([ref for ref, _ in refs[i : i + 2]]) for i in (0, 2)]
        for half in halves:  # two parts of one batch
            server.produce_data(half)
        assert server.report().batches == 1


# ── arithmetic by hand, on invented times ────────────────────────────────────────────────────────


def entry(*stamps, ended, busy, client="a", batch=0):
    """What a meter sees of a part: begun, sent, ready, arrived; then its run."""
    return SimpleNamespace(
        trip=Trip(client, "epoch", batch, *stamps), run=SimpleNamespace(ended=ended, busy=busy)
    )


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(time=0.0)
    monkeypatch.setattr(report, "perf_counter", lambda: now.time)
    return now


def test_an_interval_is_divided_by_what_the_loop_waited_for(clock):
    meter = Meter()
    clock.time = 1
    meter.ask()
    meter.book([entry(0, 2, 0, 3, ended=4, busy=1)], 3, 10, 0)
    clock.time = 20
    meter.ask()
    # asked 20 · sent 21 · reference 23 · taken in from 26, until 30 · run until 35 · done 43, of
    # which 2 in recorded functions
    early, late = entry(4, 6, 0, 7, ended=8, busy=1), entry(5, 21, 26, 30, ended=35, busy=5)
    meter.book([early, late], 23, 43, 2)
    found = meter.report()
    assert dataclasses.asdict(found) == {
        "batches": 2,
        "seconds": 43,
        "startup": 10,
        "waiting": pytest.approx(1 - 12 / 33),
        "dataset": 10,  # worked 2 + 2 + 16 on two batches; waited for: 1
        "pipeline": 8,  # 23 to 26 and 30 to 35; busy: 1 + 1 + 5
        "transfer": 12,  # 21 to 23, 26 to 30 and 35 to 41; worked 1 + 1 + 4
        "consumer": 12,  # 10 to 20, and 2
        "workers": 1,
        "persistent": None,
    }


def test_work_is_divided_by_the_workers(clock):
    meter = Meter()
    for number, client in enumerate("abab"):
        clock.time = 20 + 10 * number
        meter.ask()
        made = entry(0, 8, 10, 12, ended=13, busy=1, client=client)
        meter.book([made], clock.time, clock.time, 0)
    found = meter.report()
    assert (found.dataset, found.transfer, found.pipeline) == (4, 1, 1)
    assert found.consumer == 10
    assert found.waiting == 0
    assert found.workers == 2
    meter.book([made], clock.time, clock.time, 0)  # asked for once more
    assert meter.report() == found


def test_the_time_of_a_failed_batch_is_nobodys(clock):
    meter = Meter()
    for clock.time, fails in ((0, False), (10, False), (20, True), (70, False), (80, False)):
        meter.ask()
        if not fails:
            meter.book([], clock.time, clock.time, 0)
    found = meter.report()
    assert found.batches == 4
    assert found.consumer == 10


@pytest.mark.parametrize(
    ("client", "begun", "sent", "arrived", "consumer"),
    [
        ("worker", 3, 8, 9, 10),  # was there when the last batch was done: nothing was waited for
        ("worker", 3, 8, 17, 3),  # came while the loop waited
        ("worker", 3, 18, 18, 2),  # was made while the loop waited
        ("", 14, 18, 18, 6),  # was made by the loop itself
    ],
)
def test_without_our_loader_the_wait_is_told_from_when_it_came(
    clock, client, begun, sent, arrived, consumer
):
    meter = Meter()
    meter.book([entry(0, 1, 0, 1, ended=2, busy=1)], 2, 10, 0)
    second = entry(begun, sent, 0, arrived, ended=arrived, busy=0, client=client, batch=1)
    meter.book([second], 20, 20, 0)
    assert meter.report().consumer == consumer


@pytest.mark.parametrize("told", [True, False])
def test_the_time_before_the_first_call_is_estimated_from_the_other_calls(monkeypatch, told):
    now = SimpleNamespace(time=10.0)
    monkeypatch.setattr(client_module, "perf_counter", lambda: now.time)
    sent = []
    client = Client("server", ["x"], 2, lambda message, _: sent.append(message))
    fetch = client.begin(0, 0, told=told)
    calls = []
    for now.time in (10, 12, 14):
        calls.append(fetch.add([SimpleNamespace(array=row(0), layout="")]))
    now.time = 15
    fetch.send(calls)  # two parts: the pipeline takes two rows at most
    assert [(m.begun, m.sent) for m in sent] == [(10 if told else 7.5, 15), (15, 15)]


def test_a_slow_start_of_workers_is_mentioned():
    slow = Report(batches=9, seconds=4, startup=3, dataset=0.1, workers=2)
    assert "persistent_workers" in slow.advice
    for fine in ({"startup": 1}, {"workers": 0}):
        assert "persistent_workers" not in dataclasses.replace(slow, **fine).advice


def test_it_prints_as_a_table():
    found = Report(20, 2.5, 0.25, 0.875, 0.012, 0.0345, 0.001, 0.0004, 2)
    assert str(found).splitlines()[:-1] == [
        "20 batches in 2.50 s, the first after 0.25 s; since then the loop waited 88% of the time",
        "  dataset       12.00 ms a batch",
        "  pipeline      34.50 ms a batch  <- limits",
        "  transfer       1.00 ms a batch",
        "  consumer       0.40 ms a batch",
    ]
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.batches = 3


@pytest.mark.parametrize("persistent", [False, True])
def test_a_loader_that_keeps_its_workers_is_not_told_to(persistent):
    found = measure(persistent_workers=persistent)
    slow = dataclasses.replace(found, startup=found.seconds)
    assert ("with persistent_workers=True later" in slow.advice) is not persistent


def test_of_other_loaders_it_is_not_known_whether_they_keep_their_workers():
    found = measure(plain=True)
    slow = dataclasses.replace(found, startup=found.seconds)
    assert "persistent_workers=True, if the loader does not have it yet, later" in slow.advice
