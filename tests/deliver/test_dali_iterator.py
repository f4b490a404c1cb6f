"""DALI's iterators: the same batches as DALI's own, or exact ones where DALI's are not."""

from __future__ import annotations

import gc
import inspect
import itertools
import logging
import threading

import numpy as np
import pytest
import torch

from forebay import fn, pipeline_def
from forebay.errors import ArgumentError, ForebayError
from forebay.torch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    LastBatchPolicy,
    feed_ndarray,
)
from garbage import wait
from labelled import batches, epoch, flat, passes, reader, source

FILL, DROP, PARTIAL = LastBatchPolicy


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("files")
    for number in range(20):
        (root / f"{number:02}").write_bytes(b"x")
    return [str(root / f"{number:02}") for number in range(20)]


def ours(pipes, **arguments):
    return DALIGenericIterator(pipes, ["label"], **arguments)


def theirs(pipes, last_batch_policy=FILL, **arguments):
    from nvidia.dali.plugin import pytorch

    policy = pytorch.LastBatchPolicy[last_batch_policy.name]
    return pytorch.DALIGenericIterator(pipes, ["label"], last_batch_policy=policy, **arguments)


QUIET = pytest.mark.filterwarnings("ignore:Please set `reader_name`:Warning")  # DALI's, of `size`


def dali():
    from nvidia import dali

    return dali


def both(make, collect, **arguments):
    """What `collect` makes of our iterator and of DALI's over the same pipelines."""
    import forebay

    return (
        collect(ours(make(forebay), **arguments)),
        collect(theirs(make(dali()), **arguments)),
    )


def running():
    return [thread for thread in threading.enumerate() if thread.name.startswith("forebay")]


def epochs(iterator, number=4):
    return [epoch(iterator) for _ in range(number)]


@pytest.mark.dali
@pytest.mark.parametrize("policy", LastBatchPolicy)
@pytest.mark.parametrize("stick", [False, True])
@pytest.mark.parametrize(("size", "shards"), [(9, 2), (10, 3), (11, 3), (14, 3)])
def test_a_reader_that_pads_gives_dalis_epochs(files, size, shards, stick, policy):
    for shard in range(shards):
        got, expected = both(
            lambda library, shard=shard: reader(
                files,
                size,
                3,
                shard,
                shards,
                library=library,
                pad_last_batch=True,
                stick_to_shard=stick,
            ),
            lambda it: (len(it), it.size, epochs(it), len(it)),
            reader_name="R",
            last_batch_policy=policy,
            auto_reset=True,
        )
        if policy is DROP and size in (10, 11):
            # DALI begins later epochs with the padding (0 1 2 | 2 2 2 | 3 4 5): decisions/0009.
            assert got[:2] == expected[:2]
            assert got[2][0] == expected[2][0]
            assert len({tuple(flat(found)) for found in got[2]}) == (1 if stick else shards)
            assert all(len(set(flat(found))) == 3 for found in got[2])
        else:
            assert got == expected


@pytest.mark.dali
@pytest.mark.parametrize("stick", [False, True])
@pytest.mark.parametrize(
    ("size", "shards", "batch"), [(9, 2, 3), (10, 1, 3), (10, 3, 3), (11, 3, 3), (5, 1, 8)]
)
def test_fill_without_padding_runs_on_as_in_dali(files, size, shards, batch, stick):
    for shard in range(shards):
        got, expected = both(
            lambda library, shard=shard: reader(
                files, size, batch, shard, shards, library=library, stick_to_shard=stick
            ),
            lambda it: (len(it), it.size, epochs(it, 5), len(it), it.size),
            reader_name="R",
            auto_reset=True,
        )
        assert got == expected


@pytest.mark.dali
@pytest.mark.parametrize("policy", [DROP, PARTIAL])
@pytest.mark.parametrize(("size", "shards"), [(9, 2), (10, 1), (10, 3), (11, 3)])
def test_the_first_epoch_without_padding_is_dalis_and_later_ones_are_exact(
    files, size, shards, policy
):
    """DALI throws away what the last batch has of the next epoch: decisions/0009."""
    given = []
    for shard in range(shards):
        got, expected = both(
            lambda library, shard=shard: reader(files, size, 3, shard, shards, library=library),
            lambda it: (len(it), it.size, epochs(it)),
            reader_name="R",
            last_batch_policy=policy,
            auto_reset=True,
        )
        assert got[:2] == expected[:2]
        assert got[2][0] == expected[2][0]
        given.append(got[2])
    for found in zip(*given, strict=True):
        assert len({len(rank) for rank in found}) == 1
        rows = flat(flat(found))
        if policy is PARTIAL:
            assert sorted(rows) == list(range(size))
        else:
            assert len(set(rows)) == len(rows) == shards * (size // shards // 3 * 3)


@pytest.mark.parametrize("policy", [DROP, PARTIAL])
@pytest.mark.parametrize("pad", [False, True])
def test_shuffled_epochs_have_no_sample_twice(files, pad, policy):
    iterator = ours(
        reader(files, 10, random_shuffle=True, initial_fill=4, pad_last_batch=pad),
        reader_name="R",
        last_batch_policy=policy,
    )
    for found in passes(iterator, 5):
        rows = flat(found)
        assert len(set(rows)) == len(rows) == (10 if policy is PARTIAL else 9)


@QUIET
@pytest.mark.dali
@pytest.mark.parametrize("policy", LastBatchPolicy)
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_a_size_cuts_what_the_reader_gives_as_in_dali(files, padded, pad, policy):
    got, expected = both(
        lambda library: reader(files, 10, library=library, pad_last_batch=pad),
        lambda it: (len(it), it.size, epochs(it)),
        size=10,
        last_batch_padded=padded,
        last_batch_policy=policy,
        auto_reset=True,
    )
    assert got == expected


@QUIET
@pytest.mark.dali
@pytest.mark.parametrize("policy", LastBatchPolicy)
@pytest.mark.parametrize("arguments", [{"reader_name": "R"}, {"size": 11}])
def test_two_pipelines_run_in_step_as_in_dali(files, arguments, policy):
    pad = "reader_name" in arguments
    got, expected = both(
        lambda library: [
            reader(files, 11, 3, i, 2, library=library, pad_last_batch=pad) for i in (0, 1)
        ],
        lambda it: (len(it), it.size, epochs(it)),
        last_batch_policy=policy,
        auto_reset=True,
        **arguments,
    )
    assert got == expected


@pytest.mark.dali
@pytest.mark.parametrize("auto_reset", [False, True, None, "yes", "no"])
@pytest.mark.parametrize("cycle", [None, "raise"])
@pytest.mark.parametrize("collect", [epochs, passes], ids=["next", "for"])
def test_sources_that_end_do_as_in_dali(collect, cycle, auto_reset):
    got, expected = both(
        lambda library: source(batches(8), library=library, cycle=cycle),
        lambda it: (len(it), it.size, collect(it)),
        auto_reset=auto_reset,
    )
    assert got == expected


@pytest.mark.dali
@pytest.mark.parametrize("auto_reset", [False, True, None, "yes", "no"])
@pytest.mark.parametrize("collect", [epochs, passes], ids=["next", "for"])
def test_the_next_epoch_begins_when_dalis_does(files, collect, auto_reset):
    got, expected = both(
        lambda library: reader(files, 10, library=library, pad_last_batch=True),
        collect,
        reader_name="R",
        auto_reset=auto_reset,
    )
    assert got == expected


def use(iterator, script):
    """Do what a script says: n(ext), i(ter), r(eset)."""
    found = []
    for step in script:
        if step == "n":
            found.append(next(iterator, None))
            found[-1] = found[-1] and found[-1][0]["label"][:, 0].tolist()
        elif step == "i":
            assert iter(iterator) is iterator
        else:
            iterator.reset()
    return found


@pytest.mark.dali
@pytest.mark.parametrize(
    "script", ["ninnnninn", "nrnnnnrnn", "rrnnnnrrn", "innnnnnninn", "nnnninn", "iinnnnninn"]
)
@pytest.mark.parametrize("auto_reset", [False, True])
def test_iter_and_reset_in_mid_epoch_do_what_they_do_in_dali(files, script, auto_reset):
    got, expected = both(
        lambda library: reader(files, 10, library=library, pad_last_batch=True),
        lambda it: use(it, script),
        reader_name="R",
        auto_reset=auto_reset,
    )
    assert got == expected


def test_a_reset_in_mid_epoch_is_noted(files, caplog):
    iterator = ours(reader(files, 10), reader_name="R")
    with caplog.at_level(logging.WARNING, "forebay"):
        iterator.reset()
        next(iterator)
        assert not caplog.records
        iterator.reset()
    assert "in the middle of an epoch" in caplog.text


@pytest.mark.parametrize("auto_reset", [False, True])
def test_a_consumer_that_is_one_ahead_sees_every_batch(files, auto_reset):
    iterator = ours(reader(files, 10), reader_name="R", auto_reset=auto_reset)
    for expected in ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1], [2, 3, 4, 5, 6, 7, 8, 9, 0]):
        loop, seen = iter(iterator), []
        coming = next(loop, None)
        while coming is not None:
            current, coming = coming, next(loop, None)
            seen += current[0]["label"][:, 0].tolist()
        assert seen == expected


def test_an_epoch_of_one_batch_is_not_lost_when_it_was_prepared(files):
    iterator = ours(reader(files, 3), reader_name="R")
    assert passes(iterator) == [[[0, 1, 2]]] * 3


@pytest.mark.dali
@pytest.mark.parametrize("prepare", [False, True])
def test_the_first_batch_is_prepared_when_dalis_is(prepare):
    asked = []

    def give(i):
        asked.append(i)
        return np.full((3, 1), i, np.int32)

    def collect(it):
        before = bool(asked)
        first = epoch(it, 1)
        asked.clear()
        return before, first

    got, expected = both(
        lambda library: source(give, library=library), collect, prepare_first_batch=prepare
    )
    assert got == expected


def test_the_size_may_end_an_epoch_together_with_the_source():
    iterator = ours(source(batches(9), cycle="raise"), size=9, auto_reset=True)
    assert epochs(iterator) == [[[0, 1, 2], [3, 4, 5], [6, 7, 8]]] * 4


def test_a_list_that_ends_with_the_size_has_no_second_epoch():
    iterator = ours(source(batches(9)), size=9, auto_reset=True)
    assert epochs(iterator, 2) == [[[0, 1, 2], [3, 4, 5], [6, 7, 8]], []]


def test_a_short_batch_where_the_size_wants_a_full_one_is_refused():
    iterator = ours(source(batches(8), cycle="raise"), size=9)
    with pytest.raises(ForebayError, match="has 2 samples where 3 are wanted"):
        passes(iterator, 1)


def test_an_iterator_that_is_dropped_ends_its_threads_without_the_garbage_collector(files):
    gc.disable()
    try:
        iterator = ours(reader(files, 10), reader_name="R")
        next(iterator)
        assert running()
        del iterator
        wait()
        assert not running()
    finally:
        gc.enable()


def test_batches_that_are_kept_do_not_change():
    iterator = ours(source(lambda i: np.full((3, 200, 200), i % 250, np.uint8)))
    kept = [batch[0]["label"] for batch in itertools.islice(iterator, 40)]
    assert all((x == i).all() for i, x in enumerate(kept))


# ── arguments ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.dali
@pytest.mark.parametrize(
    "name", ["DALIGenericIterator", "DALIClassificationIterator", "DALIRaggedIterator"]
)
def test_arguments_and_defaults_are_dalis(name):
    from nvidia.dali.plugin import pytorch

    import forebay.torch

    def form(cls):
        return [
            (p.name, p.kind, str(getattr(p.default, "name", p.default)))
            for p in inspect.signature(cls).parameters.values()
        ]

    assert form(getattr(forebay.torch, name)) == form(getattr(pytorch, name))


def test_policies_have_dalis_values():
    assert {policy.name: policy.value for policy in LastBatchPolicy} == {
        "FILL": 0,
        "DROP": 1,
        "PARTIAL": 2,
    }


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"reader_name": "R", "size": 10}, "size should not be set"),
        ({"reader_name": "R", "last_batch_padded": True}, "last_batch_padded should not be set"),
        ({"reader_name": "Q"}, "no reader named 'Q'"),
        ({"size": 0}, "number of samples"),
        ({"size": 2.5}, "number of samples"),
        ({"auto_reset": "maybe"}, "auto_reset"),
        ({"auto_reset": 1}, "auto_reset"),
        ({"last_batch_policy": "FILL"}, "LastBatchPolicy"),
        ({"last_batch_policy": 1}, "LastBatchPolicy"),
        ({"size": 2, "last_batch_policy": DROP}, "no batch"),
    ],
)
def test_arguments_that_cannot_be_are_refused(files, arguments, text):
    with pytest.raises(ArgumentError, match=text):
        ours(reader(files, 10), **arguments)


@pytest.mark.parametrize(
    ("shards", "second", "text"),
    [
        (2, {"batch": 4}, "same batch size"),
        (2, {"shards": 3}, "num_shards"),
        (2, {"pad_last_batch": True}, "pad_last_batch"),
        (2, {"stick_to_shard": True}, "stick_to_shard"),
        (2, {"size": 12}, "size value"),
    ],
)
def test_pipelines_that_do_not_go_together_are_refused(files, shards, second, text):
    given = {"size": 11, "batch": 3, "shard": 0, "shards": shards}
    pipes = [reader(files, **given), reader(files, **{**given, "shard": 1, **second})]
    with pytest.raises(ArgumentError, match=text):
        ours(pipes, reader_name="R")


def test_several_pipelines_need_a_size_or_a_reader(files):
    with pytest.raises(ArgumentError, match="single pipeline"):
        ours([source(batches(9)), source(batches(9))])
    for none in ([], None):
        with pytest.raises(ArgumentError, match="at least 1"):
            ours(none)


@pytest.mark.parametrize("names", [[], ["a", "b"], ["a", "a"]])
def test_each_output_has_a_name_of_its_own(names):
    with pytest.raises(ArgumentError, match="output_map"):
        DALIGenericIterator(source(batches(9)), names)


@pytest.mark.parametrize(("fill", "last"), [(True, [9, 0, 1]), (False, [9])])
def test_fill_last_batch_is_an_old_word_for_two_policies(files, fill, last):
    with pytest.warns(DeprecationWarning, match="last_batch_policy"):
        iterator = ours(reader(files, 10), size=10, fill_last_batch=fill)
    assert passes(iterator, 1)[0][-1] == last


# ── what they give ───────────────────────────────────────────────────────────────────────────────


def test_a_classification_iterator_names_data_and_label():
    given = [[[np.zeros((4, 4), np.float32)] * 3, [np.array([7], np.int32)] * 3]]

    @pipeline_def(batch_size=3, num_threads=1)
    def pipe():
        return tuple(fn.external_source(source=given, num_outputs=2))

    [[batch]] = DALIClassificationIterator(pipe())
    assert list(batch) == ["data", "label"]
    assert batch["data"].shape == (3, 4, 4)
    assert batch["label"].tolist() == [[7]] * 3
    with pytest.raises(ArgumentError, match="output_map"):
        DALIClassificationIterator(source(batches(3)))


def test_a_ragged_output_needs_the_ragged_iterator():
    with pytest.raises(RuntimeError, match="ragged"):
        next(ours(source([[np.zeros(2), np.zeros(3)]])))


RAGGED = [[np.array([1, 0, 2], np.int32), np.array([3], np.int32), np.array([4, 5], np.int32)]]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # torch's, in DALI
@pytest.mark.dali
@pytest.mark.parametrize("tag", ["sparse_list", "sparse_coo"])
@pytest.mark.parametrize("given", [RAGGED, [[np.array([1, 0], np.int32)] * 3]])
def test_ragged_outputs_are_dalis(given, tag):
    from nvidia.dali.plugin import pytorch

    [[got]] = DALIRaggedIterator(source(given), ["x"], output_types=[tag])
    [[expected]] = pytorch.DALIRaggedIterator(
        source(given, library=dali()), ["x"], output_types=[tag]
    )
    if tag == "sparse_list":
        assert [x.tolist() for x in got["x"]] == [x.tolist() for x in expected["x"]]
        assert {x.dtype for x in got["x"]} == {x.dtype for x in expected["x"]}
        return
    assert got["x"].dtype == expected["x"].dtype
    assert got["x"].shape == expected["x"].shape
    assert got["x"]._nnz() == expected["x"]._nnz()
    assert got["x"].to_dense().tolist() == expected["x"].to_dense().tolist()


def test_sparse_outputs_may_have_several_axes_and_a_partial_batch():
    given = [[np.ones((2, 1), np.int32), np.full((1, 3), 2, np.int32)]]
    iterator = DALIRaggedIterator(
        source(given, 2),
        ["x"],
        output_types=[DALIRaggedIterator.SPARSE_COO_TAG],
    )
    [[batch]] = iterator
    assert batch["x"].to_dense().tolist() == [[[1, 0, 0], [1, 0, 0]], [[2, 2, 2], [0, 0, 0]]]


def test_a_partial_batch_is_cut_in_every_form(files):
    for tag in ("dense", "sparse_list", "sparse_coo"):
        iterator = DALIRaggedIterator(
            reader(files, 4),
            ["x"],
            reader_name="R",
            output_types=[tag],
            last_batch_policy=PARTIAL,
        )
        *_, [last] = iterator
        found = last["x"].to_dense() if tag == "sparse_coo" else last["x"]
        assert [row.tolist() for row in found] == [[3]]


@pytest.mark.parametrize("types", [["x"], ["dense", "dense"], "sparse_list"])
def test_unknown_forms_are_refused(types):
    with pytest.raises(ArgumentError, match="output_types"):
        DALIRaggedIterator(source(batches(3)), ["x"], output_types=types)


def test_feed_ndarray_copies_into_a_tensor():
    (batch,) = source([[np.array([1, 2], np.int32)] * 3]).run()
    target = torch.zeros((2, 3), dtype=torch.int32).T
    assert feed_ndarray(batch, target) is target
    assert target.tolist() == [[1, 2]] * 3
    for wrong in (torch.zeros((3, 2)), torch.zeros((2, 2), dtype=torch.int32)):
        with pytest.raises(ArgumentError, match="target"):
            feed_ndarray(batch, wrong)
