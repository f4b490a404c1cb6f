"""Data full of zeros, of the shape of other data."""

from __future__ import annotations

import torch

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.types import DALIDataType


@operator
def zeros_like(data: Sample, *, dtype: DALIDataType | None = None) -> Sample:
    """Data full of zeros, of the input's shape and layout.

    Args:
        dtype: the element type; the input's by default.

    Returns:
        The input's shape and layout.
    """
    wanted = data.dtype if dtype is None else dtype
    return data.like(torch.zeros(data.shape, dtype=wanted.torch, device=data.device))
