"""How elements of one type become elements of another."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, TypeVar, overload

import numpy as np
import torch

from forebay.types import DALIDataType, data_type

Array = np.ndarray[Any, Any]
D = TypeVar("D", Array, torch.Tensor)


@overload
def saturate_cast(data: Array, dtype: DALIDataType) -> Array: ...
@overload
def saturate_cast(data: torch.Tensor, dtype: DALIDataType) -> torch.Tensor: ...
def saturate_cast(data: Array | torch.Tensor, dtype: DALIDataType) -> Array | torch.Tensor:
    """`data` with elements of type `dtype`: rounded half away from zero and clamped to its range.

    NaN becomes 0 in integers, and true as a bool. A bool is false for what rounds to 0. Overflow
    in floats gives infinity. Data of that type already is returned as it is, not copied.

    The rounding is ``trunc(x ± h)``, where h is the largest number below one half: with one half
    itself the sum would round up for the x just below one half.
    """
    if isinstance(data, torch.Tensor):
        return _cast_tensor(data, dtype)
    return np.asarray(_cast_array(data, dtype))


def _cast_array(data: Array, dtype: DALIDataType) -> Array:
    source, target = data.dtype, dtype.numpy
    truth: Array
    if source == target:
        return data
    if source.kind != "f" or target.kind == "f":
        if target.kind == "b":
            truth = np.not_equal(data, 0)
            return truth
        if target.kind == "f" or np.can_cast(source, target):
            with np.errstate(over="ignore"):
                return data.astype(target)
        clipped: Array = np.clip(data, *_common_range(source, target))
        return clipped.astype(target)
    if target.kind == "b":
        truth = np.logical_not(np.abs(data) < 0.5)
        return truth
    wide = np.promote_types(source, np.float32 if target.itemsize < 4 else np.float64)
    half = np.nextafter(wide.type(0.5), wide.type(0))
    rounded: Array = np.asarray(np.copysign(half, data, dtype=wide))  # not a numpy scalar
    rounded += data
    low, high, above = _float_range(target)
    if target.itemsize < 8:
        np.clip(rounded, low, high, out=rounded)
        rounded[np.isnan(rounded)] = 0
        return rounded.astype(target)
    result: Array = np.asarray(np.nan_to_num(np.clip(rounded, low, high)).astype(target))
    result[rounded >= above] = np.iinfo(target).max
    return result


def _cast_tensor(data: torch.Tensor, dtype: DALIDataType) -> torch.Tensor:
    source, target = data_type(data.dtype), dtype
    if source == target:
        return data
    if source.is_float and not target.is_float:
        return _round_tensor(data, target)
    if target == DALIDataType.BOOL:
        return _as_signed(data) != 0
    if target.is_float:
        if source == DALIDataType.UINT64:
            whole = _as_signed(data)
            high, low = (whole >> 32) & 0xFFFFFFFF, whole & 0xFFFFFFFF
            return (high.double() * 2.0**32 + low.double()).to(target.torch)
        return data.to(target.torch)
    if np.can_cast(source.numpy, target.numpy):
        return data.to(target.torch)
    low_limit, high_limit = _common_range(source.numpy, target.numpy)
    if source == DALIDataType.UINT64:
        whole = _as_signed(data)
        clamped = torch.where(whole < 0, high_limit, whole.clamp(max=high_limit))
    elif source in (DALIDataType.UINT16, DALIDataType.UINT32):
        clamped = data.to(torch.int64).clamp(low_limit, high_limit)
    else:
        clamped = data.clamp(low_limit, high_limit)
    return clamped.to(target.torch)


def _round_tensor(data: torch.Tensor, target: DALIDataType) -> torch.Tensor:
    if target == DALIDataType.BOOL:
        return torch.logical_not(data.abs() < 0.5)
    size = target.numpy.itemsize
    wide = data.double() if size > 2 or data.dtype == torch.float64 else data.float()
    one_half = torch.tensor(0.5, dtype=wide.dtype, device=wide.device)
    half = torch.nextafter(one_half, torch.zeros_like(one_half))
    low, high, above = _float_range(target.numpy)
    rounded = (wide + torch.copysign(half, wide)).nan_to_num(nan=0.0)
    clamped = rounded.clamp(low, high)
    if target == DALIDataType.UINT64:
        top = clamped >= 2.0**63
        lowered = torch.where(top, clamped - 2.0**63, clamped).to(torch.int64)
        bits = lowered + torch.where(top, torch.iinfo(torch.int64).min, 0)
        return torch.where(rounded >= above, -1, bits).view(torch.uint64)
    if size == 8:
        whole = clamped.to(torch.int64)
        return torch.where(rounded >= above, torch.iinfo(torch.int64).max, whole)
    if target in (DALIDataType.UINT16, DALIDataType.UINT32):
        clamped = clamped.to(torch.int64)
    return clamped.to(target.torch)


def _as_signed(data: torch.Tensor) -> torch.Tensor:
    """The same bits as a signed integer: torch can hardly compute with wide unsigned ones."""
    signed = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
    return data.view(signed[data.dtype]) if data.dtype in signed else data


@functools.cache
def _common_range(source: np.dtype[Any], target: np.dtype[Any]) -> tuple[int, int]:
    """The integers that both types can hold. A bool is 0 or 1."""
    if source.kind == "b":
        return 0, 1
    a, b = np.iinfo(source), np.iinfo(target)
    return max(int(a.min), int(b.min)), min(int(a.max), int(b.max))


@functools.cache
def _float_range(target: np.dtype[Any]) -> tuple[float, float, float]:
    """The least and greatest float64 in an integer type's range, and the first one above it."""
    limits = np.iinfo(target)
    low, above = float(limits.min), float(int(limits.max) + 1)
    high = float(limits.max) if target.itemsize < 8 else math.nextafter(above, 0.0)
    return low, high, above


@functools.cache
def truncate_cast(value: float, dtype: DALIDataType) -> int | float | bool:
    """A fill value as an element of type `dtype`, as C converts: cut off and wrapped around.

    2.7 becomes 2, and in uint8 300 becomes 44 and −2 becomes 254. The value is a float32 first.
    """
    target = dtype.numpy
    if target.kind == "b":
        return value != 0
    if target.kind == "f":
        with np.errstate(over="ignore"):
            return float(np.float32(value).astype(target))
    whole = math.trunc(float(np.float32(value))) if math.isfinite(value) else 0
    whole &= (1 << (8 * target.itemsize)) - 1
    limits = np.iinfo(target)
    return whole - (1 << (8 * target.itemsize)) if whole > limits.max else whole


def truncate_casts(values: Sequence[float], dtype: DALIDataType) -> Array:
    """Several fill values as an array of type `dtype`."""
    return np.array([truncate_cast(value, dtype) for value in values], dtype.numpy)
