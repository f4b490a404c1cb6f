"""Arithmetic on torch tensors, also of the unsigned types that torch cannot compute with.

uint16 and uint32 are computed in the next wider signed type, uint64 in int64 with the same bits;
the result is then cut to its type, which wraps around. Functions that must tell a uint64 from an
int64 ask the type, which they get as `dtype`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from forebay.operators._array_arithmetic import ZERO_DIVISOR
from forebay.types import data_type

Tensor = torch.Tensor
DType = np.dtype[Any]

_SUBSTITUTES = {"uint16": torch.int32, "uint32": torch.int64, "uint64": torch.int64}
_LEAST = torch.iinfo(torch.int64).min
_MOST = torch.iinfo(torch.int64).max


def convert(tensor: Tensor, dtype: DType) -> Tensor:
    """`tensor` as values of `dtype`, in the type that torch computes them in."""
    return tensor.to(_SUBSTITUTES.get(dtype.name, data_type(dtype).torch))


def divide_whole(a: Tensor, b: Tensor, dtype: DType) -> Tensor:
    if dtype.kind == "f":
        return a / b
    return _quotient_and_remainder(a, b, dtype)[0]


def remainder(a: Tensor, b: Tensor, dtype: DType) -> Tensor:
    if dtype.kind == "f":
        return torch.fmod(a, b)
    return _quotient_and_remainder(a, b, dtype)[1]


def _quotient_and_remainder(a: Tensor, b: Tensor, dtype: DType) -> tuple[Tensor, Tensor]:
    if not b.all():
        raise ValueError(ZERO_DIVISOR)
    if dtype.name == "uint64":
        # Half the dividend fits int64; doubling back is off by one at most. A divisor over 2⁶³
        # goes into the dividend once or not at all.
        halved = torch.div((a >> 1) & _MOST, b.clamp(min=1), rounding_mode="trunc")
        quotient = torch.where(b < 0, 0, halved << 1)
        quotient = quotient + ~before(a - quotient * b, b, dtype)
        return quotient, a - quotient * b
    if dtype.kind == "u":
        quotient = torch.div(a, b, rounding_mode="trunc")
    else:  # the least integer divided by −1 traps on some processors
        negated = b == -1
        quotient = torch.div(a, torch.where(negated, 1, b), rounding_mode="trunc")
        quotient = torch.where(negated, -a, quotient)
    return quotient, a - quotient * b


def power(a: Tensor, b: Tensor, dtype: DType) -> Tensor:
    if dtype.kind == "i":
        return torch.where(b < 0, 0, torch.pow(a, b.clamp(min=0)))
    if dtype.name == "uint64":
        # Modulo 2⁶⁴ the powers of odd numbers repeat after 2⁶², those of even ones are soon 0.
        b = torch.where(b < 0, (b & (2**62 - 1)) + 2**62, b)
    return torch.pow(a, b)


def before(a: Tensor, b: Tensor, dtype: DType) -> Tensor:
    """Where `a` is less than `b`."""
    return (a ^ _LEAST) < (b ^ _LEAST) if dtype.name == "uint64" else a < b


def smaller(a: Tensor, b: Tensor, dtype: DType) -> Tensor:
    return torch.where(before(a, b, dtype), a, b)


def greater(a: Tensor, b: Tensor, dtype: DType) -> Tensor:
    return torch.where(before(b, a, dtype), a, b)


def clamp(value: Tensor, low: Tensor, high: Tensor, dtype: DType) -> Tensor:
    return smaller(high, greater(low, value, dtype), dtype)


def shift_left(a: Tensor, b: Tensor, dtype: DType) -> Tensor:
    return a.to(torch.int64) << _shift_count(b, dtype)


def shift_right(a: Tensor, b: Tensor, dtype: DType) -> Tensor:
    count = _shift_count(b, dtype)
    if dtype.name == "uint64":
        return torch.where(count == 0, a, ((a >> 1) & _MOST) >> (count - 1).clamp(min=0))
    return a.to(torch.int64) >> count


def _shift_count(b: Tensor, dtype: DType) -> Tensor:
    return b.to(torch.int64) & (63 if dtype.itemsize == 8 else 31)


def absolute(a: Tensor, dtype: DType) -> Tensor:
    return a if dtype.kind == "u" else torch.abs(a)


def cube_root(a: Tensor, dtype: DType) -> Tensor:
    return torch.copysign(torch.abs(a) ** (1 / 3), a)


def compare(
    operands: Sequence[Tensor], dtype: DType, test: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """``test(a, b)``, where integers are compared by value whatever their types."""
    if dtype.kind == "f":
        return test(*(convert(operand, dtype) for operand in operands))
    if all(operand.dtype != torch.uint64 for operand in operands):
        return test(*(operand.to(torch.int64) for operand in operands))
    # A pair is ordered as the numbers −1, 0 and 1: first by which part of the line each number
    # lies on (negative, in int64, above it), then, on the same part, by value.
    (part_a, a), (part_b, b) = (_part_of_line(operand) for operand in operands)
    order = torch.where(
        part_a == part_b, torch.sign((a > b).int() - (a < b).int()), part_a - part_b
    )
    return test(order, torch.zeros_like(order))


def _part_of_line(operand: Tensor) -> tuple[Tensor, Tensor]:
    value = operand.to(torch.int64)
    sign = 1 if operand.dtype == torch.uint64 else -1
    return torch.where(value < 0, sign, 0).int(), value
