"""Remove axes of extent 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.operators._region import letter_axes
from forebay.types import Ints, Layout, PerSample


def _check(given: Mapping[str, Any]) -> None:
    if ("axes" in given) == ("axis_names" in given):
        raise ArgumentError("squeeze needs either 'axes' or 'axis_names'")


@operator(check=_check)
def squeeze(
    data: Sample, *, axes: PerSample[Ints] | None = None, axis_names: Layout | None = None
) -> Sample:
    """Remove axes of extent 1, and any axes of data that has no elements before and after.

    Args:
        axes: which, from 0. Numbers beyond the last axis change nothing.
        axis_names: which, by letters of the layout.

    Returns:
        A view of the same elements; the layout loses the letters of the removed axes.

    Raises:
        ArgumentError: an axis is negative or given twice, or its letter is not in the layout.
        ValueError: the number of elements would change.
    """
    return _remove(data, axes, axis_names, data.tensor)


@squeeze.kernel("cpu")
def _squeeze_cpu(data: Sample, *, axes: Ints | None, axis_names: str | None) -> Any:
    return _remove(data, axes, axis_names, data.array)


def _remove(data: Sample, axes: Ints | None, axis_names: str | None, elements: Any) -> Sample:
    gone = letter_axes(axis_names or "", data.layout) if axes is None else axes
    if len(set(gone)) < len(gone):
        raise ArgumentError(f"the axes {list(gone)} name one axis twice")
    if any(axis < 0 for axis in gone):
        raise ArgumentError(
            f"squeeze counts axes from 0, but got {list(gone)}; the last axis of data with "
            f"{data.ndim} axes is {data.ndim - 1}"
        )
    shape = data.shape
    kept = [axis for axis in range(len(shape)) if axis not in gone]
    extents = [shape[axis] for axis in kept]
    if math.prod(extents) != math.prod(shape):
        axis = next(axis for axis in gone if axis < len(shape) and shape[axis] != 1)
        raise ValueError(
            f"only axes of extent 1 can be removed, but axis {axis} of {list(shape)} has "
            f"{shape[axis]}"
        )
    layout = "".join(data.layout[axis] for axis in kept) if data.layout else ""
    return data.like(elements.reshape(extents), layout)
