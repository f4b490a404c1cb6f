"""Gaussian noise."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._convert import saturate_cast
from forebay.operators._operator import operator
from forebay.operators._rng import Rng
from forebay.operators.noise._noisy import as_real, check_type, on_device, real_type
from forebay.types import PerSample


@operator
def gaussian(
    data: Sample, *, mean: PerSample[float] = 0.0, stddev: PerSample[float] = 1.0, rng: Rng
) -> Sample:
    """Add a normally distributed number to every element, each its own.

    Args:
        mean, stddev: of the numbers, in the units of the data.

    Returns:
        The same shape, element type and layout; integers are rounded and clamped.

    Raises:
        ValueError: the data is float16, float64 or bool.
    """
    check_type(data)
    real = real_type(data.dtype).numpy
    drawn = rng.generator().standard_normal(data.shape, dtype=real.type)
    noisy = on_device(drawn, data).mul_(stddev).add_(mean).add_(as_real(data))
    return data.like(saturate_cast(noisy, data.dtype))
