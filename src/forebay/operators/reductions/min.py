"""The least element."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.operators.reductions._extreme import extreme
from forebay.operators.reductions._reduce import Reduction, check_axes


@operator(check=check_axes)
def min(data: Sample, *, over: Reduction) -> Sample:
    """The least element along axes. NaN is passed over.

    Returns:
        The same element type. Of no elements, or nothing but NaN, it is the greatest value of the
        type (infinity in floats). The layout loses the letters of the reduced axes.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is given twice, or the layout has no such letter.
        TypeError: the element type is bool, float16 or float64.
    """
    return extreme(data, over, least=True)
