"""What all reductions have in common: their axes, layouts and types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast
from forebay.types import (
    BOOL,
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT64,
    UINT64,
    Arguments,
    DALIDataType,
    Ints,
    Layout,
)


@dataclass(frozen=True)
class Reduction(Arguments):
    """Along which axes.

    Attributes:
        axes: the axes to reduce, all by default; negative numbers count from the end. An empty
            list reduces nothing.
        axis_names: the same by letters of the layout, instead of `axes`.
        keep_dims: keep reduced axes, with extent 1.
    """

    axes: Ints | None = None
    axis_names: Layout | None = None
    keep_dims: bool = False

    def resolve(self, data: Sample) -> tuple[int, ...]:
        """The axes to reduce, in ascending order.

        Raises:
            TypeError: the element type cannot be reduced.
            IndexError: there is no such axis.
            ValueError: an axis is given twice, or the layout has no such letter.
        """
        if data.dtype in (FLOAT16, FLOAT64, BOOL):
            raise TypeError(
                f"{data.dtype.name} cannot be reduced; convert it: fn.cast(…, dtype=types.FLOAT)"
            )
        ndim = data.ndim
        if self.axis_names is not None:
            given = [data.layout.find(letter) for letter in self.axis_names]
            if -1 in given:
                raise ValueError(f"the layout {data.layout!r} has not all of {self.axis_names!r}")
        else:
            given = list(range(ndim) if self.axes is None else self.axes)
        for axis in given:
            if not -ndim <= axis < ndim:
                raise IndexError(f"axis {axis} is out of range for data with {ndim} axes")
        axes = sorted(axis % ndim for axis in given)
        if len(set(axes)) < len(axes):
            raise ValueError(f"an axis is given twice: {tuple(given)}")
        return tuple(axes)

    def layout(self, data: Sample, axes: tuple[int, ...]) -> str:
        """The layout of the result."""
        if self.keep_dims:
            return data.layout
        return "".join(letter for i, letter in enumerate(data.layout) if i not in axes)

    def kept(self, data: Sample, axes: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result if reduced axes are kept."""
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(data.shape))

    def shape(self, data: Sample, axes: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result."""
        if self.keep_dims:
            return self.kept(data, axes)
        return tuple(extent for axis, extent in enumerate(data.shape) if axis not in axes)


def check_axes(given: Mapping[str, Any]) -> None:
    """Refuse axes that are given both by number and by letter."""
    if "axes" in given and "axis_names" in given:
        raise ArgumentError("give either 'axes' or 'axis_names'")


def widest(dtype: DALIDataType) -> DALIDataType:
    """The type that sums of this type are taken in."""
    if dtype.is_float:
        return FLOAT
    return INT64 if dtype.is_signed else UINT64


def output_type(
    dtype: DALIDataType | None, default: DALIDataType, other: DALIDataType
) -> DALIDataType:
    """`dtype` if it is one that the reduction can give: float32, `default` or `other`."""
    if dtype is None:
        return default
    allowed = dict.fromkeys((default, other, FLOAT))
    if dtype not in allowed:
        names = ", ".join(choice.name for choice in allowed)
        raise ArgumentError(f"'dtype' can be {names} here, but not {dtype.name}")
    return dtype


def reduced(
    function: Callable[..., torch.Tensor], values: torch.Tensor, axes: tuple[int, ...], keep: bool
) -> torch.Tensor:
    """``function(values, axes, keep)``, except that for torch no axes are all axes."""
    return function(values, axes, keep) if axes else values


def real(tensor: torch.Tensor) -> torch.Tensor:
    """In float64, where the device has it: sums of float32 lose digits."""
    return tensor.to(torch.float32 if tensor.device.type == "mps" else torch.float64)


def converted(result: torch.Tensor, dtype: DALIDataType) -> torch.Tensor:
    """A real result in its type: cut off in integers, as DALI does it."""
    return result.to(torch.float32) if dtype == FLOAT else saturate_cast(result.trunc(), dtype)
