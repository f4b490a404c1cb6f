"""Brightness and contrast of images, at once."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._color import (
    IntensityType,
    full_range,
    half_range,
    result_type,
    scale,
    scale_cpu,
)
from forebay.operators._operator import operator
from forebay.types import DALIDataType, Into, PerSample


@operator
def brightness_contrast(
    data: Sample,
    *,
    brightness: PerSample[float] = 1.0,
    brightness_shift: PerSample[float] = 0.0,
    contrast: PerSample[float] = 1.0,
    contrast_center: PerSample[float] | None = None,
    dtype: IntensityType | None = None,
) -> Sample:
    """Change the contrast, then the brightness.

    The result is ``((data − center) × contrast + center) × brightness + shift × range``.

    Args:
        brightness: the factor that values are multiplied by; 1 leaves them as they are.
        brightness_shift: in units of the range of the output's type: 255 for uint8, 32767 for
            int16, 1 for float32, whatever the input's type is.
        contrast: 0 makes the image uniform, 1 leaves it as it is.
        contrast_center: the value that the contrast does not change; by default half the range of
            the input's type: 128 for uint8, 16384 for int16, 0.5 for float32.
        dtype: of the result, by default the input's.

    Returns:
        The same shape and layout; integers are rounded and clamped.

    Raises:
        ValueError: the data has not its channels last, or is not uint8, int16, int32 or float32.
    """
    factor, shift = _map(data, brightness, brightness_shift, contrast, contrast_center, dtype)
    return scale(data, factor, shift, dtype)


@brightness_contrast.kernel("cpu")
def _brightness_contrast_cpu(
    data: Sample,
    *,
    brightness: float,
    brightness_shift: float,
    contrast: float,
    contrast_center: float | None,
    dtype: DALIDataType | None,
    into: Into,
) -> Any:
    factor, shift = _map(data, brightness, brightness_shift, contrast, contrast_center, dtype)
    return scale_cpu(data, factor, shift, dtype, into)


def _map(
    data: Sample,
    brightness: float,
    brightness_shift: float,
    contrast: float,
    contrast_center: float | None,
    dtype: DALIDataType | None,
) -> tuple[float, float]:
    """Factor and shift of the linear map that both together are."""
    center = half_range(data.dtype) if contrast_center is None else contrast_center
    shift = brightness_shift * full_range(result_type(data, dtype))
    return brightness * contrast, brightness * (center - center * contrast) + shift
