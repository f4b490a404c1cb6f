"""The standard deviation."""

from __future__ import annotations

import torch

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.operators.reductions._deviation import variance_about
from forebay.operators.reductions._reduce import Reduction, check_axes


@operator(check=check_axes)
def std_dev(data: Sample, mean: Sample, *, over: Reduction, ddof: int = 0) -> Sample:
    """The standard deviation along axes, about a given mean.

    Args:
        ddof: the squared deviations are summed and divided by the number of elements less `ddof`.

    Returns:
        float32. The layout loses the letters of the reduced axes.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is given twice, the layout has no such letter, or the mean is neither
            a single number nor has the shape of a mean along these axes.
        TypeError: the element type is bool, float16 or float64, or the mean's not float32.
    """
    axes = over.resolve(data)
    result = variance_about(data, mean, over, axes, ddof).sqrt()
    return data.like(result.to(torch.float32), over.layout(data, axes))
