"""Cut a region out of a tensor, its bounds given in elements or relative to the extents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.operators._region import (
    NO_HINT,
    D,
    ImageTypeHint,
    OutOfBounds,
    broadcast,
    cut,
    letter_axes,
    named_axes,
    one_dtype,
    require_axes,
)
from forebay.operators._window import float32, round_half_away
from forebay.types import INT32, INT64, Arguments, DALIDataType, Floats, Ints, Layout, PerSample


@dataclass(frozen=True)
class Bounds(Arguments):
    """The bounds of the region, one value an axis or one for all.

    Attributes:
        start, rel_start: where it begins; 0 by default. A negative start is out of bounds.
        end, rel_end: where it ends, by default the data's end.
        shape, rel_shape: its size, instead of its end.
    """

    start: PerSample[Ints] | None = None
    rel_start: PerSample[Floats] | None = None
    end: PerSample[Ints] | None = None
    rel_end: PerSample[Floats] | None = None
    shape: PerSample[Ints] | None = None
    rel_shape: PerSample[Floats] | None = None

    def given(self) -> bool:
        """Whether any of them was."""
        return any(getattr(self, name) is not None for name in (*_STARTS, *_ENDS))

    def windows(self, extents: Sequence[int]) -> list[tuple[int, int]]:
        """(start, size) along axes of these extents.

        The precision is DALI's, which decides where halves go: a product is rounded to float32, but
        not where an end is the sum of two products.

        Raises:
            ValueError: the values are for another number of axes, or a size is negative.
        """
        count = len(extents)

        def per_axis(name: str) -> Sequence[Any]:
            values = getattr(self, name)
            return broadcast(values, count, name) if values else [None] * count

        columns = [extents, *(per_axis(name) for name in (*_STARTS, *_ENDS))]
        parts = []
        for extent, start, rel_start, end, rel_end, shape, rel_shape in zip(*columns, strict=True):
            first = float32(float32(rel_start) * extent) if rel_start is not None else start or 0
            if shape is not None:
                last = first + shape
            elif rel_shape is not None and rel_start is not None:
                last = float32(rel_start) * extent + float32(rel_shape) * extent
            elif rel_shape is not None:
                last = first + float32(float32(rel_shape) * extent)
            elif rel_end is not None:
                last = float32(float32(rel_end) * extent)
            else:
                last = extent if end is None else end
            for size in (shape, rel_shape):
                if size is not None and size < 0:
                    raise ValueError(f"a region's size must not be negative, but got {size}")
            parts.append((round_half_away(first), round_half_away(last) - round_half_away(first)))
        return parts


_STARTS = ("start", "rel_start")
_ENDS = ("end", "rel_end", "shape", "rel_shape")


def _check(given: Mapping[str, Any]) -> None:
    for group in (_STARTS, _ENDS, ("axes", "axis_names")):
        found = [name for name in group if name in given]
        if len(found) > 1:
            raise ArgumentError(f"give only one of {', '.join(map(repr, found))}")


@operator(check=_check)
def slice(
    data: Sample,
    anchor: Sample | None = None,
    size: Sample | None = None,
    *,
    region: Bounds,
    bounds: OutOfBounds,
    axes: PerSample[Ints] | None = None,
    axis_names: Layout | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    dtype: DALIDataType | None = None,
    output_dtype: DALIDataType | None = None,
    hints: ImageTypeHint = NO_HINT,
) -> Sample:
    """Cut a region out of a tensor.

    The bounds are the arguments, or the second and third input: the region's anchor and its size,
    both int32, int64 or float32. Relative bounds are multiplied by the extents; fractions are
    rounded half away from zero, the end apart from the start.

    Args:
        axes: the axes that the bounds are for. By default they are W and H, or, without layout,
            the second and the first. An empty list means all, in order.
        axis_names: the same by letters.
        normalized_anchor, normalized_shape: float inputs are relative to the extents.
        dtype: the output's element type, by default the input's. Values are rounded and clamped.
        output_dtype: an old name of `dtype`.

    Returns:
        The region, in the same layout.

    Raises:
        ValueError: the bounds are missing, given in two ways or for another number of axes, the
            end lies before the start, or the region reaches outside against
            `out_of_bounds_policy`.
    """
    relative = (normalized_anchor, normalized_shape)
    window = _window(data, anchor, size, region, _axes(data, axes, axis_names), relative)
    return _slice(data, data.tensor, window, bounds, one_dtype(dtype, output_dtype, data.dtype))


@slice.kernel("cpu")
def _slice_cpu(
    data: Sample,
    anchor: Sample | None = None,
    size: Sample | None = None,
    *,
    region: Bounds,
    bounds: OutOfBounds,
    axes: Ints | None,
    axis_names: str | None,
    normalized_anchor: bool,
    normalized_shape: bool,
    dtype: DALIDataType | None,
    output_dtype: DALIDataType | None,
) -> Any:
    relative = (normalized_anchor, normalized_shape)
    window = _window(data, anchor, size, region, _axes(data, axes, axis_names), relative)
    return _slice(data, data.array, window, bounds, one_dtype(dtype, output_dtype, data.dtype))


def _slice(
    data: Sample,
    elements: D,
    window: Sequence[tuple[int, int]],
    bounds: OutOfBounds,
    dtype: DALIDataType,
) -> Sample:
    return data.like(cut(elements, window, bounds, data.layout.find("C"), dtype))


def _window(
    data: Sample,
    anchor: Sample | None,
    size: Sample | None,
    region: Bounds,
    axes: list[int],
    relative: tuple[bool, bool],
) -> list[tuple[int, int]]:
    """(start, size) for every axis."""
    extents = [data.shape[axis] for axis in axes]
    if anchor is None and size is None:
        if not region.given():
            raise ArgumentError(
                "slice needs bounds: start, end or shape, or two more inputs: anchor and shape"
            )
        parts = region.windows(extents)
    elif anchor is None or size is None:
        raise ArgumentError("slice takes both inputs, anchor and shape, or neither of them")
    elif region.given():
        raise ArgumentError("give the bounds either as inputs or by arguments, not both")
    else:
        parts = _positional(anchor, size, extents, relative)
    window = [(0, extent) for extent in data.shape]
    for axis, (start, length) in zip(axes, parts, strict=True):
        if length < 0:
            raise ValueError(f"the region must not be of size {length}, from {start} along {axis=}")
        window[axis] = (start, length)
    return window


def _axes(data: Sample, axes: Ints | None, axis_names: str | None) -> list[int]:
    require_axes(data)
    if axis_names and not data.layout:
        # DALI reads the letters of an image without layout as if it had one.
        return letter_axes(axis_names, {3: "HWC", 2: "HW"}.get(data.ndim, ""))
    if axes is None and axis_names is None:
        if data.layout:
            return letter_axes("WH", data.layout)
        axes = (1, 0)
    found = named_axes(data, axes, axis_names)
    return found or list(range(data.ndim))


def _positional(
    anchor: Sample, size: Sample, extents: Sequence[int], relative: tuple[bool, bool]
) -> list[tuple[int, int]]:
    """The bounds that the second and third input give."""
    if anchor.dtype != size.dtype or anchor.dtype not in (INT32, INT64, DALIDataType.FLOAT):
        raise ArgumentError(
            f"anchor and shape must both be INT32, INT64 or FLOAT, but they are "
            f"{anchor.dtype.name} and {size.dtype.name}"
        )
    starts, sizes = (np.ravel(s.tensor.cpu().numpy()).tolist() for s in (anchor, size))
    if not len(starts) == len(sizes) == len(extents):
        raise ValueError(
            f"anchor and shape must have {len(extents)} elements, one an axis, but they have "
            f"{len(starts)} and {len(sizes)}"
        )
    is_float = anchor.dtype == DALIDataType.FLOAT
    parts = []
    for extent, start, length in zip(extents, starts, sizes, strict=True):
        first = start * extent if is_float and relative[0] else start
        last = first + (length * extent if is_float and relative[1] else length)
        parts.append((round_half_away(first), round_half_away(last) - round_half_away(first)))
    return parts
