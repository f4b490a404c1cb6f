"""Data full of a given value."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._fill import check_layout, check_shape, spread
from forebay.operators._operator import operator
from forebay.types import Ints, Layout, PerSample


@operator(check=check_shape)
def full(fill_value: Sample, *, shape: PerSample[Ints] = (), layout: Layout = "") -> Sample:
    """The fill value, broadcast to a shape.

    Args:
        shape: the extents of the result; none at all for a scalar.
        layout: a letter for each axis.

    Returns:
        Data of the fill value's element type; a scalar unless a shape is given. Its layout is
        `layout`, never the fill value's.

    Raises:
        ValueError: the fill value cannot be broadcast to the shape.
        ArgumentError: the layout has not a letter per axis.
    """
    check_layout(layout, len(shape))
    return fill_value.like(spread(fill_value.tensor, shape), layout)
