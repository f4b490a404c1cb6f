"""A value that stands in the graph: what a number, an array or a ``types.Constant`` writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.types import Into, Layout


@operator(hidden=True)
def literal(*, value: object, layout: Layout = "") -> Sample:
    """The same array in every sample.

    Args:
        value: a numpy array, of the element type that the data is to have. It must not change.
        layout: a letter for each axis.

    Returns:
        A copy of it, on the CPU.
    """
    return Sample(torch.from_numpy(np.array(value)), layout)


@literal.kernel("cpu")
def _literal_cpu(*, value: Any, layout: str, into: Into) -> Any:
    copy = into(value.shape, value.dtype)
    copy[...] = value
    return Sample(copy, layout)
