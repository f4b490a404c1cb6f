"""Order, shards, epochs and padding, by the file reader and by `Order` alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from forebay.errors import ArgumentError
from forebay.operators.readers._shard import Order, Sharding, check_sharding
from reading import check, read_ours

OP = "readers.file"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files whose first byte is their number."""
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{i:03}.bin" for i in range(30)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]))
    return [str(path) for path in paths]


def laps(order, sizes, batch_size):
    """The endless sequence of an order, cut into laps of these sizes."""
    count = -(-sum(sizes) // batch_size)
    flat = np.concatenate([order.batch(number) for number in range(count)]).tolist()
    ends = list(itertools.accumulate(sizes, initial=0))
    return [flat[a:b] for a, b in itertools.pairwise(ends)]


@pytest.mark.dali
@pytest.mark.parametrize("shard_id", [0, 1, 2])
@pytest.mark.parametrize("batch_size", [1, 3, 4, 13])
@pytest.mark.parametrize("pad_last_batch", [False, True])
@pytest.mark.parametrize("stick_to_shard", [False, True])
def test_eleven_files_in_three_shards_come_as_in_dali(
    files, shard_id, batch_size, pad_last_batch, stick_to_shard
):
    check(
        OP,
        14,
        batch_size,
        files=files[:11],
        num_shards=3,
        shard_id=shard_id,
        pad_last_batch=pad_last_batch,
        stick_to_shard=stick_to_shard,
    )


@pytest.mark.dali
@pytest.mark.parametrize(("count", "shards"), [(1, 1), (5, 1), (5, 4), (5, 5), (12, 3), (30, 7)])
@pytest.mark.parametrize("pad_last_batch", [False, True])
def test_other_sizes_come_as_in_dali(files, count, shards, pad_last_batch):
    for shard_id in {0, shards - 1}:
        arguments = {"num_shards": shards, "shard_id": shard_id, "pad_last_batch": pad_last_batch}
        check(OP, 9, 4, files=files[:count], **arguments)


@pytest.mark.dali
@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("pad_last_batch", [False, True])
def test_a_reset_neither_loses_nor_repeats_what_was_read_ahead(files, depth, pad_last_batch):
    arguments = {"num_shards": 3, "pad_last_batch": pad_last_batch, "depth": depth}
    check(OP, 9, 2, files=files[:11], resets=(2, 3, 6), **arguments)


def test_closing_a_pipeline_loses_nothing_that_was_read_ahead(files):
    from forebay import Pipeline, fn

    pipe = Pipeline(batch_size=2, num_threads=2, prefetch_queue_depth=3)
    with pipe:
        pipe.set_outputs(fn.readers.file(files=files)[1])
    assert pipe.run()[0].as_array()[:, 0].tolist() == [0, 1]
    pipe.close()
    assert pipe.run()[0].as_array()[:, 0].tolist() == [2, 3]


@pytest.mark.parametrize("fill", [1, 2, 5, 1000])
@pytest.mark.parametrize("stick", [False, True])
def test_a_shuffled_lap_gives_every_sample_of_its_shard_once(fill, stick):
    sharding = Sharding(1, 3, random_shuffle=True, initial_fill=fill, stick_to_shard=stick)
    order = Order(11, sharding, 3, key=5)
    shards = [range(3, 7), range(7, 11), range(3)]  # floor(11 · k / 3)
    expected = [shards[0]] * 6 if stick else shards * 2
    found = laps(order, [len(shard) for shard in expected], 3)
    assert [sorted(lap) for lap in found] == [list(shard) for shard in expected]


def test_a_window_of_one_changes_nothing_and_a_larger_one_moves_samples_less_than_its_size():
    plain = Order(3000, Sharding(random_shuffle=True, initial_fill=1), 3000)
    assert plain.batch(0).tolist() == list(range(3000))
    for fill in (2, 7, 1500):
        shuffled = Order(3000, Sharding(random_shuffle=True, initial_fill=fill), 3000).batch(0)
        ahead = shuffled - np.arange(3000)
        assert 0.9 * (fill - 1) <= ahead.max() <= fill - 1
        assert len(set(shuffled.tolist())) == 3000


def test_a_window_draws_each_of_its_samples_equally_often():
    # A sample that has entered the window stays with probability (1 - 1/w) at every step.
    fill, count = 8, 20_000
    order = Order(count, Sharding(random_shuffle=True, initial_fill=fill), count, key=3)
    indices = order.batch(0)
    place = np.empty(count, np.int64)
    place[indices] = np.arange(count)
    stay = place - (np.arange(count) - fill + 1)
    stay = stay[fill : count - 200]
    assert abs(stay.mean() - (fill - 1)) < 0.2
    assert abs((stay == 0).mean() - 1 / fill) < 0.01


def test_a_whole_window_is_a_uniform_permutation():
    order = Order(3, Sharding(random_shuffle=True, initial_fill=3), 3, key=1)
    found = [tuple(order.batch(number).tolist()) for number in range(6000)]
    counts = [found.count(p) for p in itertools.permutations(range(3))]
    assert sum(counts) == 6000
    assert all(880 < count < 1120 for count in counts)  # 1000 ± 4 standard deviations


@pytest.mark.parametrize(
    "sharding",
    [
        Sharding(1, 3, random_shuffle=True, initial_fill=4),
        Sharding(1, 3, random_shuffle=True, initial_fill=4, pad_last_batch=True),
        Sharding(2, 3, shuffle_after_epoch=True),
        Sharding(2, 3, shuffle_after_epoch=True, pad_last_batch=True),
        Sharding(0, 1, random_shuffle=True, initial_fill=2500),
    ],
)
def test_an_order_can_be_taken_up_at_any_batch(sharding):
    def make():
        return Order(5003, sharding, 100, key=9, scatter=True)

    running = make()
    for number in range(120):
        batch = running.batch(number)
        if number % 17 == 0:
            np.testing.assert_array_equal(make().batch(number), batch)
    np.testing.assert_array_equal(running.batch(3), make().batch(3))


def test_keys_and_laps_change_a_shuffled_order_and_nothing_else_does():
    def first(key, number=0):
        return Order(100, Sharding(random_shuffle=True), 100, key).batch(number).tolist()

    assert first(1) == first(1)
    assert first(1) != first(2)
    assert first(1) != first(1, number=1)


@pytest.mark.parametrize("size", [11, 100])
def test_after_epoch_shuffling_gives_disjoint_shards_of_one_new_order_each_epoch(size):
    epochs = []
    for seed in (None, 4):
        shards = [
            Order(
                size,
                Sharding(k, 3, shuffle_after_epoch=True, shuffle_after_epoch_seed=seed),
                1,
                key=k,
            )
            for k in range(3)
        ]
        sizes = [size * (k + 1) // 3 - size * k // 3 for k in range(3)]
        cut = [laps(order, [n] * 4, 1) for order, n in zip(shards, sizes, strict=True)]
        for lap in range(4):
            whole = [i for k in range(3) for i in cut[k][lap]]
            assert sorted(whole) == list(range(size))
            epochs.append(whole)
    assert len({tuple(epoch) for epoch in epochs}) == 8


def test_shuffled_shards_of_pipelines_with_different_seeds_are_disjoint_and_whole(files):
    found = [
        read_ours(
            OP, 2, 5, files=files, num_shards=3, shard_id=k, random_shuffle=True, seed=10 + k
        ).values(1)
        for k in range(3)
    ]
    assert sorted(itertools.chain(*itertools.chain(*found))) == list(range(30))
    assert sorted(itertools.chain(*found[0])) != list(range(10))  # shuffled before it was cut


def test_the_seed_of_the_reader_or_the_pipeline_decides_the_order(files):
    def order(**arguments):
        return read_ours(OP, 3, 10, files=files, random_shuffle=True, **arguments).values(1)

    assert order(seed=1) == order(seed=1)
    assert order(seed=1) != order(seed=2)
    assert order(depth=1) == order(depth=4)


@pytest.mark.dali
@pytest.mark.parametrize("pad_last_batch", [False, True])
def test_what_is_told_of_shuffled_readers_is_as_in_dali(files, pad_last_batch):
    from nvidia import dali

    import forebay
    from reading import read

    for shuffle in ({"random_shuffle": True}, {"shuffle_after_epoch": True}):
        arguments = {"files": files[:11], "num_shards": 3, "pad_last_batch": pad_last_batch}
        ours, theirs = (read(lib, OP, 6, 3, **arguments, **shuffle) for lib in (forebay, dali))
        assert ours.meta == theirs.meta
        assert ours.epoch_size == theirs.epoch_size


def test_padding_repeats_the_last_sample_that_a_shuffled_lap_gave():
    sharding = Sharding(0, 3, random_shuffle=True, pad_last_batch=True)
    order = Order(11, sharding, 3, key=2)  # shard 0 has 3 samples, the largest 4
    for lap in range(5):
        first, second = order.batch(2 * lap), order.batch(2 * lap + 1)
        size = [3, 4, 4][lap % 3]
        given = [*first, *second][:size]
        assert len(set(given)) == size
        assert set([*first, *second][size:]) == {given[-1]}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"shard_id": 3, "num_shards": 3}, "num_shards must be greater than shard_id.*3 and 3"),
        ({"shard_id": 1}, "num_shards must be greater"),
        ({"shuffle_after_epoch": True, "random_shuffle": True}, "exclude each other"),
        ({"shuffle_after_epoch": True, "stick_to_shard": True}, "exclude each other"),
        ({"random_shuffle": True, "initial_fill": 0}, "initial_fill must be at least 1, but got 0"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments, text):
    with pytest.raises(ArgumentError, match=text):
        check_sharding(arguments)


@pytest.mark.parametrize(
    "arguments", [{"shard_id": -1}, {"num_shards": 0}, {"prefetch_queue_depth": 0}]
)
def test_numbers_out_of_range_are_refused_where_they_are_written(files, arguments):
    with pytest.raises(ArgumentError, match=f"{next(iter(arguments))}.*must lie in"):
        read_ours(OP, 1, 1, files=files, **arguments)


def test_more_shards_than_samples_are_refused(files):
    with pytest.raises(RuntimeError, match=r"number of samples, 11.*num_shards, 12"):
        read_ours(OP, 1, 1, files=files[:11], num_shards=12)
