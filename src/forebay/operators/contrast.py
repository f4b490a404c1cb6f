"""Contrast of images."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._color import IntensityType, half_range, scale, scale_cpu
from forebay.operators._operator import operator
from forebay.types import DALIDataType, Into, PerSample


@operator
def contrast(
    data: Sample,
    *,
    contrast: PerSample[float] = 1.0,
    contrast_center: PerSample[float] | None = None,
    dtype: IntensityType | None = None,
) -> Sample:
    """Spread the values of an image around a centre: ``(data − center) × contrast + center``.

    Args:
        contrast: 0 makes the image uniform, 1 leaves it as it is.
        contrast_center: the value that does not change; by default half the range of the input's
            type: 128 for uint8, 16384 for int16, 0.5 for float32.
        dtype: of the result, by default the input's.

    Returns:
        The same shape and layout; integers are rounded and clamped.

    Raises:
        ValueError: the data has not its channels last, or is not uint8, int16, int32 or float32.
    """
    center = half_range(data.dtype) if contrast_center is None else contrast_center
    return scale(data, contrast, center - center * contrast, dtype)


@contrast.kernel("cpu")
def _contrast_cpu(
    data: Sample,
    *,
    contrast: float,
    contrast_center: float | None,
    dtype: DALIDataType | None,
    into: Into,
) -> Any:
    center = half_range(data.dtype) if contrast_center is None else contrast_center
    return scale_cpu(data, contrast, center - center * contrast, dtype, into)
