"""Random indices for `permute_batch`."""

from __future__ import annotations

import numpy as np

from forebay.batch import Batch, Sample
from forebay.operators._operator import operator
from forebay.operators._rng import Rng
from forebay.operators._schema import BatchSize


@operator(devices=("cpu",))
def batch_permutation(
    *,
    allow_repetitions: bool = False,
    no_fixed_points: bool = False,
    batch_size: BatchSize,
    rng: Rng,
) -> Batch:
    """The numbers from 0 to the batch's size, less one, in random order.

    Args:
        allow_repetitions: draw each number on its own, so that some may occur several times.
        no_fixed_points: no sample gets its own position (except in a batch of one). Without
            repetitions the result then is a single cycle through all samples, each as likely.

    Returns:
        An int32 scalar per sample.
    """
    generator = rng.generator()
    here = np.arange(batch_size)
    if no_fixed_points and batch_size > 1:
        if allow_repetitions:
            indices = (here + generator.integers(1, batch_size, batch_size)) % batch_size
        else:
            cycle = generator.permutation(batch_size)
            indices = np.empty_like(here)
            indices[cycle] = np.roll(cycle, -1)
    elif allow_repetitions:
        indices = generator.integers(0, batch_size, batch_size)
    else:
        indices = generator.permutation(batch_size)
    return Batch([Sample(np.array(index, np.int32)) for index in indices])
