"""Regions of data: axes by name, what lies out of bounds, and cutting with fill values."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import numpy as np
import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast, truncate_casts
from forebay.types import Arguments, DALIDataType, DALIImageType, Floats, Hints, OneOf

Array = np.ndarray[Any, Any]
D = TypeVar("D", Array, torch.Tensor)
Region = Sequence[tuple[int, int]]
"""(start, size) for every axis."""


@dataclass(frozen=True)
class ImageTypeHint(Hints):
    """Arguments without effect.

    Attributes:
        image_type: no effect, and deprecated. The number of channels is that of the data.
    """

    image_type: DALIImageType | None = None


NO_HINT = ImageTypeHint()


@dataclass(frozen=True)
class OutOfBounds(Arguments):
    """What happens where a window reaches outside the data.

    Attributes:
        out_of_bounds_policy: "error" refuses it, "pad" fills, "trim_to_shape" makes the window
            smaller.
        fill_values: what "pad" fills with: one value, or one for each channel of the output. They
            become elements as C converts: cut off and wrapped around.
    """

    out_of_bounds_policy: Annotated[str, OneOf(("error", "pad", "trim_to_shape"))] = "error"
    fill_values: Floats = (0.0,)

    def apply(self, region: Region, extents: Sequence[int]) -> Region:
        """The region that is really cut from data of these extents.

        Raises:
            ValueError: it reaches outside, and that is an error.
        """
        if self.out_of_bounds_policy == "pad":
            return region
        if self.out_of_bounds_policy == "trim_to_shape":
            return [_overlap(part, extent) for part, extent in zip(region, extents, strict=True)]
        for (start, size), extent in zip(region, extents, strict=True):
            if start < 0 or start + size > extent:
                raise _outside(region, extents)
        return region


def _outside(region: Region, extents: Sequence[int]) -> ValueError:
    return ValueError(
        f"the window from {[start for start, _ in region]} of size {[n for _, n in region]} "
        f"reaches outside the data, which is {list(extents)}; out_of_bounds_policy='pad' or "
        f"'trim_to_shape' would allow that"
    )


def _overlap(part: tuple[int, int], extent: int) -> tuple[int, int]:
    start, size = part
    low, high = min(max(start, 0), extent), min(max(start + size, 0), extent)
    return low, high - low


def inside(region: Region, extents: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Where the region's part that lies inside the data is: in the data, and in the region."""
    source, target = [], []
    for (start, size), extent in zip(region, extents, strict=True):
        stop = start + size
        if start >= 0 and stop <= extent:
            source.append(slice(start, stop))
            target.append(slice(0, size))
        else:
            low = min(max(start, 0), extent)
            high = max(low, min(stop, extent))
            source.append(slice(low, high))
            target.append(slice(low - start, high - start) if high > low else slice(0, 0))
    return tuple(source), tuple(target)


def cut(data: D, region: Region, bounds: OutOfBounds, channel_axis: int, dtype: DALIDataType) -> D:
    """The region of the data as elements of type `dtype`; a view where nothing has to change.

    Raises:
        ValueError: the region is out of bounds against the policy, or there are several fill
            values, but not as many as channels.
    """
    extents = data.shape
    region = bounds.apply(region, extents)
    source, target = inside(region, extents)
    part = saturate_cast(data[source], dtype)
    shape = tuple(size for _, size in region)
    if tuple(part.shape) == shape:
        return part
    fill = fill_array(bounds.fill_values, dtype, shape, channel_axis)
    result = filled(part, shape, fill)
    result[target] = part
    return result


def filled(like: D, shape: Sequence[int], fill: Array) -> D:
    """New data of that shape on the same device and of the same type, full of `fill`."""
    if isinstance(like, torch.Tensor):
        result = like.new_empty(tuple(shape))
        result.copy_(torch.from_numpy(fill).to(like.device).expand(tuple(shape)))
        return result
    array = np.empty(tuple(shape), like.dtype)
    array[...] = fill
    return array


def fill_array(
    values: Sequence[float], dtype: DALIDataType, shape: Sequence[int], channel_axis: int
) -> Array:
    """Fill values as an array that broadcasts to `shape`: one, or one a channel.

    Raises:
        ValueError: there are several, but the data has no channels or another number of them.
    """
    count = len(values)
    if count > 1 and (channel_axis < 0 or shape[channel_axis] != count):
        channels = shape[channel_axis] if channel_axis >= 0 else "no"
        raise ValueError(f"{count} fill values were given, but the data has {channels} channels")
    return _fill_array(tuple(values) or (0.0,), dtype, len(shape), channel_axis)


@functools.lru_cache(maxsize=256)
def _fill_array(values: Floats, dtype: DALIDataType, ndim: int, channel_axis: int) -> Array:
    shape = [1] * ndim
    if len(values) > 1:
        shape[channel_axis] = len(values)
    return truncate_casts(values, dtype).reshape(shape)


def require_axes(data: Sample) -> None:
    """Raise ValueError for a number without axes."""
    if not data.ndim:
        raise ValueError("data with at least one axis is needed, but got a number without axes")


def named_axes(
    data: Sample, axes: Sequence[int] | None, names: str | None, negative: bool = True
) -> list[int] | None:
    """The axes that were given by number or by letter; None if neither were.

    Raises:
        ArgumentError: an axis or a letter that the data does not have, or one twice.
    """
    if names:
        return letter_axes(names, data.layout)
    if axes is None:
        return None
    ndim = data.ndim
    lowest = -ndim if negative else 0
    found = []
    for axis in axes:
        if not lowest <= axis < ndim:
            raise ArgumentError(
                f"axis {axis} is out of range: data with {ndim} axes has {lowest} to {ndim - 1}"
            )
        found.append(axis % ndim)
    if len(set(found)) < len(found):
        raise ArgumentError(f"the axes {list(axes)} name one axis twice")
    return found


def letter_axes(names: str, layout: str) -> list[int]:
    """The places of the letters in the layout. Raises ArgumentError if one is not there."""
    missing = [letter for letter in names if letter not in layout]
    if missing:
        raise ArgumentError(f"the data has no axis {missing[0]!r}; its layout is {layout!r}")
    if len(set(names)) < len(names):
        raise ArgumentError(f"the axis names {names!r} name one axis twice")
    return [layout.index(letter) for letter in names]


def broadcast(values: Sequence[Any], count: int, name: str) -> Sequence[Any]:
    """One value for each of `count` axes; a single value serves all of them."""
    if len(values) == count:
        return values
    if len(values) == 1:
        return tuple(values) * count
    raise ArgumentError(f"'{name}' takes one value or {count}, one an axis, but got {len(values)}")


def one_dtype(
    dtype: DALIDataType | None, output_dtype: DALIDataType | None, default: DALIDataType
) -> DALIDataType:
    """The output's element type: `output_dtype` is an old name of `dtype`."""
    if output_dtype is not None:
        return output_dtype
    return default if dtype is None else dtype
