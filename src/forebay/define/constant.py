"""What a constant is as an array: the rules of `types.Constant`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast
from forebay.types import (
    BOOL,
    FLOAT,
    FLOAT64,
    INT32,
    INT64,
    UINT32,
    UINT64,
    Constant,
    DALIDataType,
    data_type,
)

Array = np.ndarray[Any, Any]
_NARROW = {INT64: INT32, UINT64: UINT32, FLOAT64: FLOAT}


def constant_array(constant: Constant) -> Array:
    """The array that every sample has. Raises ArgumentError, see `Constant`."""
    value = constant.value
    if isinstance(value, list | tuple) and any(isinstance(v, list | tuple) for v in value):
        raise ArgumentError("Constant takes a number, a flat list or an array, not nested lists")
    data = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
    array = np.array(data)  # a copy
    if array.dtype.kind not in "biuf":
        raise ArgumentError(f"Constant takes numbers, but got {value!r}")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if constant.dtype is None:
        array = array.astype(_default_type(value, array).numpy)
    else:
        array = _converted(array, data_type(constant.dtype), alone=constant.shape is None)
    if constant.shape is not None:
        array = _shaped(array, tuple(constant.shape))
    if constant.layout and len(constant.layout) != array.ndim:
        raise ArgumentError(f"the layout {constant.layout!r} has not {array.ndim} axes")
    return array


def _default_type(value: Any, array: Array) -> DALIDataType:
    own = data_type(array.dtype)
    if isinstance(value, torch.Tensor | np.generic) or (
        isinstance(value, np.ndarray) and not array.ndim
    ):
        return own
    narrow = _NARROW.get(own, own)
    if narrow.numpy.kind in "iu" and array.size:
        limits = np.iinfo(narrow.numpy)
        if not limits.min <= array.min() <= array.max() <= limits.max:
            raise ArgumentError(
                f"the integer constant {value!r} does not fit {narrow.numpy}; say its type: "
                f"types.Constant({value!r}, dtype=types.{own.name})"
            )
    return narrow


def _converted(array: Array, dtype: DALIDataType, *, alone: bool) -> Array:
    if alone and not array.ndim and array.dtype.kind == "f" and dtype.numpy.kind in "iu":
        array = np.trunc(array)  # a single number becomes an integer as by `int`
    if alone and not array.ndim and dtype is BOOL:
        return np.asarray(array != 0)
    return saturate_cast(array, dtype)


def _shaped(array: Array, shape: tuple[int, ...]) -> Array:
    try:
        return np.full(shape, array) if array.size == 1 else array.reshape(shape)
    except ValueError:
        raise ArgumentError(f"{array.size} numbers do not fill the shape {list(shape)}") from None
