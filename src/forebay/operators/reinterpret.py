"""Read the same bytes as elements of another type or shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.operators._shape import NewShape, check_new_shape
from forebay.types import DALIDataType, Layout


@operator(check=check_new_shape)
def reinterpret(
    data: Sample,
    shape_input: Sample | None = None,
    *,
    new: NewShape,
    layout: Layout | None = None,
    dtype: DALIDataType | None = None,
) -> Sample:
    """Read the same bytes as elements of another type, and give them another shape.

    The shape comes from the second input (integers), from `shape`, or from `rel_shape`; without
    any, the last axis grows or shrinks with the size of the elements.

    Args:
        layout: the output's layout. By default the input's is kept if the number of axes is the
            same, and dropped otherwise.
        dtype: the output's element type, by default the input's.

    Returns:
        A view of the same bytes.

    Raises:
        ArgumentError: nothing is given to change, the shape is given in two ways, or `layout` does
            not fit it.
        ValueError: the bytes are not as many as the new shape and type need.
    """
    size = 0 if dtype is None else dtype.numpy.itemsize
    shape, out_layout = new.resolve(data, shape_input, layout, size)
    flat = data.tensor.reshape(-1)
    if dtype is not None and dtype != data.dtype:
        flat = flat.view(torch.uint8).view(dtype.torch) if flat.numel() else flat.to(dtype.torch)
    return data.like(flat.reshape(shape), out_layout)


@reinterpret.kernel("cpu")
def _reinterpret_cpu(
    data: Sample,
    shape_input: Sample | None = None,
    *,
    new: NewShape,
    layout: str | None,
    dtype: DALIDataType | None,
) -> Any:
    size = 0 if dtype is None else dtype.numpy.itemsize
    shape, out_layout = new.resolve(data, shape_input, layout, size)
    flat = np.ascontiguousarray(data.array).reshape(-1)
    if dtype is not None:
        flat = flat.view(dtype.numpy)
    return data.like(flat.reshape(shape), out_layout)
