"""Ones and zeros."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.operators._rng import Rng
from forebay.operators.random._draw import draw_shape
from forebay.types import BOOL, INT32, UINT8, Between, DALIDataType, Ints, OneOf, PerSample

CoinType = Annotated[DALIDataType, OneOf((UINT8, INT32, BOOL))]


@operator(aliases=("coin_flip",))
def coin_flip(
    like: Sample | None = None,
    *,
    dtype: CoinType = INT32,
    probability: PerSample[Annotated[float, Between(0.0, 1.0)]] = 0.5,
    shape: PerSample[Ints] | None = None,
    rng: Rng,
) -> Sample:
    """Draw 1 with a given probability, else 0.

    Args:
        like: only its shape matters: as many numbers are drawn.
        dtype: of the result, int32 by default, which is what arguments such as `mirror` take.
        probability: of a 1.
        shape: of the result. Without it, and without an input, one number is drawn.

    Returns:
        Shape `shape`, the input's, or none at all (a 0-D tensor); no layout.
    """
    size = draw_shape(like, shape)
    heads = rng.generator().random(size) < probability
    return Sample(np.array(heads, dtype.numpy))
