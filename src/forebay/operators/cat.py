"""Join along an axis that is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._join import axis_of, check_alike, check_axis_name
from forebay.operators._operator import operator
from forebay.types import Into


def _check(given: Mapping[str, Any]) -> None:
    check_axis_name(given)
    if "axis" in given and "axis_name" in given:
        raise ArgumentError("give either 'axis' or 'axis_name'")


@operator(check=_check)
def cat(first: Sample, *others: Sample, axis: int = 0, axis_name: str | None = None) -> Sample:
    """Join data along an axis; the other axes must have equal extents.

    Args:
        axis: negative numbers count from the end.
        axis_name: the axis by its letter in the first input's layout, instead of `axis`.

    Returns:
        The same element type; the first input's layout.

    Raises:
        ValueError: the inputs differ in element type, in number of axes or in extents of other
            axes, or there is no such axis.
    """
    samples = (first, *others)
    axis = _axis(samples, axis, axis_name)
    return first.like(torch.cat([sample.tensor for sample in samples], axis))


@cat.kernel("cpu")
def _cat_cpu(first: Sample, *others: Sample, axis: int, axis_name: str | None, into: Into) -> Any:
    samples = (first, *others)
    axis = _axis(samples, axis, axis_name)
    shape = list(first.shape)
    shape[axis] = sum(sample.shape[axis] for sample in samples)
    joined = into(shape, first.array.dtype)
    np.concatenate([sample.array for sample in samples], axis, out=joined)
    return first.like(joined)


def _axis(samples: tuple[Sample, ...], axis: int, axis_name: str | None) -> int:
    check_alike(samples)
    first = samples[0]
    if axis_name is not None:
        axis = first.layout.find(axis_name)
        if axis < 0:
            raise ValueError(f"the layout {first.layout!r} of the first input has no {axis_name!r}")
    axis = axis_of(axis, first.ndim)
    rest = first.shape[:axis], first.shape[axis + 1 :]
    for sample in samples:
        if (sample.shape[:axis], sample.shape[axis + 1 :]) != rest:
            raise ValueError(
                f"the shapes {list(first.shape)} and {list(sample.shape)} differ along more than "
                f"axis {axis}"
            )
    return axis
