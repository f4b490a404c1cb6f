"""Uniformly distributed numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.operators._rng import Rng
from forebay.operators.random._draw import NumberType, as_elements, draw_shape, integer_limits
from forebay.types import FLOAT, DALIDataType, Floats, Ints, PerSample


def _check(given: Mapping[str, Any]) -> None:
    bounds, values = given.get("range"), given.get("values")
    if isinstance(bounds, tuple) and not isinstance(values, tuple):
        _bounds(bounds, given.get("dtype", FLOAT))
    if values == ():
        raise ArgumentError("'values' must hold at least one number")


@functools.lru_cache(maxsize=256)
def _bounds(bounds: Floats, dtype: DALIDataType) -> tuple[float, float, float]:
    """The lower end, the width, and the largest float of the type below the upper end."""
    if len(bounds) != 2 or not bounds[0] < bounds[1] or not all(map(math.isfinite, bounds)):
        raise ArgumentError(
            f"'range' takes two finite numbers, the smaller one first, but got {list(bounds)}"
        )
    low, high = bounds
    if dtype.is_float:
        number = dtype.numpy.type
        return low, high - low, float(np.nextafter(number(high), number(low)))
    smallest, greatest = integer_limits(dtype)
    if low < smallest or high > greatest + 1:
        raise ArgumentError(
            f"'range' {list(bounds)} reaches beyond {dtype.name}, which holds {smallest} to "
            f"{greatest}"
        )
    return low, high - low, high


@operator(aliases=("uniform",), check=_check)
def uniform(
    like: Sample | None = None,
    *,
    dtype: NumberType = FLOAT,
    range: PerSample[Floats] = (-1.0, 1.0),
    shape: PerSample[Ints] | None = None,
    values: PerSample[Floats] | None = None,
    rng: Rng,
) -> Sample:
    """Draw numbers that are all equally likely.

    Args:
        like: only its shape matters: as many numbers are drawn.
        dtype: of the result, float32 by default. For integers a real number is drawn and rounded,
            so the ends of [0, 4] come half as often as 1, 2 and 3.
        range: (low, high). The upper end itself is never drawn as a float.
        shape: of the result. Without it, and without an input, one number is drawn.
        values: draw from this list instead of a range, each entry with the same probability.

    Returns:
        Shape `shape`, the input's, or none at all (a 0-D tensor); no layout.

    Raises:
        ArgumentError: an empty range or list, or a range that the type cannot hold.
    """
    size = draw_shape(like, shape)
    drawn: Any
    if values is not None:
        if not values:
            raise ArgumentError("'values' must hold at least one number")
        drawn = rng.generator().random(size) * len(values)
        if size is None:
            return Sample(as_elements(values[int(drawn)], dtype))
        return Sample(as_elements(np.array(values)[drawn.astype(np.intp)], dtype))
    low, width, last = _bounds(range, dtype)
    drawn = rng.generator().random(size) * width + low
    # Rounding to the element type must not reach the upper end.
    drawn = min(drawn, last) if size is None else np.minimum(drawn, last)
    return Sample(as_elements(drawn, dtype))
