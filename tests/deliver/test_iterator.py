"""`forebay.torch.Iterator`: each loop is an epoch, and has every sample once."""

from __future__ import annotations

import gc
import itertools
import threading

import numpy as np
import pytest
import torch

from forebay import fn, pipeline_def
from forebay.errors import ArgumentError, ForebayError, OperatorError
from forebay.torch import Iterator, LastBatchPolicy, Padded
from garbage import wait
from labelled import batches, flat, labels, passes, reader, source


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("files")
    for number in range(20):
        (root / f"{number:02}").write_bytes(b"x")
    return [str(root / f"{number:02}") for number in range(20)]


def one_ahead(iterator):
    """A loop that takes the next batch before it uses the last one."""
    loop = iter(iterator)
    coming = next(loop, None)
    while coming is not None:
        current, coming = coming, next(loop, None)
        yield current


# ── readers ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("loop", [iter, one_ahead])
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("shuffle", [{}, {"random_shuffle": True, "initial_fill": 4}])
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_the_shards_of_every_epoch_are_the_data(files, shards, shuffle, pad, loop):
    for size in (9, 10, 11):
        ranks = [
            Iterator(reader(files, size, 3, i, shards, pad_last_batch=pad, seed=i, **shuffle))
            for i in range(shards)
        ]
        for _ in range(3):
            epochs = [[labels(b) for b in loop(it)] for it in ranks]
            assert {len(epoch) for epoch in epochs} == {len(ranks[0])}
            assert sorted(flat(flat(epochs))) == list(range(size))


@pytest.mark.parametrize("shards", [1, 2, 3])
@pytest.mark.parametrize("size", [9, 10, 11])
def test_drop_gives_full_batches_and_no_sample_twice(files, size, shards):
    ranks = [
        Iterator(reader(files, size, 3, i, shards, random_shuffle=True, seed=i), last_batch="drop")
        for i in range(shards)
    ]
    for _ in range(3):
        epochs = [passes(it, 1)[0] for it in ranks]
        found = flat(flat(epochs))
        assert len(set(found)) == len(found) == shards * (size // shards // 3) * 3
        assert all(len(batch) == 3 for batch in flat(epochs))
        assert {len(epoch) for epoch in epochs} == {len(ranks[0])}


@pytest.mark.parametrize("size", [9, 10, 11])
def test_fill_repeats_the_last_sample(files, size):
    expected = list(range(size)) + [size - 1] * (-size % 3)
    iterator = Iterator(reader(files, size), last_batch="fill")
    assert [flat(found) for found in passes(iterator)] == [expected] * 3


def test_a_rank_whose_shard_is_a_batch_smaller_gets_an_empty_batch(files):
    ranks = [Iterator(reader(files, 10, 3, i, 3)) for i in range(3)]
    assert passes(ranks[0], 1) == [[[0, 1, 2], []]]
    assert passes(ranks[2], 1) == [[[6, 7, 8], [9]]]
    *_, (empty,) = ranks[1]
    assert empty.shape == (0, 1)
    assert empty.dtype == torch.int32


def test_a_loop_that_is_left_early_is_followed_by_the_next_epoch(files):
    iterator = Iterator(reader(files, 10, 3, 0, 2))
    assert [labels(b) for b in itertools.islice(iterator, 1)] == [[0, 1, 2]]
    assert passes(iterator, 2) == [[[5, 6, 7], [8, 9]], [[0, 1, 2], [3, 4]]]


def test_leaving_a_loop_after_its_last_batch_skips_no_epoch(files):
    iterator = Iterator(reader(files, 10, 3, 0, 2))
    assert len(list(itertools.islice(iterator, 2))) == 2
    assert passes(iterator, 1) == [[[5, 6, 7], [8, 9]]]


def test_an_epoch_is_the_same_whether_the_one_before_was_left_or_not(files):
    def make():
        return Iterator(reader(files, 11, seed=3, random_shuffle=True))

    whole = passes(make())
    iterator = make()
    next(iter(iterator))
    assert passes(iterator, 2) == whole[1:]


def test_asking_for_a_loop_without_using_it_skips_nothing(files):
    iterator = Iterator(reader(files, 10, 3, 0, 2))
    iter(iterator)
    assert passes(iterator, 1) == [[[0, 1, 2], [3, 4]]]


def test_a_loop_goes_on_when_it_is_iterated_again(files):
    loop = iter(Iterator(reader(files, 10)))
    next(loop)
    assert [labels(b) for b in loop] == [[3, 4, 5], [6, 7, 8], [9]]
    assert next(loop, None) is None


def test_an_iterator_that_is_dropped_ends_its_threads_without_the_garbage_collector(files):
    gc.disable()
    try:
        loop = iter(Iterator(reader(files, 10)))
        next(loop)
        assert [t for t in threading.enumerate() if t.name.startswith("forebay")]
        del loop
        wait()
        assert not [t for t in threading.enumerate() if t.name.startswith("forebay")]
    finally:
        gc.enable()


def test_two_loops_at_once_are_refused(files):
    iterator = Iterator(reader(files, 10))
    outer = iter(iterator)
    next(outer)
    next(iter(iterator))
    with pytest.raises(ForebayError, match="another loop"):
        next(outer)


def test_an_iterator_made_later_goes_on_with_the_next_epoch(files):
    pipe = reader(files, 10, 3, 0, 2)
    next(iter(Iterator(pipe)))
    assert passes(Iterator(pipe), 1) == [[[5, 6, 7], [8, 9]]]


def test_two_readers_of_the_same_data_stay_together(files):
    @pipeline_def(batch_size=3, num_threads=2, seed=1)
    def pipe():
        same = {"files": files[:10], "labels": list(range(10)), "num_shards": 2}
        return fn.readers.file(**same)[1], fn.readers.file(**same)[1]

    for _ in range(2):
        for a, b in Iterator(pipe()):
            assert a.tolist() == b.tolist()


def test_readers_of_different_data_must_be_chosen_from(files):
    @pipeline_def(batch_size=3, num_threads=2)
    def pipe():
        a = fn.readers.file(files=files[:10], labels=list(range(10)), name="a")[1]
        b = fn.readers.file(files=files[:4], labels=list(range(4)), name="b")[1]
        return a, b

    with pytest.raises(ArgumentError, match=r"a, b.*reader_name"):
        Iterator(pipe())
    found = list(Iterator(pipe(), reader_name="a"))
    assert [a.flatten().tolist() for a, _ in found] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert [b.flatten().tolist() for _, b in found] == [[0, 1, 2], [3, 0, 1], [2, 3, 0], [1]]


# ── other sources ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [6, 7, 8])
@pytest.mark.parametrize("loop", [iter, one_ahead])
def test_a_source_that_ends_ends_the_epoch(size, loop):
    rows = list(range(size))
    short = size % 3
    for last_batch, expected in (
        ("partial", rows),
        ("fill", rows + [size - 1] * (-size % 3)),
        ("drop", rows[: size - short]),
    ):
        iterator = Iterator(source(batches(size), cycle="raise"), last_batch=last_batch)
        for _ in range(3):
            assert flat(labels(b) for b in loop(iterator)) == expected


def test_a_short_batch_in_the_middle_is_neither_dropped_nor_filled():
    middle = [[np.array([i])] * n for i, n in enumerate((2, 3, 1))]
    for last_batch, last in (("drop", []), ("fill", [[2, 2, 2]]), ("partial", [[2]])):
        iterator = Iterator(source(middle), last_batch=last_batch)
        assert passes(iterator, 1) == [[[0, 0], [1, 1, 1], *last]]


def test_a_callable_is_told_the_epoch_also_after_one_was_left():
    def give(info):
        if info.idx_in_epoch == 7:
            raise StopIteration
        return np.array([100 * info.epoch_idx + info.idx_in_epoch])

    iterator = Iterator(_samples(give))
    assert passes(iterator, 1) == [[[0, 1, 2], [3, 4, 5], [6]]]
    assert labels(next(iter(iterator))) == [100, 101, 102]
    assert passes(iterator, 1) == [[[200, 201, 202], [203, 204, 205], [206]]]


def _samples(give):
    @pipeline_def(batch_size=3, num_threads=2)
    def pipe():
        return fn.external_source(source=give, batch=False)

    return pipe()


def test_a_source_without_an_end_is_cut_by_size():
    def endless(i):
        return np.arange(3 * i, 3 * i + 3).reshape(3, 1)

    iterator = Iterator(source(endless), size=7)
    assert len(iterator) == 3
    assert passes(iterator, 2) == [
        [[0, 1, 2], [3, 4, 5], [6]],
        [[9, 10, 11], [12, 13, 14], [15]],
    ]


@pytest.mark.parametrize("last_batch", ["partial", "fill", "drop"])
def test_a_size_gives_a_source_that_ends_its_length(last_batch):
    iterator = Iterator(source(batches(7), cycle="raise"), size=7, last_batch=last_batch)
    last = {"partial": [[6]], "fill": [[6, 6, 6]], "drop": []}[last_batch]
    assert passes(iterator) == [[[0, 1, 2], [3, 4, 5], *last]] * 3
    assert len(iterator) == 2 + len(last)


def test_a_list_that_does_not_cycle_has_one_epoch():
    assert passes(Iterator(source(batches(6))), 2) == [[[0, 1, 2], [3, 4, 5]], []]


# ── what it gives ────────────────────────────────────────────────────────────────────────────────


def test_outputs_come_as_tensors_in_the_pipelines_order():
    @pipeline_def(batch_size=2, num_threads=2)
    def pipe():
        x = fn.external_source(source=[[np.zeros((4, 4, 3), np.uint8)] * 2])
        return fn.crop_mirror_normalize(x, mean=[0.0], std=[1.0]), x.shape(), np.int32(5)

    [(images, shapes, number)] = Iterator(pipe())
    assert images.shape == (2, 3, 4, 4)
    assert images.dtype == torch.float32
    assert shapes.tolist() == [[4, 4, 3]] * 2
    assert number.tolist() == [5, 5]


def test_ragged_outputs_come_as_chosen():
    ragged = [[np.ones(2, np.float32), np.ones(3, np.float32)]]
    with pytest.raises(ForebayError, match="output 0 is ragged"):
        list(Iterator(source(ragged, 2)))
    [(found,)] = Iterator(source(ragged, 2), ragged="list")
    assert [len(sample) for sample in found] == [2, 3]
    [(found,)] = Iterator(source(ragged, 2), ragged="pad")
    assert isinstance(found, Padded)
    assert found.data.tolist() == [[1, 1, 0], [1, 1, 1]]
    [(found,)] = Iterator(source(ragged, 2), ragged="nested")
    assert found.is_nested


def test_batches_that_are_kept_do_not_change(files):
    def endless(i):
        return np.full((3, 200, 200), i % 250, np.uint8)

    kept = [x for (x,) in Iterator(source(endless), size=3 * 40)]
    assert all((x == i).all() for i, x in enumerate(kept))


def test_a_batch_that_fails_is_passed_over_by_who_goes_on():
    def check(x):
        if int(x[0]) == 4:
            raise ZeroDivisionError
        return x

    @pipeline_def(batch_size=3, num_threads=2)
    def pipe():
        x = fn.external_source(source=batches(9), cycle="raise")
        return fn.python_function(x, function=check)

    iterator = Iterator(pipe())
    for _ in range(2):
        loop = iter(iterator)
        assert labels(next(loop)) == [0, 1, 2]
        with pytest.raises(OperatorError):
            next(loop)
        assert [labels(b) for b in loop] == [[6, 7, 8]]


def test_the_length_is_known_or_refused(files):
    assert len(Iterator(reader(files, 10, 3, 1, 3))) == 2
    iterator = Iterator(source(batches(6)))
    with pytest.raises(TypeError, match="give its size"):
        len(iterator)
    assert len(list(iterator)) == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"reader_name": "R", "size": 3}, "size"),
        ({"reader_name": "Q"}, "no reader named 'Q'"),
        ({"size": 0}, "positive"),
        ({"size": 2.5}, "positive"),
        ({"last_batch": "pad"}, "'partial', 'fill' or 'drop'"),
        ({"ragged": "no"}, "ragged is"),
    ],
)
def test_arguments_that_cannot_be_are_refused(files, arguments, text):
    with pytest.raises(ArgumentError, match=text):
        Iterator(reader(files, 10), **arguments)


def test_a_policy_may_be_given_by_its_enum(files):
    assert len(Iterator(reader(files, 10), last_batch=LastBatchPolicy.DROP)) == 3


# ── its state ────────────────────────────────────────────────────────────────────────────────────


def noisy(files, **arguments):
    @pipeline_def(batch_size=3, num_threads=2, seed=7)
    def pipe():
        label = fn.readers.file(
            files=files[:11], labels=list(range(11)), random_shuffle=True, **arguments
        )[1]
        return label, fn.random.uniform()

    return Iterator(pipe())


def sampled(give_epoch):
    @pipeline_def(batch_size=3, num_threads=2, seed=7)
    def pipe():
        return fn.external_source(source=give_epoch, batch=False), fn.random.uniform()

    return Iterator(pipe())


def of_samples(info):
    if info.idx_in_epoch == 11:
        raise StopIteration
    return np.array([100 * info.epoch_idx + info.idx_in_epoch])


def values(batch):
    return [tensor.flatten().tolist() for tensor in batch]


@pytest.mark.parametrize("kind", ["reader", "shard", "source"])
@pytest.mark.parametrize("taken", range(9))
def test_a_state_gives_the_rest_of_the_epoch_and_all_that_follow(files, taken, kind):
    def make():
        if kind == "source":
            return sampled(of_samples)
        return noisy(files, **({"num_shards": 2, "shard_id": 1} if kind == "shard" else {}))

    iterator = make()
    whole, states = [], [iterator.state_dict()]
    for _ in range(4):
        for batch in iterator:
            whole.append(values(batch))
            states.append(iterator.state_dict())
    resumed = make()
    resumed.load_state_dict(states[taken])
    assert resumed.state_dict() == states[taken]
    found: list = []
    while len(found) < len(whole) - taken:
        found += [values(batch) for batch in resumed]
    assert found[: len(whole) - taken] == whole[taken:]


def test_a_state_after_a_loop_goes_on_with_the_next_epoch(files):
    iterator = noisy(files)
    list(iterator)
    state = iterator.state_dict()
    expected = [values(b) for b in iterator]
    resumed = noisy(files)
    resumed.load_state_dict(state)
    assert [values(b) for b in resumed] == expected


def test_a_state_may_be_loaded_in_the_middle(files):
    iterator = noisy(files)
    whole = [values(b) for b in iterator]
    state = {**iterator.state_dict(), "epoch": 0, "step": 1}
    next(iter(iterator))
    iterator.load_state_dict(state)
    assert [values(b) for b in iterator] == whole[1:]


def test_a_batch_that_was_held_back_is_not_lost_to_a_state():
    middle = [[np.array([i])] * n for i, n in enumerate((2, 3, 1))]
    iterator = Iterator(source(middle, cycle="raise"), last_batch="fill")
    seed = {"seed": iterator.pipeline.seed}
    loop = iter(iterator)
    next(loop)
    state = iterator.state_dict()
    resumed = Iterator(source(middle, cycle="raise"), last_batch="fill")
    resumed.load_state_dict({**state, "seed": resumed.pipeline.seed})
    assert seed.items() <= state.items()
    assert passes(resumed, 1) == [[[1, 1, 1], [2, 2, 2]]]


@pytest.mark.parametrize("change", ["seed", "batch_size", "size", "shards", "version"])
def test_a_state_of_something_else_is_refused(files, change):
    iterator = noisy(files)
    state = iterator.state_dict()
    state[change] += 1
    with pytest.raises(ArgumentError, match=change):
        iterator.load_state_dict(state)
