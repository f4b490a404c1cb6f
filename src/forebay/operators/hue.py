"""Hue of images."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._color import ColorType, recolor, recolor_cpu, twist_matrix
from forebay.operators._operator import operator
from forebay.types import RGB, DALIDataType, DALIImageType, Into, PerSample


@operator
def hue(
    data: Sample,
    *,
    dtype: ColorType | None = None,
    hue: PerSample[float] = 0.0,
    image_type: DALIImageType = RGB,
) -> Sample:
    """Turn the colours of an image around the colour circle.

    Args:
        dtype: of the result, by default the input's.
        hue: the angle, in degrees, that colours are turned by in the YIQ colour space.
        image_type: accepted, but without effect, as in DALI: the channels are taken as RGB.

    Returns:
        The same shape and layout; integers are rounded and clamped.

    Raises:
        ValueError: the data has not three channels, and last, or is not uint8, int16, int32,
            float16 or float32.
    """
    return recolor(data, twist_matrix(hue, 1.0, 1.0), 0.0, dtype)


@hue.kernel("cpu")
def _hue_cpu(
    data: Sample,
    *,
    dtype: DALIDataType | None,
    hue: float,
    image_type: DALIImageType,
    into: Into,
) -> Any:
    return recolor_cpu(data, twist_matrix(hue, 1.0, 1.0), 0.0, dtype, into)
