"""A pipeline that goes on with a checkpoint gives what the uninterrupted one gives."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from forebay import fn, pipeline_def, types
from forebay.errors import ArgumentError
from forebay.torch import DALIGenericIterator, Iterator, LastBatchPolicy

SIZE = 11
OPTIONS = {
    "batch_size": 3,
    "num_threads": 2,
    "prefetch_queue_depth": 3,
    "enable_checkpointing": True,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for index in range(SIZE):
        (folder / f"{index:02}.dat").write_bytes(bytes([index]))
    return [str(folder / f"{index:02}.dat") for index in range(SIZE)]


def noisy(x):
    return x, fn.random.uniform(range=[0, 1])


@pipeline_def(**OPTIONS)
def reading(files, shuffle=True, **more):
    data, _ = fn.readers.file(files=files, random_shuffle=shuffle, name="reader", **more)
    return noisy(data)


@pipeline_def(**OPTIONS)
def asking_samples(files):
    def sample(info):
        if info.idx_in_epoch >= SIZE:
            raise StopIteration
        return np.int32(info.idx_in_epoch + 100 * info.epoch_idx)

    return noisy(fn.external_source(source=sample, batch=False))


@pipeline_def(**OPTIONS)
def asking_batches(files):
    return noisy(fn.external_source(source=lambda i: [np.int32(3 * i + k) for k in range(3)]))


@pipeline_def(**OPTIONS)
def iterating(files):
    items = [[np.int32(3 * i + k) for k in range(3)] for i in range(4)]
    return noisy(fn.external_source(source=items, cycle="raise"))


@pipeline_def(**OPTIONS)
def generating(files):
    def items():
        for i in range(4):
            yield [np.int32(3 * i + k) for k in range(3)]

    return noisy(fn.external_source(source=items, cycle=True))


PIPELINES = [reading, asking_samples, asking_batches, iterating, generating]


def batches(pipe, count):
    """The next batches; the end of an epoch is "end", and the next one begins."""
    found = []
    for _ in range(count):
        try:
            found.append(
                [[np.array(out.at(i)).tolist() for i in range(len(out))] for out in pipe.run()]
            )
        except StopIteration:
            found.append("end")
            pipe.reset()
    return found


@pytest.mark.parametrize("make", PIPELINES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("before", [0, 1, 2, 4, 5, 7, 10])
def test_it_goes_on_with_the_next_batch(make, before, files):
    expected = batches(make(files, seed=5), before + 8)
    left = make(files, seed=5)
    batches(left, before)
    resumed = make(files, checkpoint=left.checkpoint())
    assert resumed.is_restored_from_checkpoint
    assert batches(resumed, 8) == expected[before:]


def test_a_pipeline_without_a_seed_goes_on_with_the_same_numbers(files):
    left = asking_batches(files)
    batches(left, 2)
    saved = left.checkpoint()
    assert batches(asking_batches(files, checkpoint=saved), 3) == batches(left, 3)


def test_a_checkpoint_of_a_resumed_pipeline_is_that_of_the_first(files):
    left = reading(files, seed=1)
    batches(left, 5)
    saved = left.checkpoint()
    resumed = reading(files, checkpoint=saved)
    resumed.build()
    assert resumed.checkpoint() == saved


def test_it_can_be_written_to_a_file_and_is_json(files, tmp_path):
    left = reading(files, seed=1)
    batches(left, 2)
    saved = left.checkpoint(str(tmp_path / "place"))
    assert (tmp_path / "place").read_bytes() == saved
    assert json.loads(saved)["taken"] == 2


def refused(make, text):
    with pytest.raises(ArgumentError, match=text):
        make().build()


def test_what_does_not_fit_is_refused_with_what_differs(files):
    saved = reading(files, seed=1).checkpoint()
    refused(lambda: reading(files, seed=2, checkpoint=saved), "seed=1.*seed=2")
    refused(lambda: reading(files[:-1], checkpoint=saved), "of 11 samples .* of 10 samples")
    refused(lambda: reading(files, num_shards=2, checkpoint=saved), "in 1 shards .* in 2 shards")
    refused(
        lambda: asking_batches(files, checkpoint=saved),
        r"operator 0 .* fn\.readers\.file 'reader' .* there, and fn\.external_source.* here",
    )

    @pipeline_def(**OPTIONS)
    def longer():
        data, _ = fn.readers.file(files=files, random_shuffle=True, name="reader")
        return *noisy(data), fn.cast(data, dtype=types.FLOAT)

    refused(lambda: longer(checkpoint=saved), r"operator 2 .* none there, and fn\.cast here")


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"\x00\x01", '{"forebay": "checkpoint", "version": 9}']
)
def test_what_is_no_checkpoint_is_refused(files, text):
    with pytest.raises(ArgumentError, match="checkpoint takes what"):
        reading(files, checkpoint=text)


# ── iterators ────────────────────────────────────────────────────────────────────────────────────


def handed(batch):
    return [v.flatten().tolist() for v in (batch[0].values() if isinstance(batch, list) else batch)]


def epochs(iterator, count):
    return [[handed(batch) for batch in iterator] for _ in range(count)]


def dali_iterator(pipe, policy):
    return DALIGenericIterator(
        pipe, ["data", "noise"], reader_name="reader", auto_reset=True, last_batch_policy=policy
    )


@pytest.mark.parametrize("policy", LastBatchPolicy)
@pytest.mark.parametrize("before", [0, 1, 3, 4])
def test_dalis_iterator_goes_on_in_the_middle_of_an_epoch(files, policy, before):
    first, second, third = epochs(dali_iterator(reading(files, seed=3), policy), 3)
    left = dali_iterator(reading(files, seed=3), policy)
    list(itertools.islice(left, before))
    (saved,) = left.checkpoints()
    got = epochs(dali_iterator(reading(files, checkpoint=saved), policy), 3)
    expected = [first[before:], second, third] if before < len(first) else [second, third]
    assert got[: len(expected)] == expected


def test_several_pipelines_of_an_iterator_go_on_together(files):
    def pair(saved=(None, None)):
        return [
            reading(files, seed=3, shard_id=i, num_shards=2, checkpoint=place)
            for i, place in enumerate(saved)
        ]

    policy = LastBatchPolicy.PARTIAL
    (whole,) = epochs(dali_iterator(pair(), policy), 1)
    left = dali_iterator(pair(), policy)
    next(left)
    assert epochs(dali_iterator(pair(left.checkpoints()), policy), 1) == [whole[1:]]
    mixed = [left.checkpoints()[0], pair()[1].checkpoint()]
    with pytest.raises(ArgumentError, match="gave together"):
        dali_iterator(pair(mixed), policy)


def test_our_iterator_takes_a_checkpoint_of_dalis(files):
    whole = epochs(Iterator(reading(files, seed=3)), 2)
    left = dali_iterator(reading(files, seed=3), LastBatchPolicy.PARTIAL)
    next(left)
    (saved,) = left.checkpoints()
    assert epochs(Iterator(reading(files, checkpoint=saved)), 2) == [whole[0][1:], whole[1]]
