"""Class numbers as vectors that are on at one place."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import torch

from forebay.batch import Batch, Sample
from forebay.operators._convert import truncate_casts
from forebay.operators._join import check_axis_name
from forebay.operators._operator import operator
from forebay.types import (
    BOOL,
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Between,
    DALIDataType,
    OneOf,
)

_TYPES = (UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FLOAT, FLOAT64)


@operator(check=check_axis_name)
def one_hot(
    data: Batch,
    *,
    axis: int | None = None,
    axis_name: str | None = None,
    dtype: Annotated[DALIDataType, OneOf(_TYPES)] = FLOAT,
    num_classes: Annotated[int, Between(0, 2**31 - 1)] = 0,
    off_value: float = 0.0,
    on_value: float = 1.0,
) -> Batch:
    """Each class number becomes a vector that is `on_value` at that place, `off_value` elsewhere.

    Numbers out of range give `off_value` everywhere; fractions are cut off.

    Args:
        axis: where the vectors go in the result: from 0 to the number of axes, −1 is last. They go
            last by default, and then, if every sample of the batch has a single element, the
            result is that vector alone.
        axis_name: the letter of the new axis.
        dtype: the element type of the result.
        num_classes: the length of the vectors.
        off_value, on_value: converted to `dtype` as C converts: 2.7 becomes 2 and, in uint8, −2
            becomes 254.

    Returns:
        Data with one more axis. The layout is the input's with `axis_name` at the new axis, and
        empty without `axis_name`.

    Raises:
        ValueError: the element type is bool or float16, the axis is out of range, or `axis_name`
            is given for data without a layout.
    """
    values = np.array([off_value, on_value], np.float32).tolist()
    table = torch.from_numpy(truncate_casts(values, dtype))
    alone = axis is None and all(sample.tensor.numel() == 1 for sample in data.samples)
    place = -1 if axis is None else axis
    made = []
    for sample in data.samples:
        scalar = sample.like(sample.tensor.reshape(()), "") if alone else sample
        made.append(_one(scalar, place, axis_name, num_classes, table))
    return Batch(made)


def _one(
    data: Sample, axis: int, axis_name: str | None, classes: int, table: torch.Tensor
) -> Sample:
    if data.dtype in (BOOL, FLOAT16):
        raise ValueError(
            f"class numbers are integers, float32 or float64, but got {data.dtype.name}"
        )
    ndim = data.ndim
    if not -1 <= axis <= ndim:
        raise ValueError(f"'axis' must lie in [-1, {ndim}] for data with {ndim} axes: {axis}")
    if axis_name is not None and len(data.layout) != ndim:
        raise ValueError("'axis_name' names an axis of a layout, but the data has none")
    axis = ndim if axis == -1 else axis
    numbers = data.tensor
    if data.dtype.is_float:
        numbers = numbers.nan_to_num(nan=-1)
    places = torch.arange(classes, device=numbers.device).reshape(-1, *[1] * (ndim - axis))
    on = numbers.to(torch.int64).unsqueeze(axis) == places
    layout = "" if axis_name is None else data.layout[:axis] + axis_name + data.layout[axis:]
    return data.like(table.to(numbers.device)[on.long()], layout)
