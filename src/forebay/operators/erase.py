"""Fill regions of a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.operators._region import fill_array, letter_axes, named_axes, require_axes
from forebay.types import Floats, Ints, PerSample

Slices = list[tuple[slice, ...]]


def _check(given: Mapping[str, Any]) -> None:
    if "normalized" in given and {"normalized_anchor", "normalized_shape"} & given.keys():
        raise ArgumentError(
            "give either 'normalized' or 'normalized_anchor' and 'normalized_shape', not both"
        )


@operator(check=_check)
def erase(
    data: Sample,
    *,
    anchor: PerSample[Floats] = (),
    shape: PerSample[Floats] = (),
    axes: Ints | None = None,
    axis_names: str | None = None,
    fill_value: PerSample[Floats] = (0.0,),
    centered_anchor: bool = False,
    normalized: bool = False,
    normalized_anchor: bool = False,
    normalized_shape: bool = False,
) -> Sample:
    """Fill regions of a tensor. What lies outside the tensor is cut off.

    Args:
        anchor, shape: where the regions begin and how large they are: one value an axis for each
            region, one region after the other. Fractions of begin and end are cut off. Without
            `anchor` they begin at 0.
        axes: the axes that the values are for; the regions cover the others entirely.
        axis_names: the same by letters, and of more weight. By default all axes but the channels.
        fill_value: one value, or one a channel. They become elements as C converts: cut off and
            wrapped around.
        centered_anchor: `anchor` is the middle of the region.
        normalized: `anchor` and `shape` are relative to the extents.
        normalized_anchor, normalized_shape: one of them is.

    Returns:
        The same shape, element type and layout.

    Raises:
        ValueError: `anchor` and `shape` are not equally long or no multiple of the number of axes,
            an axis is not there, or there are several fill values, but not as many as channels.
    """
    relative = (normalized or normalized_anchor, normalized or normalized_shape)
    regions = _regions(
        data, anchor, shape, _axes(data, axes, axis_names), relative, centered_anchor
    )
    fill = fill_array(fill_value, data.dtype, data.shape, data.layout.find("C"))
    result = data.tensor.clone()
    values = torch.from_numpy(fill).to(result.device).expand(result.shape)
    for region in regions:
        result[region] = values[region]
    return data.like(result)


@erase.kernel("cpu")
def _erase_cpu(
    data: Sample,
    *,
    anchor: Floats,
    shape: Floats,
    axes: Ints | None,
    axis_names: str | None,
    fill_value: Floats,
    centered_anchor: bool,
    normalized: bool,
    normalized_anchor: bool,
    normalized_shape: bool,
) -> Any:
    relative = (normalized or normalized_anchor, normalized or normalized_shape)
    regions = _regions(
        data, anchor, shape, _axes(data, axes, axis_names), relative, centered_anchor
    )
    fill = fill_array(fill_value, data.dtype, data.shape, data.layout.find("C"))
    result = data.array.copy()
    values = np.broadcast_to(fill, result.shape)
    for region in regions:
        result[region] = values[region]
    return data.like(result)


def _axes(data: Sample, axes: Ints | None, axis_names: str | None) -> list[int]:
    require_axes(data)
    if axis_names is None and axes is not None:
        return named_axes(data, axes, None) or []
    if axis_names:
        return letter_axes(axis_names, data.layout)
    if not data.layout:
        raise ArgumentError("erase needs 'axes' for data without layout")
    return [axis for axis, letter in enumerate(data.layout) if letter != "C"]


def _regions(
    data: Sample,
    anchor: Floats,
    shape: Floats,
    axes: list[int],
    relative: tuple[bool, bool],
    centered: bool,
) -> Slices:
    if not anchor and not shape:
        return []
    anchor = anchor or (0.0,) * len(shape)
    count = len(axes)
    if len(anchor) != len(shape) or not count or len(shape) % count:
        raise ValueError(
            f"'anchor' and 'shape' need {count} values for each region, but they have "
            f"{len(anchor)} and {len(shape)}"
        )
    # The arithmetic is that of float32, as in DALI: it decides what is cut off.
    starts = np.array(anchor, np.float32).reshape(-1, count)
    sizes = np.array(shape, np.float32).reshape(-1, count)
    extents = np.array([data.shape[axis] for axis in axes])
    if relative[0]:
        starts = starts * extents.astype(np.float32)
    if relative[1]:
        sizes = sizes * extents.astype(np.float32)
    if centered:
        starts = starts - sizes / np.float32(2)
    low = np.clip(np.trunc(starts), 0, extents).astype(int)
    high = np.clip(np.trunc(starts + sizes), 0, extents).astype(int)
    regions = []
    for begins, ends in zip(low.tolist(), high.tolist(), strict=True):
        region = [slice(None)] * data.ndim
        for axis, begin, end in zip(axes, begins, ends, strict=True):
            region[axis] = slice(begin, max(begin, end))
        regions.append(tuple(region))
    return regions
