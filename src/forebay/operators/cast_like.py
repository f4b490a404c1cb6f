"""Change the type of the elements to that of another input."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.operators._convert import saturate_cast
from forebay.operators._operator import operator


@operator
def cast_like(data: Sample, dtype_like: Sample) -> Sample:
    """Convert the elements of the first input to the element type of the second, as `cast` does.

    Returns:
        The first input's shape and layout.
    """
    return data.like(saturate_cast(data.tensor, dtype_like.dtype))


@cast_like.kernel("cpu")
def _cast_like_cpu(data: Sample, dtype_like: Sample) -> Any:
    return data.like(saturate_cast(data.array, dtype_like.dtype))
