"""Pipelines whose only output is the label of each sample: 0, 1, 2 … in shape (1,)."""

from __future__ import annotations

import itertools

import numpy as np

import forebay


def reader(files, size, batch=3, shard=0, shards=1, *, library=forebay, seed=None, **arguments):
    """A pipeline over the first `size` files, in forebay or in DALI; the reader's name is "R"."""

    @library.pipeline_def(batch_size=batch, num_threads=2, device_id=None, seed=seed)
    def pipe():
        return library.fn.readers.file(
            files=files[:size],
            labels=list(range(size)),
            name="R",
            shard_id=shard,
            num_shards=shards,
            **arguments,
        )[1]

    return pipe()


def source(given, batch=3, *, library=forebay, **arguments):
    """A pipeline over an external source."""

    @library.pipeline_def(batch_size=batch, num_threads=2, device_id=None)
    def pipe():
        return library.fn.external_source(source=given, **arguments)

    return pipe()


def batches(size, batch=3):
    """A list of batches of labels."""
    return [
        [np.array([label], np.int32) for label in range(begin, min(begin + batch, size))]
        for begin in range(0, size, batch)
    ]


def passes(iterator, number=3):
    """What `for` loops over an iterator give, flat lists of labels in a list for each batch."""
    return [[labels(batch) for batch in iterator] for _ in range(number)]


def epoch(iterator, most=20):
    """What `next` gives until StopIteration."""
    found = []
    for _ in range(most):
        try:
            found.append(labels(next(iterator)))
        except StopIteration:
            return found
    return [*found, "…"]


def labels(batch):
    """The labels of a batch of any iterator; a list for each pipeline if there are several."""
    tensors = [next(iter(d.values())) for d in batch] if isinstance(batch, list) else batch
    found = [tensor[:, 0].tolist() for tensor in tensors]
    return found[0] if len(found) == 1 else found


def flat(found):
    return list(itertools.chain.from_iterable(found))
