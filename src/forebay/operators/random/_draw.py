"""What the operators that draw numbers share: the shape of what they draw, and its type."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast
from forebay.operators._window import round_half_away
from forebay.types import (
    FLOAT,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DALIDataType,
    Ints,
    OneOf,
)

Drawn = float | np.ndarray[Any, Any]

NumberType = Annotated[
    DALIDataType,
    OneOf((UINT8, INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64, FLOAT, FLOAT64)),
]
"""The element types that numbers are drawn as: all but float16 and bool."""


def draw_shape(like: Sample | None, shape: Ints | None) -> Ints | None:
    """The shape of what is drawn; None for a single number.

    Raises:
        ArgumentError: there are an input and `shape`, or an extent is negative.
    """
    if like is not None:
        if shape is not None:
            raise ArgumentError("give either 'shape' or an input that has the shape, not both")
        return like.shape or None
    if shape and min(shape) < 0:
        raise ArgumentError(f"'shape' cannot have negative extents, but got {list(shape)}")
    return shape or None


def as_elements(drawn: Drawn, dtype: DALIDataType) -> np.ndarray[Any, Any]:
    """Real numbers as elements of that type: rounded half away from zero and clamped."""
    if dtype.is_float:
        return np.asarray(drawn, dtype.numpy)
    if isinstance(drawn, np.ndarray):
        return saturate_cast(drawn, dtype)
    low, high = integer_limits(dtype)
    whole = round_half_away(drawn) if low < drawn < high else low if drawn <= low else high
    return np.array(whole if drawn == drawn else 0, dtype.numpy)  # noqa: PLR0124 - NaN becomes 0


@functools.cache
def integer_limits(dtype: DALIDataType) -> tuple[int, int]:
    """The smallest and the greatest number of an integer type."""
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)
