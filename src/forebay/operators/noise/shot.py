"""Shot noise, as of a sensor that counts photons."""

from __future__ import annotations

import math

import numpy as np

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast
from forebay.operators._operator import operator
from forebay.operators._rng import Rng
from forebay.operators.noise._noisy import as_real, check_type, on_device
from forebay.types import PerSample

_MOST = 2.0**62
"""A mean above which numpy draws no Poisson numbers, and beyond any image."""


@operator
def shot(data: Sample, *, factor: PerSample[float] = 20.0, rng: Rng) -> Sample:
    """Replace every element x by a Poisson-distributed number of mean x / factor, times factor.

    So the mean stays and the variance becomes x · factor. What is negative becomes 0.

    Args:
        factor: how much one photon adds; the larger, the more noise. Positive.

    Returns:
        The same shape, element type and layout; integers are rounded and clamped.

    Raises:
        ValueError: the data is float16, float64 or bool.
        ArgumentError: `factor` is not positive and finite.
    """
    check_type(data)
    if not (factor > 0 and math.isfinite(factor)):
        raise ArgumentError(f"'factor' must be positive and finite, but got {factor:g}")
    mean = np.nan_to_num(as_real(data).cpu().numpy().astype(np.float64) / factor, posinf=_MOST)
    drawn = rng.generator().poisson(np.clip(mean, 0, _MOST)) * float(factor)
    return data.like(saturate_cast(on_device(drawn, data), data.dtype))
