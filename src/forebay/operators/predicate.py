"""What decides which branch of an `if` a sample takes."""

from __future__ import annotations

import numpy as np

from forebay.batch import Sample
from forebay.operators._operator import operator


@operator(hidden=True)
def predicate(data: Sample, *, negate: bool = False, only_bool: bool = False) -> Sample:
    """Whether a number is not zero, as a bool.

    Args:
        data: one number, without axes.
        negate: whether it is zero instead.
        only_bool: refuse numbers that are no bools, as operands of `and` and `or`.

    Raises:
        ValueError: the sample has axes, or is no bool.
    """
    array = data.array
    if array.ndim:
        raise ValueError(
            f"a condition is one number a sample, without axes, but got shape {array.shape}; "
            f"take an element (x[0]), or reduce it (fn.reductions.max)"
        )
    if only_bool and array.dtype != np.bool_:
        raise ValueError(
            f"the operands of `and` and `or` are bools, but got {array.dtype}; compare it (x != 0)"
        )
    return Sample(np.asarray(bool(array) is not negate))
