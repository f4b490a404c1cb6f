"""What colour operators share: their layouts and types, tables, and colour matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import cv2
import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._convert import saturate_cast
from forebay.operators._image_header import undecoded
from forebay.types import (
    FLOAT,
    FLOAT16,
    INT16,
    INT32,
    UINT8,
    DALIDataType,
    Into,
    OneOf,
)

Array = np.ndarray[Any, Any]

INTENSITIES = (UINT8, INT16, INT32, FLOAT)
COLORS = (*INTENSITIES, FLOAT16)
IntensityType = Annotated[DALIDataType, OneOf(INTENSITIES)]
ColorType = Annotated[DALIDataType, OneOf(COLORS)]


def channels_last(
    data: Sample,
    layouts: Sequence[str] = ("HWC", "FHWC", "DHWC"),
    types: Sequence[DALIDataType] = COLORS,
) -> str:
    """The sample's layout; without one, the first of `layouts` that has as many axes.

    Raises:
        ValueError: the layout or the element type is none of those.
    """
    if data.dtype not in types:
        names = ", ".join(t.name for t in types)
        raise ValueError(f"an image of type {names} is needed, but got {data.dtype.name}")
    for layout in layouts:
        if data.layout == layout or (not data.layout and data.ndim == len(layout)):
            return layout
    raise ValueError(
        undecoded(data)
        or f"an image of layout {', '.join(layouts)} is needed, but got {data.ndim} axes with the "
        f"layout {data.layout!r}"
    )


def full_range(dtype: DALIDataType) -> float:
    """The largest value of an image of this type: the maximum of integers, otherwise 1."""
    return float(np.iinfo(dtype.numpy).max) if dtype.numpy.kind in "iu" else 1.0


def half_range(dtype: DALIDataType) -> float:
    """The middle of the values of an image of this type: 0.5 for floats, 128 for uint8."""
    return float(int(full_range(dtype)) // 2 + 1) if dtype.numpy.kind in "iu" else 0.5


def result_type(data: Sample, dtype: DALIDataType | None) -> DALIDataType:
    """`dtype`; without one the input's element type. (UINT8 is 0, so `or` would not do.)"""
    return data.dtype if dtype is None else dtype


def scale(data: Sample, factor: float, shift: float, dtype: DALIDataType | None) -> Sample:
    """``data × factor + shift`` in float32, as elements of `dtype`; by default of the input's."""
    layout = channels_last(data, types=INTENSITIES)
    scaled = data.tensor.to(torch.float32) * factor + shift
    return data.like(saturate_cast(scaled, result_type(data, dtype)), layout)


# cv2 rounds halves to even; this much more, the least that counts up to 255, makes them go up.
_ABOVE_HALF = 3e-5
_LEVELS = np.arange(256, dtype=np.float32)


def scale_cpu(
    data: Sample, factor: float, shift: float, dtype: DALIDataType | None, into: Into
) -> Any:
    """The same for uint8 images; NotImplemented for others.

    The result is uint8 by cv2's weighted sum, of another type by a table.
    """
    array, target = data.array, result_type(data, dtype)
    if array.dtype != np.uint8 or array.size == 0:
        return NotImplemented
    layout = channels_last(data, types=INTENSITIES)
    if target != UINT8:
        table = saturate_cast(_LEVELS * np.float32(factor) + np.float32(shift), target)
        return data.like(apply_table(array, table, into), layout)
    result: Array = into(array.shape, np.uint8)
    flat = array.reshape(len(array), -1)
    place = result.reshape(flat.shape)
    cv2.addWeighted(flat, factor, flat, 0.0, shift + _ABOVE_HALF, dst=place)
    return data.like(result, layout)


def apply_table(array: Array, table: Array, into: Into) -> Array:
    """``table[array]`` for an array of uint8 and a table of 256 elements."""
    result: Array = into(array.shape, table.dtype)
    rows = len(array)
    cv2.LUT(array.reshape(rows, -1), table, dst=result.reshape(rows, -1))
    return result


# RGB to the YIQ colour space of NTSC television, rounded to three decimals, which is what DALI's
# results fit. Hue turns the I-Q plane, saturation scales it.
_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_FROM_YIQ = np.linalg.inv(_TO_YIQ)
_KEEP = np.outer(_FROM_YIQ[:, 0], _TO_YIQ[0])
_SAME = np.outer(_FROM_YIQ[:, 1], _TO_YIQ[1]) + np.outer(_FROM_YIQ[:, 2], _TO_YIQ[2])
_TURN = np.outer(_FROM_YIQ[:, 1], _TO_YIQ[2]) - np.outer(_FROM_YIQ[:, 2], _TO_YIQ[1])


def twist_matrix(hue: float, saturation: float, gain: float) -> Array:
    """The matrix that turns the hue of RGB by an angle in degrees, and scales the rest."""
    angle = math.radians(hue)
    chroma = gain * saturation
    matrix: Array = gain * _KEEP
    matrix += chroma * math.cos(angle) * _SAME + chroma * math.sin(angle) * _TURN
    return matrix


def recolor(
    data: Sample, matrix: Array, offset: Array | float, dtype: DALIDataType | None
) -> Sample:
    """``matrix × pixel + offset`` for every pixel, in float32."""
    layout = channels_last(data)
    _check_channels(data)
    pixels = data.tensor.to(torch.float32)
    weights = torch.as_tensor(matrix, dtype=torch.float32, device=pixels.device)
    shifts = torch.as_tensor(offset, dtype=torch.float32, device=pixels.device)
    turned = (pixels.unsqueeze(-2) * weights).sum(-1) + shifts
    return data.like(saturate_cast(turned, result_type(data, dtype)), layout)


def recolor_cpu(
    data: Sample,
    matrix: Array,
    offset: Array | float,
    dtype: DALIDataType | None,
    into: Into,
) -> Any:
    """The same for images of uint8 or float32; NotImplemented for others."""
    array, target = data.array, result_type(data, dtype)
    if array.dtype.name not in ("uint8", "float32") or array.size == 0:
        return NotImplemented
    if target != FLOAT and (target, data.dtype) != (UINT8, UINT8):
        return NotImplemented
    layout = channels_last(data)
    _check_channels(data)
    affine = np.empty((3, 4), np.float32)
    affine[:, :3] = matrix
    affine[:, 3] = offset
    return data.like(transform(array, affine, target, into), layout)


def transform(array: Array, affine: Array, target: DALIDataType, into: Into) -> Array:
    """An affine map of every pixel of a uint8 or float32 image, to uint8 (from uint8) or float32.

    cv2 computes with 10-bit weights on uint8, which is off by one in 8 % of the elements, but with
    float weights on uint16.
    """
    shape = (*array.shape[:-1], len(affine))
    result: Array = into(shape, target.numpy)
    flat = array.reshape(len(array), -1, array.shape[-1])
    place = result.reshape(len(array), -1, len(affine))
    if target == FLOAT:
        cv2.transform(flat.astype(np.float32, copy=False), affine, dst=place)
        return result
    affine[:, 3] += _ABOVE_HALF
    cv2.convertScaleAbs(cv2.transform(flat.astype(np.uint16), affine), dst=place)
    return result


def _check_channels(data: Sample) -> None:
    if data.shape[-1] != 3:
        raise ValueError(f"an image of 3 channels is needed, but got {data.shape[-1]}")
