"""Resize, crop and mirror in one step."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._fast_resize import fast_resize
from forebay.operators._interpolation import Interpolation
from forebay.operators._layout import image_layout
from forebay.operators._operator import operator
from forebay.operators._resample import resample_image, resampled_type
from forebay.operators._resize_crop import check_resize_crop, cropped_spans
from forebay.operators._sizing import NO_RESAMPLE_HINTS, ResampleHints, Sizing, spatial_extents
from forebay.operators._window import CropWindow
from forebay.types import DALIDataType, Into, PerSample


@operator(check=check_resize_crop)
def resize_crop_mirror(
    data: Sample,
    *,
    sizing: Sizing,
    window: CropWindow,
    interpolation: Interpolation,
    hints: ResampleHints = NO_RESAMPLE_HINTS,
    dtype: DALIDataType | None = None,
    mirror: PerSample[int] = 0,
) -> Sample:
    """Resize a picture, crop the result and mirror it, in one step.

    Only what the crop shows is computed. A crop that is larger than the resized picture repeats
    its edge.

    Args:
        dtype: the element type of the result: the input's (the default) or FLOAT.
        mirror: the sum of 1 (mirror the W axis), 2 (H) and 4 (D).

    Returns:
        The crop in the same layout (one assumed by the number of axes if there was none).

    Raises:
        ValueError: the data is no picture, is empty, or is not uint8, int16, uint16 or float32.
        ArgumentError: the size is given in no way or in several, the crop in two, or a vector has
            not one number an axis.
    """
    layout = image_layout(data)
    result_type = resampled_type(data.dtype, dtype)
    spans = cropped_spans(sizing, window, mirror, spatial_extents(layout, data.shape))
    return resample_image(data, layout, spans, interpolation, result_type)


@resize_crop_mirror.kernel("cpu")
def _resize_crop_mirror_cpu(
    data: Sample,
    *,
    sizing: Sizing,
    window: CropWindow,
    interpolation: Interpolation,
    dtype: DALIDataType | None,
    mirror: int,
    into: Into,
) -> Any:
    layout = image_layout(data)
    spans = cropped_spans(sizing, window, mirror, spatial_extents(layout, data.shape))
    return fast_resize(data, layout, spans, interpolation, dtype, into)
