"""A grid of squares cut out of an image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._color import INTENSITIES, Array, channels_last
from forebay.operators._operator import operator
from forebay.types import Into, PerSample


def _check(given: Mapping[str, Any]) -> None:
    tile = given.get("tile")
    if isinstance(tile, int) and tile < 1:
        raise ArgumentError(f"'tile' must be positive, but got {tile}")


@operator(check=_check)
def grid_mask(
    data: Sample,
    *,
    angle: PerSample[float] = 0.0,
    ratio: PerSample[float] = 0.5,
    shift_x: PerSample[float] = 0.0,
    shift_y: PerSample[float] = 0.0,
    tile: PerSample[int] = 100,
) -> Sample:
    """Set a grid of squares to 0 (GridMask; Chen et al., 2020).

    Args:
        angle: in radians, by which the grid is turned counter-clockwise.
        ratio: the side of a square as a part of a tile's side; 0 cuts nothing out, 1 all.
        shift_x, shift_y: how far the grid is moved, in pixels.
        tile: the side of a tile, in pixels: from one square to the next.

    Returns:
        The same shape, element type and layout.

    Raises:
        ValueError: the data is not an HWC image of uint8, int16, int32 or float32.
        ArgumentError: the tile is not positive.
    """
    channels_last(data, ("HWC",), INTENSITIES)
    keep = torch.from_numpy(_keep(data, angle, ratio, shift_x, shift_y, tile))
    hidden = torch.zeros((), dtype=data.tensor.dtype, device=data.device)
    return data.like(torch.where(keep.to(data.device).unsqueeze(-1), data.tensor, hidden))


@grid_mask.kernel("cpu")
def _grid_mask_cpu(
    data: Sample,
    *,
    angle: float,
    ratio: float,
    shift_x: float,
    shift_y: float,
    tile: int,
    into: Into,
) -> Any:
    array = data.array
    if array.size == 0 or array.ndim != 3 or array.shape[2] > 4:
        return NotImplemented
    channels_last(data, ("HWC",), INTENSITIES)
    keep = _keep(data, angle, ratio, shift_x, shift_y, tile)
    result: Array = into(array.shape, array.dtype)
    result.fill(0)
    cv2.copyTo(array, keep.view(np.uint8), result)
    return data.like(result)


def _keep(
    data: Sample, angle: float, ratio: float, shift_x: float, shift_y: float, tile: int
) -> Array:
    """Which pixels stay. In float32, in this order, as pixels on an edge depend on rounding."""
    _check({"tile": tile})
    height, width = data.shape[:2]
    real = np.float32
    turn = float(real(angle))
    cos, sin = real(math.cos(turn)) / real(tile), real(math.sin(turn)) / real(tile)
    x = np.arange(width, dtype=real)
    y = np.arange(height, dtype=real)[:, None]
    across = x * cos - y * sin - real(shift_x) / real(tile)
    along = x * sin + y * cos - real(shift_y) / real(tile)
    across -= np.floor(across)
    along -= np.floor(along)
    keep: Array = (across >= real(ratio)) | (along >= real(ratio))
    return keep
