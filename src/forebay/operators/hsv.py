"""Hue, saturation and value of images."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._color import ColorType, recolor, recolor_cpu, twist_matrix
from forebay.operators._operator import operator
from forebay.types import UINT8, DALIDataType, Into, PerSample


@operator
def hsv(
    data: Sample,
    *,
    dtype: ColorType = UINT8,
    hue: PerSample[float] = 0.0,
    saturation: PerSample[float] = 1.0,
    value: PerSample[float] = 1.0,
) -> Sample:
    """Change hue, saturation and brightness of an image.

    Args:
        dtype: of the result; unlike in the other colour operators uint8 by default.
        hue: the angle, in degrees, that colours are turned by in the YIQ colour space.
        saturation: 0 makes the image gray, 1 leaves it as it is.
        value: the factor of the brightness.

    Returns:
        The same shape and layout; integers are rounded and clamped.

    Raises:
        ValueError: the data has not three channels, and last, or is not uint8, int16, int32,
            float16 or float32.
    """
    return recolor(data, twist_matrix(hue, saturation, value), 0.0, dtype)


@hsv.kernel("cpu")
def _hsv_cpu(
    data: Sample,
    *,
    dtype: DALIDataType,
    hue: float,
    saturation: float,
    value: float,
    into: Into,
) -> Any:
    return recolor_cpu(data, twist_matrix(hue, saturation, value), 0.0, dtype, into)
