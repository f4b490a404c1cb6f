"""Data full of zeros."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._fill import check_shape, filled
from forebay.operators._operator import operator
from forebay.types import INT32, DALIDataType, Ints, Layout, PerSample


@operator(check=check_shape, devices=("cpu",))
def zeros(
    *, shape: PerSample[Ints] = (), dtype: DALIDataType = INT32, layout: Layout = ""
) -> Sample:
    """New data full of zeros: a scalar unless a shape is given.

    Args:
        shape: the extents; none at all for a scalar.
        dtype: the element type.
        layout: a letter for each axis.

    Returns:
        The shape, element type and layout that are given.

    Raises:
        ArgumentError: an extent is negative, or the layout has not a letter per axis.
    """
    return filled(0, shape, dtype, layout)
