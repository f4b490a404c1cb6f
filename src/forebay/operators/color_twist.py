"""Brightness, contrast, hue and saturation of images, at once."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._color import ColorType, recolor, recolor_cpu, twist_matrix
from forebay.operators._operator import operator
from forebay.types import RGB, DALIDataType, DALIImageType, Into, PerSample


@operator
def color_twist(
    data: Sample,
    *,
    brightness: PerSample[float] = 1.0,
    contrast: PerSample[float] = 1.0,
    dtype: ColorType | None = None,
    hue: PerSample[float] = 0.0,
    image_type: DALIImageType = RGB,
    saturation: PerSample[float] = 1.0,
) -> Sample:
    """Change hue, saturation, contrast and brightness of an image, in this order.

    The contrast spreads values around 128, or around 0.5 in images of floats.

    Args:
        brightness: the factor that all values are multiplied by, after the contrast.
        contrast: 0 makes the image uniform, 1 leaves it as it is.
        dtype: of the result, by default the input's.
        hue: the angle, in degrees, that colours are turned by in the YIQ colour space.
        image_type: accepted, but without effect, as in DALI: the channels are taken as RGB.
        saturation: 0 makes the image gray, 1 leaves it as it is.

    Returns:
        The same shape and layout; integers are rounded and clamped.

    Raises:
        ValueError: the data has not three channels, and last, or is not uint8, int16, int32,
            float16 or float32.
    """
    matrix = twist_matrix(hue, saturation, brightness * contrast)
    offset = brightness * (1.0 - contrast) * (0.5 if data.dtype.is_float else 128.0)
    return recolor(data, matrix, offset, dtype)


@color_twist.kernel("cpu")
def _color_twist_cpu(
    data: Sample,
    *,
    brightness: float,
    contrast: float,
    dtype: DALIDataType | None,
    hue: float,
    image_type: DALIImageType,
    saturation: float,
    into: Into,
) -> Any:
    matrix = twist_matrix(hue, saturation, brightness * contrast)
    offset = brightness * (1.0 - contrast) * (0.5 if data.dtype.is_float else 128.0)
    return recolor_cpu(data, matrix, offset, dtype, into)
