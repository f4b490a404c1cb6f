"""Affine warps: every output pixel is looked up at an affine function of its position."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Annotated, Any

import cv2
import numpy as np
import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast
from forebay.operators._fast_resize import flat, warps_exactly
from forebay.operators._layout import image_layout
from forebay.types import (
    FLOAT,
    INT16,
    INT32,
    INTERP_LINEAR,
    INTERP_NN,
    UINT8,
    DALIDataType,
    DALIInterpType,
    Into,
    OneOf,
)

Array = np.ndarray[Any, Any]
WarpInterpolation = Annotated[DALIInterpType, OneOf((INTERP_NN, INTERP_LINEAR))]
_LAYOUTS = {"HWC": "HW", "FHWC": "HW", "DHWC": "DHW", "FDHWC": "DHW"}


def warp_layout(data: Sample) -> tuple[str, tuple[int, ...]]:
    """The layout of a picture to be warped, and its extents in space.

    Raises:
        ValueError: it is not HWC, FHWC, DHWC or FDHWC.
    """
    layout = image_layout(data)
    if layout not in _LAYOUTS:
        raise ValueError(
            f"a warp needs a layout with the channels last, {', '.join(_LAYOUTS)}; "
            f"but got {layout!r}; use fn.transpose"
        )
    return layout, data.shape[-1 - len(_LAYOUTS[layout]) : -1]


def warped_type(
    source: DALIDataType, dtype: DALIDataType | None, output_dtype: DALIDataType | None
) -> DALIDataType:
    """The element type of a warped picture. `output_dtype` is an older name of `dtype`.

    Raises:
        ValueError: the picture's type is not supported, or it cannot become `dtype`.
    """
    supported = (UINT8, INT16, INT32, FLOAT)
    if source not in supported:
        raise ValueError(
            f"a picture of uint8, int16, int32 or float32 can be warped, but got {source.name}; "
            "convert it with fn.cast"
        )
    dtype = output_dtype if dtype is None else dtype
    target = source if dtype is None else dtype
    if target != source and FLOAT not in (source, target):
        raise ValueError(f"{source.name} cannot become {target.name}, only FLOAT")
    if target not in supported:
        raise ValueError(f"'dtype' can be UINT8, INT16, INT32 or FLOAT, but got {target.name}")
    return target


def canvas(size: Sequence[float], extents: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of the result that the argument `size` asks for; the picture's if it is empty.

    Raises:
        ArgumentError: it has not a positive number for each axis.
    """
    if not size:
        return extents
    if len(size) != len(extents) or not all(math.isfinite(n) and n > 0 for n in size):
        raise ArgumentError(
            f"'size' takes {len(extents)} positive numbers, one an axis, but got {list(size)}"
        )
    return tuple(max(1, math.floor(n + 0.5)) for n in size)


def fill(value: float | None, source: DALIDataType) -> float | None:
    """The fill value as an element of the input's type, rounded and saturated."""
    if value is None or source == FLOAT:
        return value
    return float(saturate_cast(np.array([value]), source)[0])


def warp(
    data: Sample,
    matrix: Array,
    size: tuple[int, ...],
    *,
    interpolation: DALIInterpType,
    fill_value: float | None,
    dtype: DALIDataType,
) -> Sample:
    """The picture seen through an affine map. This is the definition; `fast_warp` is its like.

    Args:
        data: a picture with the channels last.
        matrix: (d, d + 1), from output to input positions in the order x, y, z, where pixel i
            reaches from i to i + 1.
        size: the extents of the result in the order of the layout.
        interpolation: INTERP_NN or INTERP_LINEAR.
        fill_value: what lies outside the picture; None repeats its edge.
        dtype: the element type of the result.

    Raises:
        ValueError: a picture without pixels is to be warped to one that has some.
    """
    layout, extents = warp_layout(data)
    tensor = data.tensor
    shape = (*tensor.shape[: layout.index(_LAYOUTS[layout][0])], *size, tensor.shape[-1])
    if 0 in shape:
        return data.like(torch.empty(shape, dtype=dtype.torch, device=tensor.device), layout)
    if 0 in extents:
        raise ValueError(f"a picture of extents {list(extents)} has no pixels to warp")
    frames = tensor.reshape(-1, math.prod(extents), tensor.shape[-1])
    positions = _positions(matrix, size, tensor.device)
    value = fill(fill_value, data.dtype)
    if interpolation == INTERP_NN:
        result = _look_up(frames, [p.floor().long() for p in positions], extents, value)
    else:
        result = _interpolate(frames.to(torch.float32), positions, extents, value)
    return data.like(saturate_cast(result.reshape(shape), dtype), layout)


def _positions(matrix: Array, size: tuple[int, ...], device: torch.device) -> list[torch.Tensor]:
    """For each input axis in the layout's order, where every output pixel's centre comes from."""
    real = torch.float32 if device.type == "mps" else torch.float64  # MPS has no float64
    axes = [torch.arange(n, device=device, dtype=real) + 0.5 for n in size]
    grid = torch.meshgrid(*axes, indexing="ij")[::-1]
    directions = torch.stack([g.reshape(-1) for g in grid])
    linear = torch.as_tensor(matrix[:, :-1], dtype=real, device=device)
    offset = torch.as_tensor(matrix[:, -1:], dtype=real, device=device)
    return list((linear @ directions + offset).flip(0))


def _look_up(
    frames: torch.Tensor,
    indices: list[torch.Tensor],
    extents: tuple[int, ...],
    fill_value: float | None,
) -> torch.Tensor:
    """The pixels at integer positions, which may lie outside the picture."""
    flattened = torch.zeros_like(indices[0])
    for index, extent in zip(indices, extents, strict=True):
        flattened = flattened * extent + index.clamp(0, extent - 1)
    found = frames.index_select(1, flattened)
    if fill_value is not None:
        for index, extent in zip(indices, extents, strict=True):
            outside = (index < 0) | (index >= extent)
            found = found.masked_fill(outside[None, :, None], fill_value)
    return found


def _interpolate(
    frames: torch.Tensor,
    positions: list[torch.Tensor],
    extents: tuple[int, ...],
    fill_value: float | None,
) -> torch.Tensor:
    lower = [(p - 0.5).floor() for p in positions]
    fractions = [p - 0.5 - low for p, low in zip(positions, lower, strict=True)]
    result = torch.zeros(())
    for corner in itertools.product((0, 1), repeat=len(extents)):
        indices = [low.long() + side for low, side in zip(lower, corner, strict=True)]
        weights = [f if side else 1 - f for f, side in zip(fractions, corner, strict=True)]
        weight = functools.reduce(torch.mul, weights).float()[:, None]
        result = result + weight * _look_up(frames, indices, extents, fill_value)
    return result


def fast_warp(
    data: Sample,
    matrix: Array,
    size: tuple[int, ...],
    *,
    interpolation: DALIInterpType,
    fill_value: float | None,
    dtype: DALIDataType,
    into: Into,
) -> Any:
    """`warp` by OpenCV, or NotImplemented for what it cannot do exactly."""
    array = data.array
    if (
        interpolation != INTERP_LINEAR
        or array.dtype != np.uint8
        or dtype != UINT8
        or len(size) != 2
        or array.ndim != 3
        or array.size == 0
        or not warps_exactly(array.shape, size)
    ):
        return NotImplemented
    value = fill(fill_value, UINT8)
    moved = matrix.copy()
    moved[:, 2] += matrix[:, 0] / 2 + matrix[:, 1] / 2 - 0.5  # OpenCV's pixels are centred at i
    result = into((*size, array.shape[2]), np.uint8)
    cv2.warpAffine(
        flat(array),
        moved,
        size[::-1],
        dst=flat(result),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE if value is None else cv2.BORDER_CONSTANT,
        borderValue=(0.0 if value is None else value,) * 4,
    )
    return data.like(result, warp_layout(data)[0])
