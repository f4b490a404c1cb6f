"""Arithmetic on numpy arrays where no ufunc does what DALI does.

All functions take operands that already have the type to compute in, and write into `out`, which
has the broadcast shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

ZERO_DIVISOR = "an integer was divided by zero"


def divide_whole(a: Array, b: Array, out: Array) -> None:
    """Integers truncate toward zero; floats are simply divided, never floored."""
    if out.dtype.kind == "f":
        np.true_divide(a, b, out=out)
        return
    remainder(a, b, out)
    np.subtract(a, out, out=out)
    np.floor_divide(out, b, out=out)


def remainder(a: Array, b: Array, out: Array) -> None:
    """With the sign of the dividend, as fmod in C."""
    if out.dtype.kind != "f" and not b.all():
        raise ValueError(ZERO_DIVISOR)
    np.fmod(a, b, out=out)


def power(a: Array, b: Array, out: Array) -> None:
    """Of integers with a negative exponent it is 0, whatever the base."""
    if out.dtype.kind != "i":
        np.power(a, b, out=out)
        return
    np.power(a, np.maximum(b, 0), out=out)
    np.copyto(out, 0, where=b < 0)


def smaller(a: Array, b: Array, out: Array) -> None:
    """`a` if it is less than `b`, else `b`, which settles what becomes of NaN and −0."""
    if out.dtype.kind != "f":
        np.minimum(a, b, out=out)
    else:
        np.copyto(out, b)
        np.copyto(out, a, where=a < b)


def greater(a: Array, b: Array, out: Array) -> None:
    """`a` if it is greater than `b`, else `b`."""
    if out.dtype.kind != "f":
        np.maximum(a, b, out=out)
    else:
        np.copyto(out, b)
        np.copyto(out, a, where=a > b)


def clamp(value: Array, low: Array, high: Array, out: Array) -> None:
    """NaN stays NaN, a limit that is NaN is none, and `high` wins over `low`."""
    greater(low, value, out)
    smaller(high, out.copy(), out)


def shift_left(a: Array, b: Array, out: Array) -> None:
    """The count is taken modulo the machine word, 32 or 64 bits; narrower types get the low end."""
    _shift(np.left_shift, a, b, out)


def shift_right(a: Array, b: Array, out: Array) -> None:
    """Signed types keep their sign. The count is taken as by `shift_left`."""
    _shift(np.right_shift, a, b, out)


def _shift(ufunc: np.ufunc, a: Array, b: Array, out: Array) -> None:
    word = np.promote_types(out.dtype, np.int32) if out.itemsize < 4 else out.dtype
    count = np.bitwise_and(b, 8 * word.itemsize - 1, dtype=word, casting="unsafe")
    np.copyto(out, ufunc(a, count, dtype=word, casting="unsafe"), casting="unsafe")


def inverse_root(a: Array, out: Array) -> None:
    """One over the square root."""
    np.sqrt(a, out=out)
    np.reciprocal(out, out=out)
