"""Numbers of a beta distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.operators._rng import Rng
from forebay.operators.random._draw import as_elements, draw_shape
from forebay.types import FLOAT, FLOAT64, DALIDataType, Ints, OneOf, PerSample

FloatType = Annotated[DALIDataType, OneOf((FLOAT, FLOAT64))]


def _check(given: Mapping[str, Any]) -> None:
    for name in ("alpha", "beta"):
        value = given.get(name)
        if isinstance(value, float) and not (value > 0 and math.isfinite(value)):
            raise ArgumentError(f"'{name}' must be positive and finite, but got {value:g}")


@operator(devices=("cpu",), check=_check)
def beta(
    like: Sample | None = None,
    *,
    alpha: PerSample[float] = 1.0,
    beta: PerSample[float] = 1.0,
    dtype: FloatType = FLOAT,
    shape: PerSample[Ints] | None = None,
    rng: Rng,
) -> Sample:
    """Draw numbers between 0 and 1 from a beta distribution, as Mixup and CutMix do.

    Args:
        like: only its shape matters: as many numbers are drawn.
        alpha, beta: the shape parameters, both positive. With 1 and 1 all numbers are equally
            likely.
        dtype: of the result, float32 by default.
        shape: of the result. Without it, and without an input, one number is drawn.

    Returns:
        Shape `shape`, the input's, or none at all (a 0-D tensor); no layout.

    Raises:
        ArgumentError: `alpha` or `beta` is not positive and finite.
    """
    _check({"alpha": alpha, "beta": beta})
    drawn = rng.generator().beta(alpha, beta, draw_shape(like, shape))
    return Sample(as_elements(drawn, dtype))
