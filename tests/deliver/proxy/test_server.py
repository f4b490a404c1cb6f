"""The server: how it is made, its life, what its outputs are, and whose errors are whose."""

from __future__ import annotations

import gc
import pickle
import threading
from contextlib import closing

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, default_collate

from forebay import fn, pipeline_def
from forebay.deliver.proxy import protocol
from forebay.deliver.proxy.reference import Ticket
from forebay.deliver.proxy.transport import Disconnected, connect
from forebay.errors import (
    ArgumentError,
    ForebayError,
    GraphError,
    OperatorError,
    ProxyError,
    RequestRefused,
    ServerStopped,
    SourceError,
)
from forebay.torch import proxy
from forebay.torch.proxy import DALIServer, Padded, Server
from garbage import collect
from proxies import (
    BOUND,
    Numbers,
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


def batch_of(server, *indices):
    return default_collate([server.proxy(row(index)) for index in indices])


def produced(server, *indices):
    return server.produce_data(batch_of(server, *indices))


def calling(function, batch_size=4, **options):
    """A pipeline whose only operator is a Python function on each sample."""

    @pipeline_def(batch_size=batch_size, num_threads=2, **options)
    def pipe():
        return fn.python_function(fn.external_source(name="x"), function=function)

    return pipe()


# ── making one ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wrong", [42, None, twice])
def test_only_a_pipeline_has_a_server(wrong):
    with pytest.raises(TypeError, match="Expected a forebay pipeline, got: "):
        Server(wrong)


def test_a_pipeline_without_inputs_is_refused():
    @pipeline_def(batch_size=2)
    def pipe():
        return fn.random.uniform()

    with pytest.raises(GraphError, match="The provided pipeline doesn't have any inputs"):
        Server(pipe())


def test_the_choice_for_ragged_outputs_is_checked():
    with pytest.raises(ArgumentError, match="'error', 'list', 'pad' or 'nested'"):
        Server(twice(), ragged="zeros")


def test_dalis_name_is_the_same_class():
    assert DALIServer is Server


def test_a_server_stays_in_its_process():
    with pytest.raises(ProxyError, match=r"server\.proxy"):
        pickle.dumps(Server(twice()))


@pytest.mark.parametrize("built", ["before", "after", "never"])
def test_it_does_not_matter_when_the_pipeline_is_built(built):
    pipe = twice()
    if built == "before":
        pipe.build()
    server = Server(pipe)
    if built == "after":
        pipe.build()
    with server:
        assert produced(server, 1)[:, 0].tolist() == [3]


def test_a_pipeline_that_was_run_by_hand_is_refused_and_nothing_hangs():
    pipe = twice()
    pipe.run(x=[row(1)])
    server = Server(pipe)
    with pytest.raises(RuntimeError, match="Mixing pipeline API type"):
        in_thread(server.start_thread)
    with pytest.raises(RuntimeError, match="Mixing pipeline API type"):
        in_thread(lambda: next(iter(proxy.DataLoader(server, Numbers(server.proxy), 4))))


def test_two_servers_of_one_pipeline_do_not_disturb_each_other():
    pipe = twice()
    with Server(pipe) as a, Server(pipe) as b:
        first, second = batch_of(a, 1, 2), batch_of(b, 3)
        assert a.produce_data(first)[:, 0].tolist() == [3, 5]
        a.stop_thread()
        assert b.produce_data(second)[:, 0].tolist() == [7]
        assert produced(b, 4)[:, 0].tolist() == [9]


# ── life ─────────────────────────────────────────────────────────────────────────────────────────


def server_threads():
    return [t for t in threading.enumerate() if t.name.startswith("forebay")]


def test_making_a_server_starts_nothing():
    server = Server(twice())
    assert not server_threads()
    assert server.produce_data([1, "x"]) == [1, "x"]
    assert not server_threads()


def test_starting_and_stopping_twice_is_once():
    server = Server(twice())
    server.start_thread()
    threads = set(server_threads())
    server.start_thread()
    assert set(server_threads()) == threads
    server.stop_thread()
    server.stop_thread()
    assert not server_threads()


def test_a_server_that_works_stops():
    with Server(twice()) as server:
        batch_of(server, *range(64))
        in_thread(server.stop_thread)
        assert not server_threads()


def test_an_exception_in_the_with_block_comes_out():
    with pytest.raises(KeyError, match="mine"), Server(twice()):
        raise KeyError("mine")


def test_it_starts_when_data_is_first_asked_for():
    server = Server(twice())
    assert produced(server, 1, 2)[:, 0].tolist() == [3, 5]
    server.stop_thread()


def test_it_starts_when_a_workers_data_is_first_asked_for():
    server = Server(twice())
    loader = DataLoader(Numbers(server.proxy), batch_size=4, num_workers=2, timeout=30)
    assert check_all(map(server.produce_data, loader)) == list(range(23))
    server.stop_thread()


def test_it_can_be_stopped_and_started_again_and_again():
    server = Server(twice())
    for i in range(5):
        with server:
            assert produced(server, i)[:, 0].tolist() == [2 * i + 1]
    assert not server_threads()


def test_what_was_done_before_the_stop_is_still_there():
    with Server(twice()) as server:
        batch = batch_of(server, 1, 2)
        before = server.produce_data(batch)
    assert server.produce_data(batch) is before
    assert not server_threads()


def blocked():
    """A pipeline whose function waits, an event that says it does, and one that lets it go on."""
    reached, free = threading.Event(), threading.Event()

    def wait(x):
        reached.set()
        assert free.wait(BOUND)
        return x

    return calling(wait), reached, free


@pytest.mark.parametrize("deterministic", [False, True])
def test_who_waits_for_a_stopped_server_is_told(deterministic):
    pipe, reached, free = blocked()
    server = Server(pipe, deterministic)
    batches = [batch_of(server, i) for i in range(6)]
    outcomes = []

    def ask():
        try:
            outcomes.append(server.produce_data(batches[-1]))
        except ServerStopped as error:
            outcomes.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    assert reached.wait(BOUND)
    stopping = threading.Thread(target=server.stop_thread, daemon=True)
    stopping.start()
    if not deterministic:
        asking.join(BOUND)
    free.set()
    for thread in (asking, stopping):
        thread.join(BOUND)
        assert not thread.is_alive()
    assert isinstance(outcomes[0], ServerStopped) or deterministic
    with pytest.raises(ServerStopped):
        in_thread(lambda: server.produce_data(batches[-2]))


def test_a_stop_while_workers_send_ends_at_once_and_the_next_epoch_is_whole():
    server = Server(twice(batch_size=2, prefetch_queue_depth=1))
    dataset = Numbers(server.proxy, 200)
    for _ in range(5):
        iterator = iter(DataLoader(dataset, batch_size=2, num_workers=2, timeout=30))
        server.produce_data(next(iterator))
        in_thread(server.stop_thread)
        assert not server_threads()
        del iterator
    loader = proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, num_workers=2)
    assert check_all(loader) == list(range(23))
    server.stop_thread()


def stop_in_the_loop(server, loader, again):
    """Stop when the first batch was taken, and all three that torch asked for have been sent."""
    desk = server._desk
    for number, batch in enumerate(loader):
        check(server.produce_data(batch))
        if number == 0:
            with desk._changed:  # which announces each part that comes
                assert desk._changed.wait_for(
                    lambda: sum(peer.arrived for peer in desk._peers.values()) == 3, BOUND
                )
            server.stop_thread()
            if again:
                server.start_thread()


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_batches_from_before_a_stop_in_the_loop_are_refused_as_such(ours, again):
    with Server(twice()) as server:
        dataset = Numbers(server.proxy)
        options = {"batch_size": 4, "num_workers": 2, "prefetch_factor": 1, "timeout": BOUND}
        loader = (
            proxy.DataLoader(server, dataset, **options) if ours else DataLoader(dataset, **options)
        )
        error = failure(lambda: stop_in_the_loop(server, loader, again))
        assert isinstance(error, RequestRefused)
        assert "from before the server was stopped" in str(error)


def test_persistent_workers_find_a_server_that_was_restarted():
    server = Server(twice())
    loader = proxy.DataLoader(
        server, Numbers(server.proxy), 4, num_workers=2, persistent_workers=True, timeout=30
    )
    for _ in range(3):
        with server:
            assert check_all(loader) == list(range(23))


def test_a_forgotten_server_ends_its_threads():
    server = Server(twice())
    server.start_thread()
    produced(server, 1)
    del server
    collect()
    assert not server_threads()


def test_a_server_in_a_cycle_that_a_thread_of_its_own_collects_does_not_hang():
    collected = threading.Event()

    def collect(x):
        if int(x[0]) == 1:
            gc.collect()
            collected.set()
        return x

    holder = [Server(calling(collect), deterministic=False)]
    holder.append(holder)
    call = holder[0].proxy
    holder[0].start_thread()
    threads = server_threads()
    default_collate([call(row(0))])
    batch = default_collate([call(row(1))])
    del holder
    assert collected.wait(BOUND)
    del batch
    gc.collect()
    for thread in threads:
        thread.join(BOUND)
        assert not thread.is_alive()


# ── who may come in ──────────────────────────────────────────────────────────────────────────────


def test_a_stranger_is_sent_away_and_disturbs_nobody():
    with Server(twice()) as server:
        for first in (
            protocol.encode_hello(protocol.Hello(b"wrong", "x", 1, loader=False)),
            b"GET / HTTP/1.1",
            b"",
            b"x" * 5000,
        ):
            with closing(connect(server._desk.listener.address)) as stranger:
                stranger.send(first)
                with pytest.raises(Disconnected):
                    in_thread(stranger.receive)
        silent = connect(server._desk.listener.address)
        loader = proxy.DataLoader(server, Numbers(server.proxy), 4, num_workers=1, timeout=30)
        assert check_all(loader) == list(range(23))
        in_thread(server.stop_thread)
        silent.close()


def test_a_connection_that_talks_nonsense_is_an_error_for_its_references_not_a_hang():
    with Server(twice()) as server:
        desk = server._desk
        liar = connect(desk.listener.address)
        liar.send(protocol.encode_hello(protocol.Hello(desk.key, "liar", 1, loader=False)))
        ref = desk.receive(Ticket(desk.name, "liar", 0), [0])
        liar.send(b"nonsense")
        with pytest.raises(ProxyError, match="worker process 1 failed"):
            in_thread(lambda: desk.entry(ref).finished())
        liar.close()


def test_a_reference_may_overtake_its_connection():
    with Server(twice()) as server:
        desk = server._desk
        part = desk.receive(Ticket(desk.name, "late", 0), [0])
        asking = threading.Thread(target=lambda: results.append(desk.entry(part).finished()))
        results = []
        asking.start()
        late = connect(desk.listener.address)
        late.send(protocol.encode_hello(protocol.Hello(desk.key, "late", 1, loader=False)))
        column = protocol.Column("<i4", "", 1, [1], 16)
        message = protocol.Submit(0, 0, 0, [0], [None], [column], np.array([3], "<i4").tobytes())
        late.send(protocol.encode(message))
        asking.join(BOUND)
        assert results[0].outputs[0].as_tensor().tolist() == [[7]]
        late.close()


def test_a_server_that_cannot_accept_any_more_says_so(monkeypatch):
    def too_many(_):
        raise Disconnected("Too many open files")

    server = Server(twice())
    monkeypatch.setattr(type(server._desk.listener), "accept", too_many)
    with server:
        part = server._desk.receive(Ticket(server._desk.name, "worker", 0), [0])
        with pytest.raises(ProxyError, match="Too many open files"):
            in_thread(lambda: server._desk.entry(part))


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


class Short(Numbers):
    """Sample 9 has not the three numbers that `three` wants."""

    def __getitem__(self, index):
        return self.proxy(row(index)[: 2 if index == 9 else 3]), index


@pipeline_def(batch_size=4, num_threads=2)
def three():
    return fn.reshape(fn.external_source(name="x"), shape=[3])


def test_an_error_belongs_to_its_own_batch():
    with Server(three()) as server:
        dataset = Short(server.proxy)
        batches = [default_collate([dataset[i + k] for k in range(4)]) for i in (4, 8, 12)]
        assert server.produce_data(batches[2])[0][:, 0].tolist() == [12, 13, 14, 15]
        for _ in range(2):
            with pytest.raises(OperatorError, match="reshape") as caught:
                server.produce_data(batches[1])
            assert caught.value.__cause__ is not None
            assert caught.value.sample == 1
            del caught
        assert server.produce_data(batches[0])[0][:, 0].tolist() == [4, 5, 6, 7]


def test_an_exception_in_a_python_operator_is_chained():
    def fail(x):
        raise ZeroDivisionError(f"no {int(x[0])}")

    with Server(calling(fail)) as server:
        with pytest.raises(OperatorError, match=r"python_function.*no 5") as caught:
            produced(server, 5)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        del caught


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_an_epoch_goes_on_after_a_bad_batch_and_the_error_names_the_index(workers):
    with Server(three()) as server:
        loader = proxy.DataLoader(server, Short(server.proxy), 4, num_workers=workers)
        iterator = iter(loader)
        seen = []
        sources = []
        for _ in range(len(loader)):
            try:
                seen += next(iterator)[1].tolist()
            except OperatorError as error:
                sources.append(error.source)
        assert next(iterator, None) is None
    assert seen == [i for i in range(23) if i not in range(8, 12)]
    assert sources == ["dataset index 9"]


def test_samples_of_several_types_are_refused_and_the_next_batch_is_fine():
    with Server(twice()) as server:
        with pytest.raises(ValueError, match="element type"):
            default_collate([server.proxy(np.zeros(2)), server.proxy(np.zeros(2, np.int8))])
        assert produced(server, 1)[:, 0].tolist() == [3]
        assert server.produce_data(server.proxy(np.zeros(2))).tolist() == [1, 1]


def test_inputs_and_a_callback_that_disagree_on_the_batch_size_are_both_named():
    @pipeline_def(batch_size=4, num_threads=1)
    def pipe():
        x = fn.external_source(name="x")
        return x, fn.external_source(source=lambda: np.zeros((4, 1)))

    with Server(pipe()) as server:
        assert produced(server, 0, 1, 2, 3) is not None
        with pytest.raises(SourceError, match="Batch size has to be uniform") as caught:
            produced(server, 0, 1)
        assert "2" in str(caught.value)
        assert "4" in str(caught.value)


def test_a_callback_at_its_end_is_an_error_with_the_way_out():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        x = fn.external_source(name="x")
        return x, fn.external_source(source=[np.zeros((2, 1))])

    with Server(pipe()) as server:
        server.produce_data(default_collate([server.proxy(row(i)) for i in range(2)]))
        with pytest.raises(SourceError, match="cycle=True"):
            server.produce_data(default_collate([server.proxy(row(i)) for i in range(2)]))


# ── outputs ──────────────────────────────────────────────────────────────────────────────────────


def ragged_server(choice):
    return Server(twice(), ragged=choice)


def ragged_batch(server):
    return default_collate(
        [server.proxy(np.full(shape, i, np.int32)) for i, shape in enumerate([(2, 3), (1, 4)])]
    )


def test_ragged_outputs_are_an_error_that_names_output_and_shapes():
    with ragged_server("error") as server:
        batch = ragged_batch(server)
        for _ in range(2):
            with pytest.raises(ForebayError, match=r"output 0 is ragged.*\(2, 3\), \(1, 4\)"):
                server.produce_data(batch)
        assert produced(server, 1)[:, 0].tolist() == [3]


def test_ragged_outputs_as_a_list():
    with ragged_server("list") as server:
        result = server.produce_data(ragged_batch(server))
        assert [value.tolist() for value in result] == [[[1] * 3] * 2, [[3] * 4]]
        assert isinstance(produced(server, 1, 2), torch.Tensor)


def test_ragged_outputs_padded_with_their_lengths():
    with ragged_server("pad") as server:
        result = server.produce_data(ragged_batch(server))
        assert isinstance(result, Padded)
        assert result.data.tolist() == [
            [[1, 1, 1, 0], [1, 1, 1, 0]],
            [[3, 3, 3, 3], [0, 0, 0, 0]],
        ]
        assert result.lengths.tolist() == [[2, 3], [1, 4]]
        uniform = produced(server, 1, 2)
        assert uniform.data[:, 0].tolist() == [3, 5]
        assert uniform.lengths.tolist() == [[3], [3]]


@pytest.fixture
def warnings_as_often_as_they_come():
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


@pytest.mark.usefixtures("warnings_as_often_as_they_come")
def test_ragged_outputs_as_a_nested_tensor_without_torchs_warning():
    with ragged_server("nested") as server:
        result = server.produce_data(ragged_batch(server))
        assert result.is_nested
        assert [value.shape for value in result.unbind()] == [(2, 3), (1, 4)]


def test_ragged_inputs_with_uniform_outputs_are_one_tensor():
    with Server(calling(lambda x: x[:1])) as server:
        refs = [server.proxy(np.arange(n, n + 3 + n)) for n in range(3)]
        assert server.produce_data(default_collate(refs)).tolist() == [[0], [1], [2]]


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i4", "f2", "f4"])
def test_outputs_are_plain_contiguous_tensors_of_their_type(dtype):
    with Server(calling(lambda x: x)) as server:
        data = np.arange(6, dtype=dtype).reshape(2, 3)
        result = server.produce_data(default_collate([server.proxy(data), server.proxy(data)]))
        assert type(result) is torch.Tensor
        assert result.is_contiguous()
        np.testing.assert_array_equal(result.numpy(), np.stack([data, data]), strict=True)


def test_writing_to_a_batch_changes_no_other():
    with Server(twice()) as server:
        kept = []
        for i in range(20):
            tensor = produced(server, i, i + 1)
            tensor += 1000
            kept.append(tensor)
        for i, tensor in enumerate(kept):
            assert tensor[:, 0].tolist() == [2 * i + 1001, 2 * i + 1003]


def test_prefetch_depth_and_execution_options_do_not_change_results():
    for options in (
        {"prefetch_queue_depth": 1},
        {"exec_dynamic": False},
        {"exec_async": False, "exec_pipelined": False},
        {"num_threads": 1},
    ):
        with Server(twice(**options)) as server:
            assert produced(server, 1, 2)[:, 0].tolist() == [3, 5]


def test_runs_without_a_seed_differ_and_with_one_they_do_not():
    def draws(**options):
        with Server(drawn(**options)) as server:
            return produced(server, 1, 2, 3)[1].tolist()

    assert draws(seed=3) == draws(seed=3)
    assert draws(seed=None) != draws(seed=None)


def test_a_deterministic_server_runs_batches_as_they_are_asked_for():
    order = []

    def note(x):
        order.append(int(x[0]))
        return x

    with Server(calling(note), deterministic=True) as server:
        batches = [batch_of(server, i) for i in range(5)]
        for i in (3, 0, 4, 1, 2):
            server.produce_data(batches[i])
    assert order == [3, 0, 4, 1, 2]


def test_several_threads_may_use_one_proxy():
    with Server(sum_and_difference()) as server:
        failures = []

        def work(number):
            for i in range(30):
                base = 1000 * number + i
                refs = [server.proxy(row(base + k), row(k)) for k in range(3)]
                added, subtracted = server.produce_data(default_collate(refs))
                if added[:, 0].tolist() != [base + 2 * k for k in range(3)]:
                    failures.append(added)
                if subtracted[:, 0].tolist() != [base] * 3:
                    failures.append(subtracted)

        threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(BOUND)
            assert not thread.is_alive()
        assert not failures


# ── what is seen of it ───────────────────────────────────────────────────────────────────────────


def refuse_zeros(data):
    if not data.any():
        raise ValueError("zeros")
    return data


@pytest.mark.filterwarnings("ignore:1 samples failed and were skipped")
def test_a_server_shows_what_it_runs_how_and_with_what_errors():
    server = Server(calling(refuse_zeros), on_error="skip")
    shown = repr(server)
    assert (
        f"not running inputs=['x'] on_error='skip' errors=0 pipeline={server.pipeline!r}" in shown
    )
    with server:
        assert "Server running inputs" in repr(server)
        server.produce_data([batch_of(server, 0, 1)])
        assert "errors=1 " in repr(server)
    assert "not running" in repr(server)


def test_users_see_of_a_server_what_is_theirs():
    seen = {name for name in dir(Server(twice())) if not name.startswith("_")}
    theirs = {
        "pipeline",
        "proxy",
        "start_thread",
        "stop_thread",
        "produce_data",
        "report",
        "errors",
    }
    assert seen == {*theirs, "deliveries"}  # which loaders use
