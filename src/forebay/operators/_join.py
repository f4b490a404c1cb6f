"""What `cat` and `stack` have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forebay.batch import Sample
from forebay.errors import ArgumentError


def check_axis_name(given: Mapping[str, Any]) -> None:
    """Refuse a constant axis name that is not a single letter."""
    name = given.get("axis_name")
    if name is not None and len(name) != 1:
        raise ArgumentError(f"'axis_name' takes a single letter, but got {name!r}")


def check_alike(samples: Sequence[Sample]) -> None:
    """Refuse inputs of different element types or numbers of axes."""
    first = samples[0]
    for i, sample in enumerate(samples):
        if sample.dtype != first.dtype or sample.ndim != first.ndim:
            raise ValueError(
                f"all inputs must have the same element type and number of axes, but input 0 is "
                f"{first.dtype.name} {list(first.shape)} and input {i} {sample.dtype.name} "
                f"{list(sample.shape)}"
            )


def axis_of(axis: int, ndim: int) -> int:
    """`axis`, counted from the end if negative, in data with `ndim` axes."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of range for {ndim} axes")
    return axis % ndim
