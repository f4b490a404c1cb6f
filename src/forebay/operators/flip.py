"""Mirror along axes."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._layout import image_layout
from forebay.operators._operator import operator
from forebay.types import Into, PerSample


@operator
def flip(
    data: Sample,
    *,
    horizontal: PerSample[int] = 1,
    vertical: PerSample[int] = 0,
    depthwise: PerSample[int] = 0,
) -> Sample:
    """Mirror an image, video or volume along its axes.

    Args:
        horizontal: non-zero mirrors the W axis. On by default, so ``vertical=1`` mirrors both.
        vertical: non-zero mirrors the H axis.
        depthwise: non-zero mirrors the D axis.

    Returns:
        The same shape, element type and layout.

    Raises:
        ValueError: the data is not an image by layout or number of axes.
    """
    layout = image_layout(data)
    wanted = (("W", horizontal), ("H", vertical), ("D", depthwise))
    axes = [layout.index(letter) for letter, on in wanted if on and letter in layout]
    return data.like(torch.flip(data.tensor, axes), layout)


_CV2_TYPES = {
    np.dtype(d) for d in (np.uint8, np.int8, np.uint16, np.int16, np.int32, np.float32, np.float64)
}


@flip.kernel("cpu")
def _flip_cpu(data: Sample, *, horizontal: int, vertical: int, depthwise: int, into: Into) -> Any:
    layout = image_layout(data)
    array = data.array
    plane_axes = 3 if layout.endswith("HWC") else 2
    if layout[-plane_axes:] not in ("HWC", "HW") or array.dtype not in _CV2_TYPES or not array.size:
        return NotImplemented
    deep = bool(depthwise) and "D" in layout
    if not horizontal and not vertical and not deep:
        return data.like(array, layout)
    if deep:
        array = np.flip(array, layout.index("D"))
    result = into(array.shape, array.dtype)
    if not horizontal and not vertical:
        result[...] = array
        return data.like(result, layout)
    code = (1 if not vertical else -1) if horizontal else 0
    for plane in np.ndindex(array.shape[:-plane_axes]):
        cv2.flip(array[plane], code, result[plane])
    return data.like(result, layout)
