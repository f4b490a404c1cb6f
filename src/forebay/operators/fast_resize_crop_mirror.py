"""Resize, crop and mirror in one step, without antialiasing."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._interpolation import AliasedInterpolation
from forebay.operators._operator import operator
from forebay.operators._resize_crop import check_resize_crop
from forebay.operators._sizing import NO_RESAMPLE_HINTS, ResampleHints, Sizing
from forebay.operators._window import CropWindow
from forebay.operators.resize_crop_mirror import resize_crop_mirror
from forebay.types import DALIDataType, PerSample


@operator(check=check_resize_crop)
def fast_resize_crop_mirror(
    data: Sample,
    *,
    sizing: Sizing,
    window: CropWindow,
    interpolation: AliasedInterpolation,
    hints: ResampleHints = NO_RESAMPLE_HINTS,
    dtype: DALIDataType | None = None,
    mirror: PerSample[int] = 0,
) -> Sample:
    """An older name of `resize_crop_mirror`, with antialiasing off by default.

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
    result: Sample = resize_crop_mirror(
        data,
        sizing=sizing,
        window=window,
        interpolation=interpolation,
        dtype=dtype,
        mirror=mirror,
    )
    return result


fast_resize_crop_mirror.kernel("cpu")(resize_crop_mirror.kernels["cpu"])
