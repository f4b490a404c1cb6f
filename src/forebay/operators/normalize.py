"""Subtract the mean and divide by the standard deviation, given or computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from forebay.batch import Batch, Sample
from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast
from forebay.operators._operator import operator
from forebay.operators._region import named_axes
from forebay.operators._values import value_at
from forebay.types import FLOAT, FLOAT64, INT64, UINT64, DALIDataType, Ints, Layout, PerSample

Values = PerSample[NDArray[np.float32]]


def _check(given: Mapping[str, Any]) -> None:
    if "axes" in given and "axis_names" in given:
        raise ArgumentError("give either 'axes' or 'axis_names', not both")
    parameters = [given[name] for name in ("mean", "stddev") if name in given]
    constant = [isinstance(parameter, np.ndarray) for parameter in parameters]
    if any(getattr(parameter, "ndim", 0) for parameter in parameters if any(constant)):
        raise ArgumentError("constant 'mean' and 'stddev' are single numbers")
    if len(constant) == 2 and all(constant) and {"axes", "axis_names"} & given.keys():
        raise ArgumentError("with 'mean' and 'stddev' both constant there are no axes to reduce")
    if given.get("batch") and not all(constant):
        raise ArgumentError("with batch=True 'mean' and 'stddev' must be constant or computed")


@operator(check=_check)
def normalize(
    data: Batch,
    *,
    batch: bool = False,
    mean: Values | None = None,
    stddev: Values | None = None,
    axes: Ints | None = None,
    axis_names: Layout | None = None,
    scale: float = 1.0,
    shift: float = 0.0,
    ddof: int = 0,
    epsilon: float = 0.0,
    dtype: DALIDataType = FLOAT,
) -> Batch:
    """Normalise to ``(x − mean) / sqrt(variance + epsilon) · scale + shift``.

    Args:
        batch: compute one mean and one deviation for the whole batch, not for each sample.
        mean: used instead of the computed mean, also in the variance. A number, or a float32
            tensor a sample, of which every extent is 1 or that of the data.
        stddev: used instead of the computed deviation, likewise.
        axes, axis_names: the axes that are averaged over, all by default; with tensors given, those
            along which these have extent 1.
        scale: the factor of the normalised values.
        shift: what is added to them last.
        ddof: the variance is the sum of squares divided by the number of elements less `ddof`,
            even if `mean` is given; it is 0 if nothing is left of that.
        epsilon: added to the variance, so that what hardly varies is not divided by almost 0.
        dtype: the output's element type. Integers are rounded half away from zero and clamped.

    Returns:
        Batch of the same shapes and layout. What does not vary becomes `shift`.

    Raises:
        ArgumentError: an axis is negative, not there or given twice; a parameter's shape does not
            fit the data.
        ValueError: with `batch`, samples differ in the extents of the other axes.
    """
    groups = [data.samples] if batch else [[sample] for sample in data.samples]
    results: list[Sample] = []
    for group in groups:
        given = [_parameter(value_at(p, len(results)), group[0]) for p in (mean, stddev)]
        reduced = _reduced(group, given, axes, axis_names)
        for sample, value, factor in _centred(group, given, reduced, scale, ddof, epsilon):
            result = value * factor.to(value.dtype) + shift
            results.append(sample.like(saturate_cast(result, dtype)))
    return Batch(results)


def _centred(
    group: Sequence[Sample],
    given: Sequence[torch.Tensor | None],
    reduced: list[int],
    scale: float,
    ddof: int,
    epsilon: float,
) -> Iterator[tuple[Sample, torch.Tensor, torch.Tensor]]:
    """Each sample, its values less the mean, and what these are to be multiplied by."""
    values = [_as_float(sample) for sample in group]
    count = sum(math.prod(value.shape[axis] for axis in reduced) for value in values)
    centre, deviation = given
    if centre is None:
        centre = _total(values, reduced) / max(count, 1)
    values = [value - centre.to(value.dtype) for value in values]
    if deviation is not None:
        factor = _inverse(deviation, scale, epsilon)
    else:
        squares = _total([value.square() for value in values], reduced)
        free = count - ddof
        variance = (squares / free if free > 0 else torch.zeros_like(squares)) + epsilon
        factor = torch.where(variance > 0, scale / variance.sqrt(), 0.0)
    for sample, value in zip(group, values, strict=True):
        yield sample, value, factor


def _as_float(sample: Sample) -> torch.Tensor:
    wide = sample.dtype in (FLOAT64, INT64, UINT64)
    return saturate_cast(sample.tensor, FLOAT64 if wide else FLOAT)


def _total(values: Sequence[torch.Tensor], axes: list[int]) -> torch.Tensor:
    """The sum along the axes, which stay with extent 1, of all values."""
    if not axes:
        return torch.stack([value.double() for value in values]).sum(0)
    return torch.stack([v.sum(axes, keepdim=True, dtype=torch.float64) for v in values]).sum(0)


def _parameter(value: Any, sample: Sample) -> torch.Tensor | None:
    if value is None:
        return None
    extents = sample.shape
    if value.ndim and (
        value.ndim != len(extents)
        or any(n not in (1, extent) for n, extent in zip(value.shape, extents, strict=True))
    ):
        raise ArgumentError(
            f"a mean or stddev of shape {list(value.shape)} does not fit data of shape "
            f"{list(extents)}: each extent must be 1 or the data's"
        )
    return torch.tensor(value, dtype=torch.float32, device=sample.device)


def _inverse(stddev: torch.Tensor, scale: float, epsilon: float) -> torch.Tensor:
    """``scale / stddev``, with 0 for zeros in a tensor, but not for a single zero."""
    if epsilon:
        stddev = (stddev.square() + epsilon).sqrt()
    factor = scale / stddev
    return factor if stddev.ndim == 0 else torch.where(stddev == 0, 0.0, factor)


def _reduced(
    group: Sequence[Sample],
    given: Sequence[torch.Tensor | None],
    axes: Ints | None,
    axis_names: str | None,
) -> list[int]:
    """The axes that are averaged over."""
    sample = group[0]
    chosen = named_axes(sample, axes, axis_names, negative=False)
    tensors = [parameter for parameter in given if parameter is not None and parameter.ndim]
    if chosen is None:
        if tensors:
            return [axis for axis, extent in enumerate(tensors[0].shape) if extent == 1]
        return list(range(sample.ndim))
    if not chosen:
        raise ArgumentError("normalize needs at least one axis to average over")
    for tensor in tensors:
        shape = [1 if axis in chosen else extent for axis, extent in enumerate(sample.shape)]
        if list(tensor.shape) != shape:
            raise ArgumentError(
                f"a mean or stddev of shape {list(tensor.shape)} was given where averaging over "
                f"the axes {chosen} gives {shape}"
            )
    for other in group[1:]:
        if any(
            a != b
            for axis, (a, b) in enumerate(zip(sample.shape, other.shape, strict=True))
            if axis not in chosen
        ):
            raise ValueError(
                f"with batch=True all samples need the same extents along the axes that are not "
                f"averaged over, but there are {list(sample.shape)} and {list(other.shape)}"
            )
    return chosen
