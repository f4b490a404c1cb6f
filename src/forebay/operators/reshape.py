"""Give the elements another shape."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.operators._shape import NewShape, check_new_shape
from forebay.types import Layout


@operator(check=check_new_shape)
def reshape(
    data: Sample, shape_input: Sample | None = None, *, new: NewShape, layout: Layout | None = None
) -> Sample:
    """Give the elements another shape, without moving them.

    The shape comes from the second input (integers), from `shape`, or from `rel_shape`.

    Args:
        layout: the output's layout. By default the input's is kept if the number of axes is the
            same, and dropped otherwise.

    Returns:
        A view of the same elements.

    Raises:
        ArgumentError: the shape is given in no or two ways, or `layout` does not fit it.
        ValueError: the new shape has another number of elements.
    """
    shape, out_layout = new.resolve(data, shape_input, layout)
    return data.like(data.tensor.reshape(shape), out_layout)


@reshape.kernel("cpu")
def _reshape_cpu(
    data: Sample, shape_input: Sample | None = None, *, new: NewShape, layout: str | None
) -> Any:
    shape, out_layout = new.resolve(data, shape_input, layout)
    return data.like(data.array.reshape(shape), out_layout)
