"""Warp pictures and volumes by an affine map."""

from __future__ import annotations

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
from forebay.types import FLOAT, INTERP_LINEAR, DALIDataType, Floats, Into, PerSample


@operator
def warp_affine(
    data: Sample,
    matrix_input: Sample | None = None,
    *,
    dtype: DALIDataType | None = None,
    fill_value: float | None = None,
    interp_type: WarpInterpolation = INTERP_LINEAR,
    inverse_map: bool = True,
    matrix: PerSample[Floats] = (),
    output_dtype: DALIDataType | None = None,
    size: PerSample[Floats] = (),
) -> Sample:
    """Warp a picture, the frames of a video, or a volume by an affine map.

    The matrix is given as the second input or as the argument `matrix`. It is
    ((a, b, c), (d, e, f)), and maps (x, y) to (a·x + b·y + c, d·x + e·y + f), where pixel i reaches
    from i to i + 1; for volumes it is 3 × 4, in the order x, y, z.

    Args:
        dtype: the element type of the result: the input's (the default), FLOAT, or any supported
            one for float32 input.
        fill_value: what surrounds the picture; without it the edge is repeated.
        interp_type: takes the nearest pixel, or interpolates between the neighbours.
        inverse_map: the matrix maps from the result to the input (the default), or the other way.
        matrix: row by row.
        output_dtype: an older name of `dtype`.
        size: the extents of the result in the order of the layout; the input's by default.

    Returns:
        The warped data in the same layout (one assumed by the number of axes if there was none).

    Raises:
        ValueError: the layout or element type is not supported, the matrix is missing, given twice
            or of a wrong shape or type, or cannot be inverted.
        ArgumentError: `size` is not positive.
    """
    return warp(
        data,
        _matrix(data, matrix_input, matrix, inverse_map=inverse_map),
        canvas(size, warp_layout(data)[1]),
        interpolation=interp_type,
        fill_value=fill_value,
        dtype=warped_type(data.dtype, dtype, output_dtype),
    )


@warp_affine.kernel("cpu")
def _warp_affine_cpu(
    data: Sample,
    matrix_input: Sample | None = None,
    *,
    dtype: DALIDataType | None,
    fill_value: float | None,
    interp_type: WarpInterpolation,
    inverse_map: bool,
    matrix: Floats,
    output_dtype: DALIDataType | None,
    size: Floats,
    into: Into,
) -> Any:
    return fast_warp(
        data,
        _matrix(data, matrix_input, matrix, inverse_map=inverse_map),
        canvas(size, warp_layout(data)[1]),
        interpolation=interp_type,
        fill_value=fill_value,
        dtype=warped_type(data.dtype, dtype, output_dtype),
        into=into,
    )


def _matrix(
    data: Sample, matrix_input: Sample | None, matrix: Floats, *, inverse_map: bool
) -> Array:
    """The map from output to input positions."""
    count = len(warp_layout(data)[1])
    shape = (count, count + 1)
    if (matrix_input is None) == (not matrix):
        raise ArgumentError("give the matrix either as the second input or as 'matrix'")
    if matrix_input is None:
        if len(matrix) != count * (count + 1):
            raise ArgumentError(
                f"'matrix' takes the {count * (count + 1)} numbers of a {count} × {count + 1} "
                f"matrix, but got {len(matrix)}"
            )
        values = np.array(matrix, np.float64).reshape(shape)
    else:
        if matrix_input.shape != shape or matrix_input.dtype != FLOAT:
            raise ValueError(
                f"the second input must be a float32 matrix of shape {list(shape)}, but got "
                f"{matrix_input.dtype.name} of shape {list(matrix_input.shape)}"
            )
        values = matrix_input.tensor.cpu().numpy().astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"the matrix must be finite, but got {values.tolist()}")
    return values if inverse_map else _inverse(values)


def _inverse(matrix: Array) -> Array:
    try:
        linear = np.linalg.inv(matrix[:, :-1])
    except np.linalg.LinAlgError:
        raise ValueError(f"the matrix {matrix.tolist()} cannot be inverted") from None
    return np.column_stack((linear, -linear @ matrix[:, -1]))
