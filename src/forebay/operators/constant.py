"""A constant that is given as numbers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast
from forebay.operators._fill import check_layout
from forebay.operators._operator import operator
from forebay.types import FLOAT, INT32, DALIDataType, Floats, Ints, Layout


def _check(given: Mapping[str, Any]) -> None:
    known = {name: given.get(name) for name in ("idata", "fdata", "shape", "dtype")}
    array = _array(**known)
    check_layout(given.get("layout") or "", array.ndim)


@operator(check=_check)
def constant(
    *,
    idata: Ints | None = None,
    fdata: Floats | None = None,
    shape: Ints | None = None,
    dtype: DALIDataType | None = None,
    layout: Layout = "",
) -> Sample:
    """The same numbers in every sample.

    Args:
        idata: the numbers as integers, in row-major order. Either this or `fdata` must be given.
        fdata: the numbers as floats.
        shape: one axis with all the numbers by default. A single number fills any shape.
        dtype: int32 for `idata` and float32 for `fdata` by default. The numbers are rounded half
            away from zero and clamped to its range.
        layout: a letter for each axis; none by default.

    Returns:
        int32 or float32 unless `dtype` says another; a vector unless a shape is given.

    Raises:
        ArgumentError: both or neither of `idata` and `fdata` are given; there are more or fewer
            numbers than the shape takes; integers do not fit int32 and `dtype` is not given; the
            layout has not a letter per axis.
    """
    return Sample(torch.from_numpy(_array(idata, fdata, shape, dtype).copy()), layout)


@functools.lru_cache(maxsize=64)
def _array(
    idata: Ints | None, fdata: Floats | None, shape: Ints | None, dtype: DALIDataType | None
) -> np.ndarray[Any, Any]:
    if (idata is None) == (fdata is None):
        raise ArgumentError("give either 'idata' or 'fdata'")
    if idata is not None:
        numbers = np.array(idata, np.int64)
        limits = np.iinfo(np.int32)
        if dtype is None and any(not limits.min <= number <= limits.max for number in idata):
            raise ArgumentError(f"the integers {idata} do not fit int32; give 'dtype'")
        dtype = INT32 if dtype is None else dtype
    else:
        numbers = np.array(fdata, np.float32)
        dtype = FLOAT if dtype is None else dtype
    array = saturate_cast(numbers, dtype)
    if shape is None:
        return array
    if any(extent < 0 for extent in shape):
        raise ArgumentError(f"'shape' takes extents of 0 or more, but got {list(shape)}")
    if array.size == 1:
        return np.full(shape, array)
    if array.size != np.prod(shape, dtype=np.int64):
        raise ArgumentError(f"{array.size} numbers do not fill the shape {list(shape)}")
    return array.reshape(shape)
