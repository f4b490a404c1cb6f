"""Data full of a given value, of the shape of other data."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._convert import saturate_cast
from forebay.operators._fill import spread
from forebay.operators._operator import operator


@operator
def full_like(data: Sample, fill_value: Sample) -> Sample:
    """The fill value, broadcast to the data's shape and converted to its element type.

    Returns:
        Data of the first input's shape, element type and layout. The fill value is rounded half
        away from zero and clamped to the type's range.

    Raises:
        ValueError: the fill value cannot be broadcast to the data's shape.
    """
    return data.like(spread(saturate_cast(fill_value.tensor, data.dtype), data.shape))
