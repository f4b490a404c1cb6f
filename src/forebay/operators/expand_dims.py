"""Insert axes of extent 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.types import Ints, Layout


def _check(given: Mapping[str, Any]) -> None:
    axes, names = given.get("axes", ()), given.get("new_axis_names", "")
    if any(axis < 0 for axis in axes):
        raise ArgumentError(f"'axes' must not be negative, but got {list(axes)}")
    if len(set(axes)) < len(axes):
        raise ArgumentError(f"the axes {list(axes)} name one axis twice")
    if names and len(names) != len(axes):
        raise ArgumentError(
            f"'new_axis_names' needs a letter for each of {len(axes)} new axes, but got {names!r}"
        )


@operator(check=_check)
def expand_dims(data: Sample, *, axes: Ints, new_axis_names: Layout = "") -> Sample:
    """Insert axes of extent 1.

    Args:
        axes: where the new axes are in the output.
        new_axis_names: a letter for each of them, for the layout.

    Returns:
        A view of the same elements. The layout is lost unless `new_axis_names` is given.

    Raises:
        ArgumentError: an axis is negative, given twice or beyond the output's number of axes; the
            letters are not as many as the axes, or the data has no layout to put them in.
    """
    return _insert(data, axes, new_axis_names, data.tensor)


@expand_dims.kernel("cpu")
def _expand_dims_cpu(data: Sample, *, axes: Ints, new_axis_names: str) -> Any:
    return _insert(data, axes, new_axis_names, data.array)


def _insert(data: Sample, axes: Ints, names: str, elements: Any) -> Sample:
    if not axes:
        return data
    if names and data.ndim and not data.layout:
        raise ArgumentError("'new_axis_names' needs data with a layout")
    shape, layout = list(data.shape), list(data.layout)
    for axis, letter in sorted(zip(axes, names or " " * len(axes), strict=True)):
        if axis > len(shape):
            raise ArgumentError(
                f"an axis cannot be inserted at {axis}: there are only {len(shape)} before it"
            )
        shape.insert(axis, 1)
        layout.insert(axis, letter)
    return data.like(elements.reshape(shape), "".join(layout) if names else "")
