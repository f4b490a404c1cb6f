"""The shape of data, as data: what ``x.shape()`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.types import (
    FLOAT,
    FLOAT64,
    INT32,
    INT64,
    UINT32,
    UINT64,
    DALIDataType,
    OneOf,
)

ShapeType = Annotated[DALIDataType, OneOf((INT32, INT64, UINT32, UINT64, FLOAT, FLOAT64))]


def _check(given: Mapping[str, Any]) -> None:
    if "type" in given and "dtype" in given:
        raise ArgumentError("'type' is an old name of 'dtype'; give only one of them")


@operator(check=_check)
def shapes(data: Sample, *, dtype: ShapeType = INT64, type: ShapeType | None = None) -> Sample:
    """The extents of the data.

    Args:
        dtype: the element type of the result.
        type: the old name of `dtype`.

    Returns:
        A vector with a number per axis, on the CPU whatever the data's device.
    """
    wanted = dtype if type is None else type
    return data.like(torch.tensor(data.shape, dtype=wanted.torch), "")
