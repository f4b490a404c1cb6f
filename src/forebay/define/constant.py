"""What a constant is as an array: the rules of `types.Constant`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast
from forebay.types import (
    FLOAT,
    FLOAT64,
    INT32,
    INT64,
    UINT32,
    UINT64,
    DALIDataType,
    ScalarConstant,
    data_type,
)

Array = np.ndarray[Any, Any]
_NARROW = {INT64: INT32, UINT64: UINT32, FLOAT64: FLOAT}


def constant_array(
    value: Any,
    dtype: DALIDataType | None = None,
    shape: int | Sequence[int] | None = None,
    layout: str | None = None,
) -> Array:
    """The array that every sample has. Raises ArgumentError, see `types.Constant`."""
    if isinstance(value, list | tuple) and any(isinstance(v, list | tuple) for v in value):
        raise ArgumentError("Constant takes a number, a flat list or an array, not nested lists")
    data = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
    array = np.array(data)  # a copy
    if array.dtype.kind not in "biuf":
        raise ArgumentError(f"Constant takes numbers, but got {value!r} ({type(value).__name__})")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if dtype is None:
        array = array.astype(_default_type(value, array).numpy)
    else:
        array = saturate_cast(array, data_type(dtype))
    if shape is not None:
        array = _shaped(array, tuple(np.atleast_1d(shape).tolist()))
    if layout and len(layout) != array.ndim:
        raise ArgumentError(f"the layout {layout!r} has not {array.ndim} axes")
    return array


def scalar_array(constant: ScalarConstant) -> Array:
    """The array without axes that a single number is. Raises ArgumentError, see its class."""
    dtype = constant.dtype.numpy
    if dtype.kind not in "iu":
        return saturate_cast(np.asarray(constant.value), constant.dtype)
    if dtype == np.int32:  # perhaps only because nothing was said
        check_fits(constant)
    limits = np.iinfo(dtype)
    return np.asarray(min(max(constant.value, limits.min), limits.max), dtype)


def check_fits(constant: ScalarConstant) -> None:
    """Raise ArgumentError if an integer does not fit its type."""
    dtype = constant.dtype.numpy
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= constant.value <= np.iinfo(dtype).max:
        raise ArgumentError(_misfit(constant.value, dtype))


def _misfit(value: Any, dtype: np.dtype[Any], wide: DALIDataType = INT64) -> str:
    return (
        f"the integer constant {value!r} does not fit {dtype}; say its type: "
        f"types.Constant({value!r}, dtype=types.{wide.name})"
    )


def _default_type(value: Any, array: Array) -> DALIDataType:
    own = data_type(array.dtype)
    if isinstance(value, torch.Tensor):
        return own
    narrow = _NARROW.get(own, own)
    if narrow.numpy.kind in "iu" and array.size:
        limits = np.iinfo(narrow.numpy)
        if not limits.min <= array.min() <= array.max() <= limits.max:
            raise ArgumentError(_misfit(value, narrow.numpy, own))
    return narrow


def _shaped(array: Array, shape: tuple[int, ...]) -> Array:
    try:
        return np.full(shape, array) if array.size == 1 else array.reshape(shape)
    except ValueError:
        raise ArgumentError(f"{array.size} numbers do not fill the shape {list(shape)}") from None
