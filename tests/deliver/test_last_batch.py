"""What belongs to an epoch, checked by adding it up."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from forebay.batch import Batch, Sample
from forebay.deliver.last_batch import Epochs, LastBatchPolicy, filled, first_rows

FILL, DROP, PARTIAL = LastBatchPolicy
GRID = [
    (size, shards, batch, stays)
    for shards in (1, 2, 3)
    for size in range(shards, 14)
    for batch in (1, 2, 3, 4, 20)
    for stays in (False, True)
]


def all_ranks(policy, size, shards, batch, stays, **options):
    return Epochs(policy, batch, size, shards, tuple(range(shards)), stays, **options)


def rows_of(epochs, epoch, rank):
    return [epochs.rows(epoch, step, rank) for step in range(epochs.length(epoch))]


@pytest.mark.parametrize("epoch", range(4))
def test_partial_gives_every_rank_its_shard_and_all_ranks_the_data(epoch):
    for size, shards, batch, stays in GRID:
        epochs = all_ranks(PARTIAL, size, shards, batch, stays)
        given = [sum(rows_of(epochs, epoch, rank)) for rank in range(shards)]
        assert sum(given) == size
        assert max(given) - min(given) <= 1
        for rank in range(shards):
            rows = rows_of(epochs, epoch, rank)
            assert rows[:-1] == [batch] * (len(rows) - 1) or given[rank] % batch == 0


def test_partial_follows_the_shards_as_they_move_on():
    epochs = all_ranks(PARTIAL, 11, 3, 4, stays=False)  # shards of 3, 4 and 4
    assert [rows_of(epochs, 0, rank) for rank in range(3)] == [[3], [4], [4]]
    assert [rows_of(epochs, 1, rank) for rank in range(3)] == [[4], [4], [3]]
    assert [rows_of(epochs, 3, rank) for rank in range(3)] == [[3], [4], [4]]


def test_drop_leaves_less_than_a_batch_of_the_smallest_shard():
    for size, shards, batch, stays in GRID:
        epochs = all_ranks(DROP, size, shards, batch, stays)
        for epoch in range(3):
            given = epochs.length(epoch) * batch
            assert 0 <= size // shards - given < batch
            assert epochs.length(epoch) <= epochs.begin(epoch + 1) - epochs.begin(epoch)


def test_fill_that_runs_on_gives_by_an_epochs_end_what_the_epochs_so_far_hold():
    for size, shards, batch, stays in GRID:
        epochs = all_ranks(FILL, size, shards, batch, stays, runs_on=True)
        held = [0] * shards
        for epoch in range(6):
            assert epochs.length(epoch) >= 1
            for rank in range(shards):
                shard = rank if stays else (rank + epoch) % shards
                held[rank] += size * (shard + 1) // shards - size * shard // shards
            given = epochs.begin(epoch + 1) * batch
            assert given >= max(held)
            assert given - max(held) < batch or epochs.length(epoch) == 1


@pytest.mark.parametrize(
    ("policy", "runs_on", "lengths"),
    [
        (FILL, True, [4, 3, 4, 3]),  # 7 samples in batches of 2: 8, 6, 8, 6
        (FILL, False, [4, 4, 4, 4]),
        (PARTIAL, False, [4, 4, 4, 4]),
        (DROP, False, [3, 3, 3, 3]),
    ],
)
def test_seven_samples_in_batches_of_two(policy, runs_on, lengths):
    epochs = Epochs(policy, 2, 7, shard_ids=(0,), runs_on=runs_on)
    assert [epochs.length(epoch) for epoch in range(4)] == lengths


def test_pipelines_without_readers_share_the_epoch():
    epochs = Epochs(PARTIAL, 3, 11, pipelines=2)
    assert epochs.length(0) == 2
    assert [[epochs.rows(0, step, p) for p in (0, 1)] for step in (0, 1)] == [[3, 3], [3, 2]]
    epochs = Epochs(PARTIAL, 3, 8, pipelines=2)
    assert [epochs.rows(0, 1, p) for p in (0, 1)] == [2, 0]


def batch_of(*arrays):
    return Batch([Sample(array) for array in arrays])


def test_the_first_rows_lie_in_the_same_memory():
    dense = torch.arange(12).reshape(4, 3)
    batch = Batch([Sample(row) for row in dense], dense)
    part = first_rows(batch, 2)
    assert len(part) == 2
    assert part.as_tensor().data_ptr() == dense.data_ptr()
    assert first_rows(batch, 4) is batch


def test_no_rows_still_have_a_shape_and_an_element_type():
    part = first_rows(batch_of(np.zeros((2, 5), np.int16), np.zeros((2, 5), np.int16)), 0)
    assert part.as_tensor().shape == (0, 2, 5)
    assert part.as_tensor().dtype == torch.int16


def test_rows_that_do_not_count_do_not_make_a_batch_ragged():
    part = first_rows(batch_of(np.zeros(2), np.zeros(2), np.zeros(3)), 2)
    assert part.as_tensor().shape == (2, 2)


def test_a_batch_is_filled_with_its_last_sample():
    full = filled(batch_of(np.array([1]), np.array([2])), 4)
    assert full.as_tensor().flatten().tolist() == [1, 2, 2, 2]
