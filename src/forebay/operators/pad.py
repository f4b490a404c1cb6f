"""Make the samples of a batch larger, for instance as large as its largest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forebay.batch import Batch, Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.operators._region import D, broadcast, fill_array, filled, named_axes, require_axes
from forebay.operators._values import value_at
from forebay.types import Ints, Layout, PerSample


def _check(given: Mapping[str, Any]) -> None:
    if "axes" in given and "axis_names" in given:
        raise ArgumentError("give either 'axes' or 'axis_names', not both")


@operator(check=_check)
def pad(
    data: Batch,
    *,
    fill_value: PerSample[float] = 0.0,
    axes: PerSample[Ints] | None = None,
    axis_names: Layout | None = None,
    shape: PerSample[Ints] | None = None,
    align: PerSample[Ints] | None = None,
) -> Batch:
    """Append elements at the end of axes.

    Args:
        fill_value: what is appended. It becomes an element as C converts: cut off and wrapped
            around.
        axes, axis_names: the axes, by number or by letter; all by default.
        shape: the least extents, one value an axis or one for all; what is larger stays. By
            default, and where it is not positive, the largest extent in the batch.
        align: the extents are rounded up to multiples of this.

    Returns:
        Batch of the same element type and layout.

    Raises:
        ArgumentError: an axis is not there or given twice, or `align` is not positive.
        ValueError: the samples have no axes.
    """
    return _pad(data, [s.tensor for s in data.samples], fill_value, axes, axis_names, shape, align)


@pad.kernel("cpu")
def _pad_cpu(
    data: Batch,
    *,
    fill_value: Any,
    axes: Any,
    axis_names: str | None,
    shape: Any,
    align: Any,
) -> Any:
    return _pad(data, [s.array for s in data.samples], fill_value, axes, axis_names, shape, align)


def _pad(
    data: Batch,
    elements: Sequence[D],
    fill_value: Any,
    axes: Any,
    axis_names: str | None,
    shape: Any,
    align: Any,
) -> Batch:
    largest = [max(extents) for extents in zip(*data.shape(), strict=True)]
    padded = []
    for i, (sample, content) in enumerate(zip(data.samples, elements, strict=True)):
        require_axes(sample)
        chosen = named_axes(sample, value_at(axes, i), axis_names) or list(range(sample.ndim))
        wanted = _extents(sample, chosen, largest, value_at(shape, i), value_at(align, i))
        if wanted == sample.shape:
            padded.append(sample)
            continue
        fill = fill_array([value_at(fill_value, i)], sample.dtype, wanted, -1)
        result = filled(content, wanted, fill)
        result[tuple(slice(extent) for extent in sample.shape)] = content
        padded.append(sample.like(result))
    return Batch(padded)


def _extents(
    sample: Sample, axes: list[int], largest: list[int], shape: Ints | None, align: Ints | None
) -> tuple[int, ...]:
    wanted = broadcast(shape, len(axes), "shape") if shape else [0] * len(axes)
    steps = broadcast(align, len(axes), "align") if align else [1] * len(axes)
    result = list(sample.shape)
    for axis, least, step in zip(axes, wanted, steps, strict=True):
        if step <= 0:
            raise ArgumentError(f"'align' must be positive, but got {step}")
        extent = max(result[axis], least if least > 0 else largest[axis])
        result[axis] = -(-extent // step) * step
    return tuple(result)
