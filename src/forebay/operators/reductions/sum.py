"""The sum."""

from __future__ import annotations

import torch

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.operators.reductions._reduce import (
    Reduction,
    check_axes,
    output_type,
    real,
    reduced,
    widest,
)
from forebay.types import DALIDataType


@operator(check=check_axes)
def sum(data: Sample, *, over: Reduction, dtype: DALIDataType | None = None) -> Sample:
    """The sum of the elements along axes.

    Args:
        dtype: int64 or uint64 for integers by default; the data's own type or float32 are the
            other choices. Integers wrap around.

    Returns:
        The layout loses the letters of the reduced axes.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is given twice, or the layout has no such letter.
        TypeError: the element type is bool, float16 or float64.
        ArgumentError: the result cannot have this type.
    """
    axes = over.resolve(data)
    wide = widest(data.dtype)
    wanted = output_type(dtype, wide, data.dtype)
    values = real(data.tensor) if data.dtype.is_float else data.tensor.to(torch.int64)
    total = reduced(torch.sum, values, axes, over.keep_dims)
    if not data.dtype.is_float:
        total = total.to(wide.torch)  # before float32: int64 holds the bits of uint64 too
    return data.like(total.to(wanted.torch), over.layout(data, axes))
