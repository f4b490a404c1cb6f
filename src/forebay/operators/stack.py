"""Join along a new axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._join import axis_of, check_alike, check_axis_name
from forebay.operators._operator import operator
from forebay.types import Into


@operator(check=check_axis_name)
def stack(first: Sample, *others: Sample, axis: int = 0, axis_name: str | None = None) -> Sample:
    """Join data of equal shapes along a new axis.

    Args:
        axis: where the new axis goes in the result; negative numbers count from its end.
        axis_name: the new axis's letter.

    Returns:
        The same element type. The layout is the first input's with `axis_name` at the new axis,
        and empty without `axis_name`.

    Raises:
        ValueError: the inputs differ in shape or element type, the axis is out of range, or
            `axis_name` is given for data without a layout.
    """
    samples = (first, *others)
    axis, layout = _place(samples, axis, axis_name)
    return first.like(torch.stack([sample.tensor for sample in samples], axis), layout)


@stack.kernel("cpu")
def _stack_cpu(first: Sample, *others: Sample, axis: int, axis_name: str | None, into: Into) -> Any:
    samples = (first, *others)
    axis, layout = _place(samples, axis, axis_name)
    shape = first.shape
    joined = into((*shape[:axis], len(samples), *shape[axis:]), first.array.dtype)
    np.stack([sample.array for sample in samples], axis, out=joined)
    return first.like(joined, layout)


def _place(samples: tuple[Sample, ...], axis: int, axis_name: str | None) -> tuple[int, str]:
    check_alike(samples)
    first = samples[0]
    for sample in samples:
        if sample.shape != first.shape:
            raise ValueError(
                f"only equal shapes can be stacked, but got {list(first.shape)} and "
                f"{list(sample.shape)}"
            )
    axis = axis_of(axis, first.ndim + 1)
    if axis_name is None:
        return axis, ""
    if len(first.layout) != first.ndim:
        raise ValueError("'axis_name' names an axis of a layout, but the first input has none")
    return axis, first.layout[:axis] + axis_name + first.layout[axis:]
