"""The root mean square."""

from __future__ import annotations

import torch

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.operators.reductions._reduce import (
    Reduction,
    check_axes,
    converted,
    output_type,
    real,
    reduced,
)
from forebay.types import FLOAT, DALIDataType


@operator(check=check_axes, ops_name="RMS")
def rms(data: Sample, *, over: Reduction, dtype: DALIDataType | None = None) -> Sample:
    """The root of the mean of the squared elements along axes. Of none it is NaN.

    Args:
        dtype: float32 by default, or the data's own type; integers are cut off.

    Returns:
        The layout loses the letters of the reduced axes.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is given twice, or the layout has no such letter.
        TypeError: the element type is bool, float16 or float64.
        ArgumentError: the result cannot have this type.
    """
    axes = over.resolve(data)
    wanted = output_type(dtype, FLOAT, data.dtype)
    result = reduced(torch.mean, real(data.tensor).square(), axes, over.keep_dims).sqrt()
    return data.like(converted(result, wanted), over.layout(data, axes))
