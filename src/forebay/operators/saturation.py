"""Saturation of images."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._color import ColorType, recolor, recolor_cpu, twist_matrix
from forebay.operators._operator import operator
from forebay.types import RGB, DALIDataType, DALIImageType, Into, PerSample


@operator
def saturation(
    data: Sample,
    *,
    dtype: ColorType | None = None,
    image_type: DALIImageType = RGB,
    saturation: PerSample[float] = 1.0,
) -> Sample:
    """Make the colours of an image paler or stronger.

    Args:
        dtype: of the result, by default the input's.
        image_type: accepted, but without effect, as in DALI: the channels are taken as RGB.
        saturation: 0 makes the image gray, 1 leaves it as it is.

    Returns:
        The same shape and layout; integers are rounded and clamped.

    Raises:
        ValueError: the data has not three channels, and last, or is not uint8, int16, int32,
            float16 or float32.
    """
    return recolor(data, twist_matrix(0.0, saturation, 1.0), 0.0, dtype)


@saturation.kernel("cpu")
def _saturation_cpu(
    data: Sample,
    *,
    dtype: DALIDataType | None,
    image_type: DALIImageType,
    saturation: float,
    into: Into,
) -> Any:
    return recolor_cpu(data, twist_matrix(0.0, saturation, 1.0), 0.0, dtype, into)
