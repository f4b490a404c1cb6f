"""A copy."""

from __future__ import annotations

import torch

from forebay.batch import Sample
from forebay.operators._operator import operator


@operator
def copy(data: Sample) -> Sample:
    """The same data in memory of its own."""
    return data.like(data.tensor.clone(memory_format=torch.contiguous_format))
