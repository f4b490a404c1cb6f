"""Brightness of images."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._color import IntensityType, full_range, result_type, scale, scale_cpu
from forebay.operators._operator import operator
from forebay.types import DALIDataType, Into, PerSample


@operator
def brightness(
    data: Sample,
    *,
    brightness: PerSample[float] = 1.0,
    brightness_shift: PerSample[float] = 0.0,
    dtype: IntensityType | None = None,
) -> Sample:
    """Make an image, video or volume brighter or darker: ``data × brightness + shift × range``.

    Args:
        brightness: the factor that values are multiplied by; 1 leaves them as they are.
        brightness_shift: in units of the range of the output's type: 255 for uint8, 32767 for
            int16, 1 for float32, whatever the input's type is.
        dtype: of the result, by default the input's.

    Returns:
        The same shape and layout; integers are rounded and clamped.

    Raises:
        ValueError: the data has not its channels last, or is not uint8, int16, int32 or float32.
    """
    shift = brightness_shift * full_range(result_type(data, dtype))
    return scale(data, brightness, shift, dtype)


@brightness.kernel("cpu")
def _brightness_cpu(
    data: Sample,
    *,
    brightness: float,
    brightness_shift: float,
    dtype: DALIDataType | None,
    into: Into,
) -> Any:
    shift = brightness_shift * full_range(result_type(data, dtype))
    return scale_cpu(data, brightness, shift, dtype, into)
