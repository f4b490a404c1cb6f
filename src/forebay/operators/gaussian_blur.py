"""Blur with a Gaussian."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import cv2
import numpy as np
import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast
from forebay.operators._operator import operator
from forebay.operators._resample import Taps, weighted_sum
from forebay.types import BOOL, FLOAT, DALIDataType, Floats, Into, Ints, PerSample

Array = np.ndarray[Any, Any]


@operator
def gaussian_blur(
    data: Sample,
    *,
    dtype: DALIDataType | None = None,
    sigma: PerSample[Floats] = (0.0,),
    window_size: PerSample[Ints] = (0,),
) -> Sample:
    """Blur along the axes of space; channels and frames stay apart.

    Args:
        dtype: the element type of the result: the input's (the default) or FLOAT.
        sigma: the standard deviation in pixels, one for all axes or one for each in the order of
            the layout. 0 derives it from the window: 0.3·(r − 1) + 0.8 for a window of 2·r + 1.
        window_size: the number of pixels that are summed along an axis, odd. 0 derives it from
            `sigma`: 2·⌈3·σ⌉ + 1.

    Returns:
        The same shape and layout. Without a layout all axes are blurred.

    Raises:
        ValueError: the layout has no or more than three axes of space, or channels in their middle.
        ArgumentError: neither `sigma` nor `window_size` is given for an axis, or they are negative,
            even or of a wrong number.
    """
    result_type = _result_type(data, dtype)
    axes = _axes(data)
    windows = _windows(sigma, window_size, len(axes))
    result = data.tensor
    if 0 in result.shape:
        return data.like(torch.empty_like(result, dtype=result_type.torch))
    result = result.to(torch.float64 if data.dtype.numpy.itemsize > 4 else torch.float32)
    for axis, (deviation, size) in zip(axes, windows, strict=True):
        if size > 1:
            taps = _reflected_taps(result.shape[axis], deviation, size)
            result = weighted_sum(result, axis, taps)
    return data.like(saturate_cast(result, result_type))


_CV2_TYPES = ("uint8", "uint16", "int16", "float32")


@gaussian_blur.kernel("cpu")
def _gaussian_blur_cpu(
    data: Sample, *, dtype: DALIDataType | None, sigma: Floats, window_size: Ints, into: Into
) -> Any:
    array = data.array
    axes = _axes(data)
    if (
        axes != (0, 1)
        or (array.ndim == 3 and not 1 <= array.shape[2] <= 4)
        or array.dtype.name not in _CV2_TYPES
        or dtype not in (None, data.dtype)
        or array.size == 0
    ):
        return NotImplemented
    (sigma_y, size_y), (sigma_x, size_x) = _windows(sigma, window_size, 2)
    result = into(array.shape, array.dtype)
    target = result[..., 0] if array.ndim == 3 and array.shape[2] == 1 else result
    x, y = _bell(sigma_x, size_x), _bell(sigma_y, size_y)
    cv2.sepFilter2D(array, -1, x, y, dst=target, borderType=cv2.BORDER_REFLECT_101)
    return data.like(result)


@functools.lru_cache(maxsize=1024)
def _bell(sigma: float, size: int) -> Array:
    """The samples of a Gaussian at whole distances, normalised to sum to one."""
    distances = np.arange(size) - size // 2
    samples = np.exp(-0.5 * (distances / sigma) ** 2)
    bell: Array = (samples / samples.sum()).astype(np.float32)
    return bell


@functools.lru_cache(maxsize=1024)
def _reflected_taps(extent: int, sigma: float, size: int) -> Taps:
    """Taps of a blur of an axis that is mirrored at its outermost pixels, which do not repeat."""
    indices = np.arange(extent)[:, None] + np.arange(size) - size // 2
    period = max(1, 2 * (extent - 1))
    folded = np.abs(indices) % period
    folded = np.where(folded >= extent, period - folded, folded)
    return Taps(folded, np.tile(_bell(sigma, size), (extent, 1)))


def _result_type(data: Sample, dtype: DALIDataType | None) -> DALIDataType:
    source = data.dtype
    if source == BOOL:
        raise ValueError(
            "data to blur is integers or floats, but got BOOL; convert it with fn.cast"
        )
    if dtype not in (None, source, FLOAT):
        raise ValueError(
            f"'dtype' can be the input's type, {source.name}, or FLOAT, but got {dtype.name}"
        )
    return source if dtype is None else dtype


def _axes(data: Sample) -> tuple[int, ...]:
    """The axes of space: all but leading frames and channels, or channels at the end."""
    layout = data.layout or "X" * data.ndim
    match = re.fullmatch("(?P<lead>[FC]*)(?P<space>[^FC]{1,3})C?", layout)
    if match is None:
        raise ValueError(
            "a blur needs one to three axes of space, with frames and channels before, or channels "
            f"after them; but got {data.ndim} axes with the layout {data.layout!r}"
        )
    return tuple(range(*match.span("space")))


def _windows(sigma: Floats, window_size: Ints, count: int) -> list[tuple[float, int]]:
    """(σ, size) for each axis."""
    if len(sigma) not in (1, count) or len(window_size) not in (1, count):
        raise ArgumentError(
            f"'sigma' and 'window_size' take one number or {count} (one an axis), "
            f"but got {list(sigma)} and {list(window_size)}"
        )
    sigmas = sigma if len(sigma) == count else sigma * count
    sizes = window_size if len(window_size) == count else window_size * count
    return [_window(*pair) for pair in zip(sigmas, sizes, strict=True)]


def _window(sigma: float, size: int) -> tuple[float, int]:
    odd = size > 0 and size % 2 == 1
    if not (odd or size == 0) or not (0 < sigma < math.inf or (sigma == 0 and odd)):
        raise ArgumentError(
            "each axis needs a positive 'sigma', an odd 'window_size', or both, "
            f"but got sigma {sigma:g} and window_size {size}"
        )
    if not size:
        size = 2 * math.ceil(3 * sigma) + 1
    return sigma or 0.3 * (size // 2 - 1) + 0.8, size
