"""Change the type of the elements."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._convert import saturate_cast
from forebay.operators._operator import operator
from forebay.types import DALIDataType


@operator
def cast(data: Sample, *, dtype: DALIDataType) -> Sample:
    """Convert the elements to another type.

    Floats become integers by rounding half away from zero; what lies outside the type's range
    becomes its nearest limit, and NaN becomes 0. A bool is false for what rounds to 0. To float16
    values are rounded to the nearest, ties to even (IEEE 754).

    Args:
        dtype: the element type of the result.

    Returns:
        The same shape and layout.

    Raises:
        ArgumentError: `dtype` is not a type of elements.
    """
    return data.like(saturate_cast(data.tensor, dtype))


@cast.kernel("cpu")
def _cast_cpu(data: Sample, *, dtype: DALIDataType) -> Any:
    return data.like(saturate_cast(data.array, dtype))
