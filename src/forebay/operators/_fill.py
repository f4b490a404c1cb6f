"""Data that is made from a shape and a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.types import DALIDataType


def check_shape(given: Mapping[str, Any]) -> None:
    """Refuse a constant shape with negative extents, or one that the layout does not fit."""
    shape, layout = given.get("shape"), given.get("layout")
    if isinstance(shape, tuple):
        _check(shape, layout or "")


def filled(value: int, shape: Sequence[int], dtype: DALIDataType, layout: str) -> Sample:
    """New data full of `value`.

    Raises:
        ArgumentError: an extent is negative, or the layout has not a letter per axis.
    """
    _check(shape, layout)
    return Sample(torch.full(tuple(shape), value, dtype=dtype.torch), layout)


def spread(value: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """`value` broadcast to `shape`; leading axes of extent 1 too many are dropped.

    Raises:
        ValueError: it cannot be broadcast to this shape.
    """
    extents = tuple(value.shape)
    extra = max(len(extents) - len(shape), 0)
    own = extents[extra:]
    wanted = tuple(shape)[len(shape) - len(own) :]
    if any(n != 1 for n in extents[:extra]) or any(
        n not in (1, m) for n, m in zip(own, wanted, strict=True)
    ):
        raise ValueError(
            f"a fill value of shape {list(extents)} cannot be broadcast to the shape {list(shape)}"
        )
    return value.reshape(own).expand(tuple(shape)).contiguous()


def _check(shape: Sequence[int], layout: str) -> None:
    if any(extent < 0 for extent in shape):
        raise ArgumentError(f"'shape' takes extents of 0 or more, but got {list(shape)}")
    check_layout(layout, len(shape))


def check_layout(layout: str, ndim: int) -> None:
    """Refuse a layout that has not a letter for each of `ndim` axes."""
    if layout and len(layout) != ndim:
        raise ArgumentError(f"the layout {layout!r} does not fit data with {ndim} axes")
