"""What the operators that add noise share: the element types, and how they are computed with."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._convert import saturate_cast
from forebay.types import FLOAT, FLOAT16, FLOAT64, DALIDataType


def check_type(data: Sample) -> None:
    """Raise ValueError for float16, float64 and bool, which no noise is added to."""
    if data.dtype in (FLOAT16, FLOAT64, DALIDataType.BOOL):
        raise ValueError(
            f"data of type float32 or of an integer type is needed, but got {data.dtype.name}"
        )


def real_type(dtype: DALIDataType) -> DALIDataType:
    """The float type that values of `dtype` are computed in: float64 from 32-bit integers on."""
    return FLOAT if dtype == FLOAT or dtype.numpy.itemsize < 4 else FLOAT64


def as_real(data: Sample) -> torch.Tensor:
    """The data as floats."""
    return saturate_cast(data.tensor, real_type(data.dtype))


def on_device(drawn: Any, data: Sample) -> torch.Tensor:
    """Random numbers as a tensor where the data is."""
    return torch.from_numpy(np.asarray(drawn)).to(data.device)
