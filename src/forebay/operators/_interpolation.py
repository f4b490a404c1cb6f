"""How values between pixels are found: the arguments, and the filters' weights.

A filter is a function of the distance to a sample point. It is kept as a table that is read with
linear interpolation, because DALI does so and its results show it (a cubic weight is off by up to
1e-4). The functions themselves are textbook ones: the triangle; the cubic convolution with a = −0.5
(Keys, "Cubic convolution interpolation for digital image processing", 1981); the sinc windowed by
its own central lobe (Lanczos, three lobes); the Gaussian with σ = 0.5/√2, cut off at distance 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.types import (
    INTERP_CUBIC,
    INTERP_GAUSSIAN,
    INTERP_LANCZOS3,
    INTERP_LINEAR,
    INTERP_TRIANGULAR,
    Arguments,
    DALIInterpType,
    PerSample,
)

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Interpolation(Arguments):
    """Which filter resamples.

    Attributes:
        antialias: widen the filter by the scale where the picture shrinks, so that every input
            pixel counts. Without it only the pixels next to the sample point do.
        interp_type: the filter, for shrinking and enlarging alike.
        mag_filter: the filter for axes that grow, instead of `interp_type`.
        min_filter: the filter for axes that shrink, instead of `interp_type`.
    """

    antialias: bool = True
    interp_type: PerSample[DALIInterpType] = INTERP_LINEAR
    mag_filter: PerSample[DALIInterpType] | None = None
    min_filter: PerSample[DALIInterpType] | None = None

    def filter(self, scale: float) -> DALIInterpType:
        """The filter of an axis on which a step of one output pixel is `scale` input pixels."""
        chosen = self.min_filter if abs(scale) > 1 else self.mag_filter
        return self.interp_type if chosen is None else chosen


@dataclass(frozen=True)
class AliasedInterpolation(Interpolation):
    """The same without antialiasing, unless asked for.

    Attributes:
        antialias: widen the filter by the scale where the picture shrinks.
    """

    antialias: bool = False


_STEPS = 32
"""Table entries per unit of distance."""


def _cubic(x: Array) -> Array:
    a, x = -0.5, np.abs(x)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * (x**3 - 5 * x**2 + 8 * x - 4)
    return np.where(x <= 1, near, far)


def _lanczos(x: Array) -> Array:
    result: Array = np.sinc(x) * np.sinc(x / 3)
    return result


def _gaussian(x: Array) -> Array:
    result: Array = np.exp(-4 * x**2)
    return result


_FILTERS: dict[DALIInterpType, tuple[Any, int]] = {
    INTERP_CUBIC: (_cubic, 2),
    INTERP_LANCZOS3: (_lanczos, 3),
    INTERP_GAUSSIAN: (_gaussian, 1),
}
BILINEAR = (INTERP_LINEAR, INTERP_TRIANGULAR)


def radius(kind: DALIInterpType) -> int:
    """The distance from which on the filter is zero."""
    return 1 if kind in BILINEAR else _FILTERS[kind][1]


def weight(kind: DALIInterpType, distance: Array) -> Array:
    """The filter's value at each distance; not normalised."""
    if kind in BILINEAR:
        triangle: Array = np.maximum(0.0, 1.0 - np.abs(distance))
        return triangle
    function, reach = _FILTERS[kind]
    knots = np.linspace(-reach, reach, 2 * reach * _STEPS + 1)
    end = reach + 1 / _STEPS
    table = np.concatenate(([0.0], function(knots), [0.0]))
    found: Array = np.interp(distance, np.concatenate(([-end], knots, [end])), table)
    return found


def filter_taps(
    kind: DALIInterpType, steps: tuple[int, float, float], widening: float
) -> tuple[Array, Array]:
    """Which samples are added up for each position, and with which weights.

    Args:
        kind: a filter other than INTERP_NN.
        steps: how many positions there are, the first, and the distance from one to the next, in
            pixels, where pixel 0 has its centre at 0.
        widening: the factor by which the filter is stretched.

    Returns:
        (positions × taps) indices, which may lie outside the picture, and as many weights, which
        sum to one for every position.
    """
    size, origin, scale = steps
    positions = origin + np.arange(size) * scale
    reach = radius(kind) * widening
    count = max(1, math.ceil(2 * reach - 1e-6))
    if kind == INTERP_GAUSSIAN:
        first = _first_of_gaussian(steps, widening)
    else:
        first = np.floor(positions - reach).astype(np.int64) + 1
    indices = first[:, None] + np.arange(count)
    weights = weight(kind, (indices - positions[:, None]) / widening)
    return indices, weights / weights.sum(axis=1, keepdims=True)


def _first_of_gaussian(steps: tuple[int, float, float], widening: float) -> Array:
    """The first sample that a Gaussian reaches from each position.

    It is not zero where it is cut off. So it shows which of two samples that lie just at its ends
    is counted, as on every axis that keeps its extent. In DALI the rounding of float32 decides
    that: of the reach, which comes from σ by way of the table's step, and of the positions.
    """
    size, origin, scale = steps
    sigma = np.float32(widening) * np.float32(0.5 / math.sqrt(2))
    reach = np.float32(1) / (np.float32(1) / (sigma * np.float32(2 * math.sqrt(2))))
    left = np.arange(size, dtype=np.float32) * np.float32(scale) + (np.float32(origin) - reach)
    first: Array = np.ceil(left).astype(np.int64)
    return first
