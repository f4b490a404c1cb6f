"""What type and layout the result of arithmetic has.

The rules are DALI's, observed: Python numbers come as int32, float32 and bool operands and count
like tensors, any float beats any integer, and what numpy would turn into float64 for want of a
wider integer (uint64 with a signed type) stays int64.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from forebay.batch import Sample
from forebay.types import DALIDataType, data_type

DType = np.dtype[Any]

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_BOOL, _INT64 = np.dtype(np.bool_), np.dtype(np.int64)


class Family(enum.Enum):
    """Which types an operation takes, and which it computes in."""

    NUMBER = "numbers"  # in the common type; not in bool
    PRODUCT = "numbers and bools"  # in the common type
    REAL = "reals"  # in the common type if it is a float, else in float32
    BITS = "integers and bools"  # in the common type
    COMPARISON = "anything comparable"  # integers exactly, floats in the common type; gives bool


def common_type(types: Sequence[DType]) -> DType:
    """The type that operands of these types are converted to."""
    if any(dtype.kind == "f" for dtype in types):
        return _FLOAT64 if _FLOAT64 in types else _FLOAT32
    found = np.result_type(*types)
    return _INT64 if found.kind == "f" else found


@functools.cache
def computation_type(operation: str, family: Family, types: tuple[DType, ...]) -> DType:
    """The type that `operation` computes in, given its operands' types.

    Raises:
        TypeError: the operation does not take operands of these types.
    """
    names = " and ".join(data_type(dtype).name for dtype in types)
    if np.dtype(np.float16) in types:
        raise TypeError(
            f"'{operation}' does not take FLOAT16, but got {names}; "
            "convert it with fn.cast(…, dtype=types.FLOAT)"
        )
    common = common_type(types)
    if common == _BOOL and family in (Family.NUMBER, Family.REAL):
        raise TypeError(f"'{operation}' takes numbers, but got nothing but BOOL")
    if common.kind == "f" and family == Family.BITS:
        raise TypeError(f"'{operation}' takes integers and bools, but got {names}")
    return _FLOAT32 if family == Family.REAL and common.kind != "f" else common


def result_type(family: Family, computed: DType) -> DALIDataType:
    """The type of an operation's result, given the type it computes in."""
    return DALIDataType.BOOL if family == Family.COMPARISON else data_type(computed)


def common_layout(operands: Sequence[Sample], ndim: int) -> str:
    """The layout of a result with `ndim` axes: the longest of the operands', if it has as many.

    Raises:
        ValueError: two layouts disagree: neither is the end of the other.
    """
    longest = ""
    for operand in operands:
        layout = operand.layout
        if longest.endswith(layout):
            continue
        if not layout.endswith(longest):
            shown = ", ".join(repr(o.layout) for o in operands)
            raise ValueError(
                f"the operands' layouts {shown} do not go together: of any two, one must be "
                "empty or the end of the other"
            )
        longest = layout
    return longest if len(longest) == ndim else ""
