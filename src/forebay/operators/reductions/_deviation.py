"""What `variance` and `std_dev` have in common."""

from __future__ import annotations

import math

import torch

from forebay.batch import Sample
from forebay.operators.reductions._reduce import Reduction, real, reduced
from forebay.types import FLOAT


def variance_about(
    data: Sample, mean: Sample, over: Reduction, axes: tuple[int, ...], ddof: int
) -> torch.Tensor:
    """The variance about `mean`, which may keep or lack the reduced axes, or be one number."""
    if mean.dtype != FLOAT:
        raise TypeError(f"the mean must be FLOAT, but is {mean.dtype.name}")
    kept = over.kept(data, axes)
    dropped = tuple(extent for axis, extent in enumerate(data.shape) if axis not in axes)
    if mean.tensor.numel() == 1:
        center = mean.tensor.reshape(())
    elif mean.shape in (kept, dropped):
        center = mean.tensor.reshape(kept)
    else:
        raise ValueError(
            f"the mean must be one number or have the shape {list(dropped)} or {list(kept)}, but "
            f"has {list(mean.shape)}"
        )
    squares = (real(data.tensor) - real(center)).square()
    total = reduced(torch.sum, squares, axes, over.keep_dims)
    count = math.prod(data.shape[axis] for axis in axes)
    return total / torch.tensor(count - ddof, dtype=total.dtype, device=total.device)
