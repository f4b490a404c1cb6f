"""Normally distributed numbers."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.operators._rng import Rng
from forebay.operators.random._draw import NumberType, as_elements, draw_shape
from forebay.types import FLOAT, Ints, PerSample


@operator(aliases=("normal_distribution",))
def normal(
    like: Sample | None = None,
    *,
    dtype: NumberType = FLOAT,
    mean: PerSample[float] = 0.0,
    shape: PerSample[Ints] | None = None,
    stddev: PerSample[float] = 1.0,
    rng: Rng,
) -> Sample:
    """Draw numbers from a normal (Gaussian) distribution.

    Args:
        like: only its shape matters: as many numbers are drawn.
        dtype: of the result, float32 by default. Integers are rounded and clamped to their type.
        mean: the distribution's mean.
        stddev: its standard deviation.
        shape: of the result. Without it, and without an input, one number is drawn.

    Returns:
        Shape `shape`, the input's, or none at all (a 0-D tensor); no layout.
    """
    size = draw_shape(like, shape)
    drawn = rng.generator().standard_normal(size) * stddev + mean
    return Sample(as_elements(drawn, dtype))
