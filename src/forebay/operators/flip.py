"""Mirror along axes."""

from __future__ import annotations

from typing import Any

import cv2
import torch

from forebay.batch import Sample
from forebay.operators._layout import image_layout
from forebay.operators._operator import operator
from forebay.types import PerSample


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


_CV2_TYPES = ("uint8", "int8", "uint16", "int16", "int32", "float32", "float64")


@flip.kernel("cpu")
def _flip_cpu(data: Sample, *, horizontal: int, vertical: int, depthwise: int) -> Any:
    layout = image_layout(data)
    array = data.array
    if layout != "HWC" or array.dtype.name not in _CV2_TYPES or array.size == 0:
        return NotImplemented
    if not horizontal and not vertical:
        return data.like(array, layout)
    code = (1 if not vertical else -1) if horizontal else 0
    return data.like(cv2.flip(array, code).reshape(array.shape), layout)
