"""Cut a window out of an image."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.operators._region import NO_HINT, D, ImageTypeHint, OutOfBounds, cut, one_dtype
from forebay.operators._window import CropWindow, check_crop_window, crop_layout, crop_region
from forebay.types import DALIDataType


@operator(check=check_crop_window)
def crop(
    data: Sample,
    *,
    window: CropWindow,
    bounds: OutOfBounds,
    dtype: DALIDataType | None = None,
    output_dtype: DALIDataType | None = None,
    hints: ImageTypeHint = NO_HINT,
) -> Sample:
    """Cut a window out of an image, video or volume.

    Frames of a video count as its depth, so three numbers in `crop` cut it in time as well.

    Args:
        dtype: the output's element type, by default the input's. Values are rounded and clamped.
        output_dtype: an old name of `dtype`.

    Returns:
        The window, in the same layout. Without layout, three axes are taken as HWC, four as DHWC.

    Raises:
        ValueError: the data is no image, or the window reaches outside and `out_of_bounds_policy`
            is "error".
    """
    return _crop(data, data.tensor, window, bounds, one_dtype(dtype, output_dtype, data.dtype))


@crop.kernel("cpu")
def _crop_cpu(
    data: Sample,
    *,
    window: CropWindow,
    bounds: OutOfBounds,
    dtype: DALIDataType | None,
    output_dtype: DALIDataType | None,
) -> Any:
    return _crop(data, data.array, window, bounds, one_dtype(dtype, output_dtype, data.dtype))


def _crop(
    data: Sample, elements: D, window: CropWindow, bounds: OutOfBounds, dtype: DALIDataType
) -> Sample:
    layout = crop_layout(data)
    region = crop_region(window, layout, data.shape)
    return data.like(cut(elements, region, bounds, layout.index("C"), dtype), layout)
