"""What DALI's own proxy does, and what this one does in its place.

The behaviour of DALI 2.4.0's proxy was observed in 89 scenarios; most are to be the same here, and
where DALI loses data, hangs or misleads, it is to be better. This is the list of them, by number,
with the tests that show it. Those without a file are below. Decision 15 lists what is different on
purpose.

1    test_row_1_one_input_is_given_by_position_or_by_name
2    test_client.py::test_inputs_are_bound_by_position_and_by_name
3    test_client.py::test_wrong_arguments_are_refused_at_the_call
     test_row_3_a_wrong_name_is_named_by_itself
4    test_client.py::test_inputs_are_bound_by_position_and_by_name
5    test_row_5_the_signature_of_the_call_shows_inputs_and_outputs
6    test_client.py::test_the_proxy_is_one_object_and_can_be_pickled
7    test_client.py::test_an_unnamed_source_is_an_input_too
8    test_row_8_several_outputs_of_one_source_need_a_callback
9    test_client.py::test_a_source_with_a_callback_is_no_input
10   test_row_10_a_reader_and_an_input_that_disagree_on_the_batch_size
11   test_references.py::test_several_calls_a_sample_are_rows_of_their_own
12   test_references.py::test_one_reference_used_thrice_gives_the_same_tensor
13   test_server.py::test_several_threads_may_use_one_proxy
14   test_row_14_the_proxy_is_the_last_of_composed_transforms
15   test_loader.py::test_a_server_used_in_its_process_first_and_by_workers_afterwards
16   test_loader.py::test_a_server_used_in_its_process_first_and_by_workers_afterwards
17   test_server.py::test_only_a_pipeline_has_a_server
18   test_server.py::test_a_pipeline_without_inputs_is_refused
19   test_row_19_pipelines_cannot_be_deserialized_and_that_is_said_by_name
20   test_documentation_page.py::test_example_2_manual_execution
     test_row_20_an_unknown_keyword_of_a_pipeline_is_named
21   test_row_21_the_second_example_without_a_device
22   test_server.py::test_it_does_not_matter_when_the_pipeline_is_built
23   test_server.py::test_a_pipeline_that_was_run_by_hand_is_refused_and_nothing_hangs
24   test_server.py::test_two_servers_of_one_pipeline_do_not_disturb_each_other
25   test_loader.py::test_the_server_must_be_there
26   test_loader.py::test_the_server_must_be_there
27   test_loader.py::test_it_is_torchs_loader_and_takes_dalis_keyword
28   test_row_28_batches_may_be_smaller_than_the_pipelines
29   test_loader.py::test_epochs_are_whole_and_in_order
30   test_loader.py::test_torchs_loader_gives_the_same
31   test_loader.py::test_workers_may_start_in_any_way
32   test_client.py::test_the_proxy_is_one_object_and_can_be_pickled
33   test_loader.py::test_torchs_options_are_kept
34   test_loader.py::test_persistent_workers_or_none_do_many_epochs
35   test_loader.py::test_streams_of_samples
36   test_loader.py::test_epochs_are_whole_and_in_order
37   test_loader.py::test_a_batch_sampler_with_changing_sizes
     test_loader.py::test_subsets_and_concatenations
     test_loader.py::test_shuffling_gives_every_row_once_in_the_generators_order
     test_loader.py::test_torchs_options_are_kept
38   test_server.py::test_ragged_inputs_with_uniform_outputs_are_one_tensor
39   test_loader.py::test_a_dataset_that_never_calls_the_proxy
40   test_loader.py::test_torchs_timeout_ends_the_wait_for_a_slow_dataset
     test_row_40_the_timeout_ends_the_wait_for_a_slow_pipeline_too
41   test_references.py::test_a_collate_function_that_leaves_samples_alone
42   test_references.py::test_a_collate_function_that_leaves_samples_alone
     test_references.py::test_an_uncollated_reference_may_be_collated_later
43   test_references.py::test_samples_without_batches
44   test_loader.py::test_custom_collate_functions
45   test_references.py::test_rows_may_be_reordered_dropped_and_repeated
     test_references.py::test_references_of_several_batches_make_one
46   test_references.py::test_dropped_samples_are_not_sent
     test_loader.py::test_custom_collate_functions
47   test_row_47_none_for_bad_samples_that_the_collate_function_leaves_out
48   test_row_48_dataclasses_need_a_collate_function_of_their_own
49   test_references.py::test_a_larger_batch_than_the_pipelines_is_split_and_joined
50   test_server.py::test_samples_of_several_types_are_refused_and_the_next_batch_is_fine
51   test_row_51_samples_of_several_numbers_of_axes_are_refused
52   test_row_52_the_element_type_may_change_from_batch_to_batch
53   test_server.py::test_an_error_belongs_to_its_own_batch
54   test_server.py::test_an_epoch_goes_on_after_a_bad_batch_and_the_error_names_the_index
54b  test_server.py::test_an_error_belongs_to_its_own_batch
     test_server.py::test_an_epoch_goes_on_after_a_bad_batch_and_the_error_names_the_index
55   test_server.py::test_ragged_outputs_are_an_error_that_names_output_and_shapes
56   test_loader.py::test_an_exception_in_the_dataset_is_its_own_batchs
57   ../../system/test_exits.py::test_a_killed_worker_is_an_error_and_the_next_loader_is_fine
59   test_row_59_tensors_are_taken_from_workers_and_from_the_loops_process
60   test_client.py::test_arrays_of_every_type_keep_it
     test_client.py::test_python_data_is_taken
61   test_client.py::test_python_data_is_taken
62   test_client.py::test_what_cannot_be_data_is_refused_at_the_call_with_the_inputs_name
63   test_client.py::test_python_data_is_taken
64   test_client.py::test_what_cannot_be_data_is_refused_at_the_call_with_the_inputs_name
65   test_loader.py::test_an_epoch_left_early_leaves_nothing_to_the_next
65b  test_loader.py::test_a_look_at_one_batch_before_the_epochs
66   test_loader.py::test_an_epoch_left_early_leaves_nothing_to_the_next
67   test_row_67_a_deterministic_server_after_an_epoch_that_was_left
68   test_row_68_two_loaders_one_after_the_other
69   test_loader.py::test_two_loaders_of_one_server_at_the_same_time
70   test_row_70_loaders_of_two_servers_at_the_same_time
71   test_references.py::test_outputs_may_be_asked_for_one_by_one_and_in_any_order
     test_references.py::test_results_are_free_when_their_references_are_gone
72   test_references.py::test_asking_again_gives_the_same_tensor
73   test_server.py::test_it_starts_when_data_is_first_asked_for
74   test_row_74_what_was_pending_at_a_stop_is_refused_and_the_next_epoch_is_whole
75   test_row_75_as_much_is_made_ahead_as_torchs_loader_asks_for
76   test_loader.py::test_random_numbers_do_not_depend_on_the_workers
     test_loader.py::test_runs_without_a_seed_differ
77   test_row_77_a_deterministic_server_repeats_itself
78   test_server.py::test_a_server_that_works_stops
79   test_server.py::test_starting_and_stopping_twice_is_once
80   test_server.py::test_an_exception_in_the_with_block_comes_out
81   ../../system/test_exits.py::test_an_exception_outside_with_ends_the_process_with_its_traceback
     ../../system/test_exits.py::test_a_server_that_nobody_stopped_and_a_loader_left_early_do_not_keep_the_process
82   test_row_82_a_loader_starts_the_server_and_prints_nothing
83   test_row_83_the_server_runs_until_it_is_stopped
84   test_row_84_workers_may_be_there_before_the_server_runs
85   test_row_85_leaving_with_returns_false
86   test_server.py::test_outputs_are_plain_contiguous_tensors_of_their_type
87   test_row_87_options_of_execution_keep_every_type
88   test_server.py::test_writing_to_a_batch_changes_no_other
89   test_structure.py::test_every_container_keeps_its_type_and_is_not_changed
     test_structure.py::test_cycles_stay_cycles
     test_row_89_each_batch_is_run_once_wherever_its_references_are
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import gc
import inspect
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, default_collate
from torchvision.transforms import Compose, ToTensor

from forebay import Pipeline, fn, pipeline_def
from forebay.errors import RequestRefused, ServerStopped
from forebay.torch import proxy
from forebay.torch.proxy import DALIOutputSampleRef, DALIServer, SampleRef, Server
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

ALL = list(range(23))
HERE = Path(__file__)


@pytest.fixture
def server():
    with Server(twice()) as made:
        yield made


def load(server, dataset=None, **options):
    dataset = Numbers(server.proxy) if dataset is None else dataset
    return proxy.DataLoader(server, dataset, **{"batch_size": 4, **options})


def listed() -> dict[str, list[str]]:
    """Row → its tests, as this file's docstring says."""
    found: dict[str, list[str]] = {}
    for line in re.findall(r"^(\d+b?|   ) +(\S*test_\S+)$", __doc__ or "", re.MULTILINE):
        number = line[0].strip() or list(found)[-1]
        found.setdefault(number, []).append(line[1])
    return found


@functools.cache
def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_has_tests_and_they_exist():
    rows = [str(number) for number in range(1, 90) if number != 58]
    rows.insert(rows.index("54") + 1, "54b")
    rows.insert(rows.index("65") + 1, "65b")
    assert list(listed()) == rows  # 58, 90 and 91 are no behaviour to match
    below = set()
    for number, tests in listed().items():
        for test in tests:
            file, _, name = test.rpartition("::")
            path = HERE if not file else HERE.parent / file
            assert name in functions(path), f"row {number}: {test} does not exist"
            if not file:
                assert name.startswith(f"test_row_{number}_")
                below.add(name)
    assert below == {name for name in globals() if name.startswith("test_row_")}


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def test_row_1_one_input_is_given_by_position_or_by_name(server):
    for ref in (server.proxy(row(4)), server.proxy(x=row(4))):
        assert type(ref) is SampleRef is DALIOutputSampleRef
        assert server.produce_data(ref).tolist() == [9, 9, 9]


def test_row_3_a_wrong_name_is_named_by_itself(server):
    for args in ((), (row(1),)):
        with pytest.raises(ValueError, match=r"Expected signature is: .* keyword argument 'c'"):
            server.proxy(*args, c=1)


def test_row_5_the_signature_of_the_call_shows_inputs_and_outputs(server):
    two = Server(sum_and_difference())
    for called in (two.proxy, two.proxy.__call__):
        signature = inspect.signature(called)
        assert list(signature.parameters) == ["a", "b"]
        assert signature.return_annotation == (SampleRef, SampleRef)
    assert inspect.signature(server.proxy.__call__).return_annotation is SampleRef
    assert server.produce_data(server.proxy.__call__(row(1))).tolist() == [3, 3, 3]


def test_row_8_several_outputs_of_one_source_need_a_callback():
    @pipeline_def(batch_size=2)
    def pipe():
        return tuple(fn.external_source(num_outputs=2))

    text = "The parameter ``num_outputs`` is only valid when using ``source`` to provide data"
    with pytest.raises(ValueError, match=text):
        pipe()


def test_row_10_a_reader_and_an_input_that_disagree_on_the_batch_size(tmp_path):
    files = [tmp_path / name for name in "abc"]
    for file in files:
        file.write_bytes(file.name.encode())

    @pipeline_def(batch_size=4, num_threads=1)
    def pipe():
        data, _ = fn.readers.file(files=[str(file) for file in files])
        return data, fn.external_source(name="x")

    with Server(pipe()) as server:
        whole = [default_collate([server.proxy(row(i)) for i in range(4)]) for _ in range(2)]
        data, numbers = server.produce_data(whole[0])
        assert bytes(data.flatten().tolist()) == b"abca"
        assert numbers[:, 0].tolist() == [0, 1, 2, 3]
        partial = default_collate([server.proxy(row(i)) for i in range(2)])
        text = "Batch size has to be uniform across one iteration. Expected: 2; Actual: 4"
        with pytest.raises(RuntimeError, match=text):
            server.produce_data(partial)
        assert server.produce_data(whole[1])[1][:, 0].tolist() == [0, 1, 2, 3]


def test_row_14_the_proxy_is_the_last_of_composed_transforms(server):
    assert server.produce_data(Compose([row, server.proxy])(5)).tolist() == [11, 11, 11]
    with pytest.raises(TypeError, match="pic should be PIL Image or ndarray"):
        Compose([row, server.proxy, ToTensor()])(5)


# ── servers and loaders ──────────────────────────────────────────────────────────────────────────


def test_row_19_pipelines_cannot_be_deserialized_and_that_is_said_by_name():
    with pytest.raises(AttributeError, match="deserialize"):
        Pipeline.deserialize(b"")


def test_row_20_an_unknown_keyword_of_a_pipeline_is_named():
    with pytest.raises(TypeError, match="'devise' is an argument neither of"):
        twice(devise="cpu")


def test_row_21_the_second_example_without_a_device():
    @pipeline_def
    def my_pipe():
        a = fn.external_source(name="a", no_copy=True)
        b = fn.external_source(name="b", no_copy=True)
        return a + b, b - a

    with DALIServer(my_pipe(batch_size=8, num_threads=3, device_id=None)) as server:
        outs = []
        for i in range(8):
            a = np.full((3, 3), i, np.float32)
            b = np.full((3, 3), 10 * i, np.float32)
            outs.append((a, b, *server.proxy(a=a, b=b)))
        a, b, added, subtracted = server.produce_data(default_collate(outs))
    assert torch.equal(added, a + b)
    assert torch.equal(subtracted, b - a)


def test_row_28_batches_may_be_smaller_than_the_pipelines():
    with Server(twice(batch_size=64)) as server:
        batches = list(load(server, batch_size=3, num_workers=1))
    assert [len(data) for data, _ in batches] == [3] * 7 + [2]
    assert check_all(batches) == ALL


def test_row_40_the_timeout_ends_the_wait_for_a_slow_pipeline_too():
    free = threading.Event()

    def wait(x):
        if x[0] == 4:
            assert free.wait(BOUND)
        return x * 2 + 1

    @pipeline_def(batch_size=4, num_threads=1)
    def pipe():
        return fn.python_function(fn.external_source(name="x"), function=wait)

    with Server(pipe()) as server:
        batches = iter(load(server, Numbers(server.proxy), num_workers=1, timeout=1))
        assert check(next(batches)) == [0, 1, 2, 3]
        for _ in range(2):
            with pytest.raises(RuntimeError, match=r"timed out after 1 seconds.*outputs"):
                in_thread(lambda: next(batches))
        free.set()
        assert check_all(batches) == ALL[4:]


def without_nones(batch):
    return default_collate([sample for sample in batch if sample is not None])


class Some(Numbers):
    def __getitem__(self, index: int) -> Any:
        return None if index % 3 == 1 else super().__getitem__(index)


@pytest.mark.parametrize("workers", [0, 2])
def test_row_47_none_for_bad_samples_that_the_collate_function_leaves_out(server, workers):
    loader = load(
        server, Some(server.proxy), batch_size=5, collate_fn=without_nones, num_workers=workers
    )
    assert check_all(loader) == [i for i in ALL if i % 3 != 1]


@dataclasses.dataclass
class Record:
    data: Any
    label: Any


class Records(Numbers):
    def __getitem__(self, index: int) -> Any:
        return Record(*super().__getitem__(index))


def as_record(batch):
    columns = ([sample.data for sample in batch], [sample.label for sample in batch])
    return Record(*map(default_collate, columns))


@pytest.mark.parametrize("workers", [0, 1])
def test_row_48_dataclasses_need_a_collate_function_of_their_own(server, workers):
    dataset = Records(server.proxy)
    error = failure(lambda: next(iter(load(server, dataset, num_workers=workers))))
    assert isinstance(error, TypeError)
    assert "default_collate: batch must contain" in str(error)
    loader = load(server, dataset, collate_fn=as_record, num_workers=workers)
    assert check_all((batch.data, batch.label) for batch in loader) == ALL


# ── data and errors ──────────────────────────────────────────────────────────────────────────────


def test_row_51_samples_of_several_numbers_of_axes_are_refused(server):
    refs = [server.proxy(row(1)), server.proxy(row(1)[None])]
    with pytest.raises(RuntimeError, match=r"number of axes.*shape \(3,\).*shape \(1, 3\)"):
        default_collate(refs)
    assert server.produce_data(default_collate(refs[:1])).tolist() == [[3, 3, 3]]


def test_row_52_the_element_type_may_change_from_batch_to_batch(server):
    for dtype in (np.int32, np.float64, np.uint8, np.int32):
        batch = default_collate([server.proxy(row(i).astype(dtype)) for i in range(2)])
        assert server.produce_data(batch)[:, 0].tolist() == [1, 3]


class Tensors(Numbers):
    def __getitem__(self, index: int) -> Any:
        return self.proxy(torch.full((3,), index)), index


@pytest.mark.parametrize("workers", [0, 1])
def test_row_59_tensors_are_taken_from_workers_and_from_the_loops_process(server, workers):
    assert check_all(load(server, Tensors(server.proxy), num_workers=workers)) == ALL


# ── order and ends ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("workers", [1, 3])
def test_row_67_a_deterministic_server_after_an_epoch_that_was_left(workers):
    with Server(twice(), deterministic=True) as server:
        loader = load(server, shuffle=True, num_workers=workers)
        for _ in range(2):
            check(next(iter(loader)))
            assert sorted(check_all(loader)) == ALL


def test_row_68_two_loaders_one_after_the_other(server):
    for size in (23, 9, 23):
        loader = load(server, Numbers(server.proxy, size), num_workers=2)
        assert check_all(loader) == ALL[:size]


def test_row_70_loaders_of_two_servers_at_the_same_time(server):
    with Server(twice()) as other:
        pairs = zip(load(server, num_workers=1), load(other, num_workers=2), strict=True)
        assert [check(a) == check(b) for a, b in pairs] == [True] * 6


def test_row_74_what_was_pending_at_a_stop_is_refused_and_the_next_epoch_is_whole(server):
    pending = [default_collate([server.proxy(row(i))]) for i in range(20)]
    assert server.produce_data(pending[0]).tolist() == [[1, 1, 1]]
    server.stop_thread()
    server.start_thread()
    for number, batch in enumerate(pending):
        try:
            data = in_thread(lambda batch=batch: server.produce_data(batch))
        except (ServerStopped, RequestRefused):
            continue
        assert data.tolist() == [[2 * number + 1] * 3]  # it was done before the stop
    assert check_all(load(server, num_workers=2)) == ALL


def test_row_75_as_much_is_made_ahead_as_torchs_loader_asks_for(server):
    batches = iter(load(server, Numbers(server.proxy, 400), num_workers=2, prefetch_factor=3))
    seen = check(next(batches))
    desk = server._desk

    def arrived() -> int:
        return sum(peer.arrived for peer in desk._peers.values())

    with desk._changed:
        assert desk._changed.wait_for(lambda: arrived() >= 1 + 2 * 3, BOUND)
    seen += check(next(batches))
    with desk._changed:
        assert desk._changed.wait_for(lambda: arrived() >= 2 + 2 * 3, BOUND)
        assert arrived() == 2 + 2 * 3
    assert seen + check_all(batches) == list(range(400))


def test_row_77_a_deterministic_server_repeats_itself():
    def draws():
        with Server(drawn(), deterministic=True) as server:
            loader = load(server, num_workers=4)
            return [numbers.tolist() for (_, numbers), _ in loader]

    first = draws()
    assert len({number for batch in first for number in batch}) == 23
    assert all(draws() == first for _ in range(2))


# ── life ─────────────────────────────────────────────────────────────────────────────────────────


def test_row_82_a_loader_starts_the_server_and_prints_nothing(capfd):
    server = Server(twice())
    loader = load(server, num_workers=1)
    assert server._thread is None
    assert check_all(loader) == ALL
    assert server._thread is not None
    del loader
    gc.collect()
    server.stop_thread()
    assert capfd.readouterr() == ("", "")


def test_row_83_the_server_runs_until_it_is_stopped():
    server = Server(twice())
    loader = load(server, num_workers=1)
    for _ in range(2):
        assert check_all(loader) == ALL
        assert server._thread is not None
        server.stop_thread()
        assert server._thread is None


@pytest.mark.parametrize("first", ["server", "workers"])
def test_row_84_workers_may_be_there_before_the_server_runs(first):
    server = Server(twice())
    if first == "server":
        server.start_thread()
    batches = iter(DataLoader(Numbers(server.proxy), batch_size=4, num_workers=2))
    refs = list(batches)
    server.start_thread()
    assert check_all(map(server.produce_data, refs)) == ALL
    server.stop_thread()


@pytest.mark.parametrize("error", [(None, None, None), (KeyError, KeyError("mine"), None)])
def test_row_85_leaving_with_returns_false(error):
    server = Server(twice())
    server.start_thread()
    assert server.__exit__(*error) is False
    assert server._thread is None


# ── outputs ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"exec_dynamic": False},
        {"exec_dynamic": False, "exec_async": False, "exec_pipelined": False},
        {"prefetch_queue_depth": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i4", "f2", "f4"])
def test_row_87_options_of_execution_keep_every_type(options, dtype):
    @pipeline_def(batch_size=4, num_threads=1, **options)
    def pipe():
        return fn.external_source(name="x")

    with Server(pipe()) as server:
        data = np.arange(6, dtype=dtype).reshape(2, 3)
        result = server.produce_data(default_collate([server.proxy(data)] * 2))
        np.testing.assert_array_equal(result.numpy(), np.stack([data, data]), strict=True)


Pair = collections.namedtuple("Pair", ["left", "right"])


class Holder:
    def __init__(self, **members: Any) -> None:
        self.__dict__.update(members)


def test_row_89_each_batch_is_run_once_wherever_its_references_are():
    runs = []

    def note(x):
        runs.append(int(x[0]))
        return x, x + 1

    @pipeline_def(batch_size=4, num_threads=1)
    def pipe():
        x = fn.external_source(name="x")
        return tuple(fn.python_function(x, function=note, num_outputs=2))

    with Server(pipe()) as server:
        same, more = default_collate([server.proxy(row(i)) for i in range(3)])
        holder = Holder(inner=[same])
        holder.itself = holder
        given = {
            "pair": Pair(same, "kept"),
            "ordered": collections.OrderedDict(z=more, a=[same, (more,)]),
            "holder": holder,
        }
        result = server.produce_data(given)
    assert sorted(runs) == [0, 1, 2]
    data, plus = result["pair"].left, result["ordered"]["z"]
    assert data[:, 0].tolist() == [0, 1, 2]
    assert plus[:, 0].tolist() == [1, 2, 3]
    assert type(result["pair"]) is Pair
    assert result["pair"].right == "kept"
    assert list(result["ordered"]) == ["z", "a"]
    assert result["ordered"]["a"][0] is data
    assert result["ordered"]["a"][1] == (plus,)
    assert result["holder"].inner[0] is data
    assert result["holder"].itself is result["holder"]
    assert given["holder"] is holder
    assert holder.inner == [same]
    assert given["pair"].left is same
