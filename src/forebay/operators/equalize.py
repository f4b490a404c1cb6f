"""Histogram equalisation."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._color import Array, channels_last
from forebay.operators._operator import operator
from forebay.types import UINT8, Into

_LAYOUTS = ("HW", "HWC", "FHWC", "CHW", "FHW", "FCHW")


@operator(aliases=("experimental.equalize",))
def equalize(data: Sample) -> Sample:
    """Spread the levels of each channel so that all are about equally frequent.

    A level becomes ``255 · (n − m) / (N − m)``, where n pixels have that level or a lower one, m
    the lowest of all, and N is the number of pixels: the mapping of OpenCV's ``equalizeHist``.

    Returns:
        The same shape, uint8, the same layout. A channel of a single level stays as it is.

    Raises:
        ValueError: the data is not uint8, or not HW, HWC, CHW, or one of these with F before it.
    """
    layout = channels_last(data, _LAYOUTS, (UINT8,))
    axes = (layout.index("H"), layout.index("W"))
    moved = data.tensor.movedim(axes, (-2, -1))
    planes = [_equalize(p) for p in moved.reshape(-1, *moved.shape[-2:])] if moved.numel() else []
    result = torch.stack(planes).reshape(moved.shape) if planes else moved
    return data.like(result.movedim((-2, -1), axes), layout)


def _equalize(plane: torch.Tensor) -> torch.Tensor:
    counts = torch.bincount(plane.flatten().to(torch.int64), minlength=256)
    lowest = counts[plane.min().to(torch.int64)]
    others = plane.numel() - int(lowest)
    if others == 0:
        return plane
    factor = torch.tensor(255.0, device=plane.device) / others
    above = (torch.cumsum(counts, 0) - lowest).clamp(min=0).to(torch.float32)
    return torch.round(above * factor).to(torch.uint8)[plane.to(torch.int64)]


@equalize.kernel("cpu")
def _equalize_cpu(data: Sample, *, into: Into) -> Any:
    array = data.array
    if array.size == 0:
        return NotImplemented
    layout = channels_last(data, _LAYOUTS, (UINT8,))
    result: Array = into(array.shape, np.uint8)
    if layout == "HWC" and array.shape[2] <= 4:
        planes = [cv2.equalizeHist(plane) for plane in cv2.split(array)]
        cv2.merge(planes, dst=result)
        return data.like(result, layout)
    axes = (layout.index("H"), layout.index("W"))
    source, target = (np.moveaxis(a, axes, (-2, -1)) for a in (array, result))
    for index in np.ndindex(source.shape[:-2]):
        target[index] = cv2.equalizeHist(source[index])
    return data.like(result, layout)
