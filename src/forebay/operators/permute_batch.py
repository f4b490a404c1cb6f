"""Samples in another order."""

from __future__ import annotations

import numpy as np

from forebay.batch import Batch
from forebay.operators._operator import operator
from forebay.types import Ints, PerSample


@operator
def permute_batch(data: Batch, *, indices: PerSample[Ints]) -> Batch:
    """The batch with its samples in another order, or some of them repeated.

    Args:
        indices: for each sample of the result its position in the input: a list as long as the
            batch, or a node with a number per sample.

    Returns:
        The same element type and layout, and each sample with its shape.

    Raises:
        ValueError: there are more or fewer indices than samples.
        IndexError: an index is not the position of a sample.
    """
    size = len(data)
    flat = [int(index) for index in np.ravel(indices)]
    if len(flat) != size:
        raise ValueError(f"'indices' must have one for each of the {size} samples: {flat}")
    for index in flat:
        if not 0 <= index < size:
            raise IndexError(f"index {index} is out of range for a batch of {size} samples")
    return Batch([data.samples[index] for index in flat])
