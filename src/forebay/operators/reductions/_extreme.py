"""What `min` and `max` have in common."""

from __future__ import annotations

import math

import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._tensor_arithmetic import convert
from forebay.operators.reductions._reduce import Reduction

_LEAST = torch.iinfo(torch.int64).min


def extreme(data: Sample, over: Reduction, *, least: bool) -> Sample:
    """The least or the greatest element along axes."""
    axes = over.resolve(data)
    layout = over.layout(data, axes)
    if not axes:
        return data.like(data.tensor, layout)
    dtype = data.dtype
    if dtype.is_float:
        nothing = math.inf if least else -math.inf
    else:
        limits = np.iinfo(dtype.numpy)
        nothing = int(limits.max if least else limits.min)
    if any(data.shape[axis] == 0 for axis in axes):
        shape = over.shape(data, axes)
        return data.like(torch.full(shape, nothing, dtype=dtype.torch, device=data.device), layout)
    values = convert(data.tensor, dtype.numpy)
    if dtype.is_float:
        values = values.nan_to_num(nan=nothing, posinf=math.inf, neginf=-math.inf)
    flip = _LEAST if dtype.numpy == np.uint64 else 0  # orders uint64 as int64 is ordered
    values = values ^ flip if flip else values
    result = (torch.amin if least else torch.amax)(values, axes, over.keep_dims)
    return data.like((result ^ flip if flip else result).to(dtype.torch), layout)
