"""Rotate pictures and volumes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.operators._warp import (
    Array,
    WarpInterpolation,
    canvas,
    fast_warp,
    warp,
    warp_layout,
    warped_type,
)
from forebay.types import INTERP_LINEAR, DALIDataType, Floats, Into, PerSample


@operator
def rotate(
    data: Sample,
    *,
    angle: PerSample[float],
    axis: PerSample[Floats] | None = None,
    dtype: DALIDataType | None = None,
    fill_value: float | None = None,
    interp_type: WarpInterpolation = INTERP_LINEAR,
    keep_size: bool = False,
    output_dtype: DALIDataType | None = None,
    size: PerSample[Floats] = (),
) -> Sample:
    """Rotate a picture, the frames of a video, or a volume about its centre.

    Args:
        angle: in degrees, counter-clockwise.
        axis: (x, y, z), the axis that a volume is rotated about; needed for volumes, and ignored
            for pictures.
        dtype: the element type of the result: the input's (the default), FLOAT, or any supported
            one for float32 input.
        fill_value: what surrounds the picture; without it the edge is repeated.
        interp_type: takes the nearest pixel, or interpolates between the neighbours.
        keep_size: keep the picture's extents. The default is a canvas that holds all of it.
        output_dtype: an older name of `dtype`.
        size: the extents of the result in the order of the layout, instead.

    Returns:
        The rotated data in the same layout (one assumed by the number of axes if there was none).

    Raises:
        ValueError: the layout or element type is not supported.
        ArgumentError: the angle is not finite, a volume has no axis, or `size` is not positive.
    """
    matrix, extents = _rotation(data, angle, axis, size, keep_size=keep_size)
    return warp(
        data,
        matrix,
        extents,
        interpolation=interp_type,
        fill_value=fill_value,
        dtype=warped_type(data.dtype, dtype, output_dtype),
    )


@rotate.kernel("cpu")
def _rotate_cpu(
    data: Sample,
    *,
    angle: float,
    axis: Floats | None,
    dtype: DALIDataType | None,
    fill_value: float | None,
    interp_type: WarpInterpolation,
    keep_size: bool,
    output_dtype: DALIDataType | None,
    size: Floats,
    into: Into,
) -> Any:
    matrix, extents = _rotation(data, angle, axis, size, keep_size=keep_size)
    return fast_warp(
        data,
        matrix,
        extents,
        interpolation=interp_type,
        fill_value=fill_value,
        dtype=warped_type(data.dtype, dtype, output_dtype),
        into=into,
    )


def _rotation(
    data: Sample, angle: float, axis: Floats | None, size: Floats, *, keep_size: bool
) -> tuple[Array, tuple[int, ...]]:
    """The map from output to input positions, and the extents of the result."""
    _, extents = warp_layout(data)
    if not math.isfinite(angle):
        raise ArgumentError(f"'angle' must be finite, but got {angle}")
    turn = _turn(angle, axis, len(extents))
    if size or keep_size:
        result = canvas(size, extents)
    else:
        result = _hull(turn, extents)
    source_centre = np.array(extents[::-1]) / 2
    result_centre = np.array(result[::-1]) / 2
    return np.column_stack((turn, source_centre - turn @ result_centre)), result


def _turn(angle: float, axis: Floats | None, count: int) -> Array:
    """The rotation of directions from output to input, in the order x, y, z.

    In a volume it is Rodrigues' formula. As y points down, the turn from output to input that makes
    a picture go counter-clockwise has the matrix ((cos, −sin), (sin, cos)). Radians are rounded to
    float32 as in DALI, where that decides about the canvas at odd multiples of 45°.
    """
    radians = float(np.float32(angle) * np.float32(math.pi / 180))
    cos, sin = math.cos(radians), math.sin(radians)
    if count == 2:
        return np.array([[cos, -sin], [sin, cos]])
    if axis is None or len(axis) != 3 or not 0 < math.hypot(*axis) < math.inf:
        raise ArgumentError(f"a volume is rotated about an 'axis' (x, y, z), but got {axis}")
    x, y, z = np.array(axis) / math.hypot(*axis)
    cross = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
    turn: Array = np.eye(3) + sin * cross + (1 - cos) * cross @ cross
    return turn


def _hull(turn: Array, extents: tuple[int, ...]) -> tuple[int, ...]:
    """The extents that hold the rotated picture.

    One is added where needed to make an extent odd or even like that of the input axis that it
    mostly shows, so that pixels keep their places at multiples of 90°.
    """
    share = np.abs(turn).T
    source = extents[::-1]
    ties = 1e-5 * np.eye(3) if len(extents) == 3 else 0.0  # in a volume they go to the own axis
    main = (share + ties).argmax(axis=1)
    exact = np.ceil(share @ np.array(source) - 0.01).astype(int)
    return tuple(int(n + (n - source[i]) % 2) for n, i in zip(exact, main, strict=True))[::-1]
