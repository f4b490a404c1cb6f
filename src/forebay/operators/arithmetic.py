"""Operators and functions on numbers: what ``a + b``, ``a < b`` or ``math.sqrt(a)`` write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators import _array_arithmetic as arrays
from forebay.operators import _tensor_arithmetic as tensors
from forebay.operators._operator import operator
from forebay.operators._promotion import Family, common_layout, computation_type, result_type
from forebay.types import Into, OneOf

TensorFunction = Callable[..., torch.Tensor]
ArrayFunction = Callable[..., Any]


@dataclass(frozen=True)
class Operation:
    """One operation: the types it takes, and how it is done on tensors and on arrays.

    `tensor` takes converted tensors and the type to compute in; `array` is a ufunc, or takes
    converted arrays and `out`.
    """

    family: Family
    tensor: TensorFunction
    array: ArrayFunction


def _plain(function: TensorFunction) -> TensorFunction:
    """A torch function that needs not be told the type."""
    return lambda *operands_and_type: function(*operands_and_type[:-1])


def _compared(test: TensorFunction) -> TensorFunction:
    return lambda a, b, dtype: tensors.compare((a, b), dtype, test)


_UNARY_REALS: dict[str, tuple[TensorFunction, ArrayFunction]] = {
    "fabs": (torch.abs, np.fabs),
    "sqrt": (torch.sqrt, np.sqrt),
    "rsqrt": (torch.rsqrt, arrays.inverse_root),
    "exp": (torch.exp, np.exp),
    "log": (torch.log, np.log),
    "log2": (torch.log2, np.log2),
    "log10": (torch.log10, np.log10),
    "sin": (torch.sin, np.sin),
    "cos": (torch.cos, np.cos),
    "tan": (torch.tan, np.tan),
    "asin": (torch.asin, np.arcsin),
    "acos": (torch.acos, np.arccos),
    "atan": (torch.atan, np.arctan),
    "sinh": (torch.sinh, np.sinh),
    "cosh": (torch.cosh, np.cosh),
    "tanh": (torch.tanh, np.tanh),
    "asinh": (torch.asinh, np.arcsinh),
    "acosh": (torch.acosh, np.arccosh),
    "atanh": (torch.atanh, np.arctanh),
    "floor": (torch.floor, np.floor),
    "ceil": (torch.ceil, np.ceil),
}
_COMPARISONS: dict[str, tuple[TensorFunction, ArrayFunction]] = {
    "==": (torch.eq, np.equal),
    "!=": (torch.ne, np.not_equal),
    "<": (torch.lt, np.less),
    "<=": (torch.le, np.less_equal),
    ">": (torch.gt, np.greater),
    ">=": (torch.ge, np.greater_equal),
}
_POWER = Operation(Family.NUMBER, tensors.power, arrays.power)
OPERATIONS: dict[tuple[str, int], Operation] = {
    ("-", 1): Operation(Family.NUMBER, _plain(torch.neg), np.negative),
    ("~", 1): Operation(Family.BITS, _plain(torch.bitwise_not), np.invert),
    ("abs", 1): Operation(Family.NUMBER, tensors.absolute, np.absolute),
    ("cbrt", 1): Operation(Family.REAL, tensors.cube_root, np.cbrt),
    **{(n, 1): Operation(Family.REAL, _plain(t), a) for n, (t, a) in _UNARY_REALS.items()},
    ("+", 2): Operation(Family.NUMBER, _plain(torch.add), np.add),
    ("-", 2): Operation(Family.NUMBER, _plain(torch.sub), np.subtract),
    ("*", 2): Operation(Family.PRODUCT, _plain(torch.mul), np.multiply),
    ("/", 2): Operation(Family.REAL, _plain(torch.div), np.true_divide),
    ("//", 2): Operation(Family.NUMBER, tensors.divide_whole, arrays.divide_whole),
    ("%", 2): Operation(Family.NUMBER, tensors.remainder, arrays.remainder),
    ("**", 2): _POWER,
    ("pow", 2): _POWER,
    ("fpow", 2): Operation(Family.REAL, _plain(torch.pow), np.power),
    ("atan2", 2): Operation(Family.REAL, _plain(torch.atan2), np.arctan2),
    ("min", 2): Operation(Family.NUMBER, tensors.smaller, arrays.smaller),
    ("max", 2): Operation(Family.NUMBER, tensors.greater, arrays.greater),
    ("&", 2): Operation(Family.BITS, _plain(torch.bitwise_and), np.bitwise_and),
    ("|", 2): Operation(Family.BITS, _plain(torch.bitwise_or), np.bitwise_or),
    ("^", 2): Operation(Family.BITS, _plain(torch.bitwise_xor), np.bitwise_xor),
    ("<<", 2): Operation(Family.BITS, tensors.shift_left, arrays.shift_left),
    (">>", 2): Operation(Family.BITS, tensors.shift_right, arrays.shift_right),
    **{(n, 2): Operation(Family.COMPARISON, _compared(t), a) for n, (t, a) in _COMPARISONS.items()},
    ("clamp", 3): Operation(Family.NUMBER, tensors.clamp, arrays.clamp),
}
"""By name and number of operands."""

NAMES = tuple(dict.fromkeys(name for name, _ in OPERATIONS))


@operator(hidden=True)
def arithmetic(*operands: Sample, operation: Annotated[str, OneOf(NAMES)]) -> Sample:
    """An arithmetic operation, element by element.

    Operands are broadcast as by numpy. They are converted to a common type first, and the result
    has it: any float wins (float32 unless one is float64), else the narrowest integer that holds
    both, int64 for uint64 with a signed type. Integers wrap around.

    Args:
        operation: ``+ -`` with one or two operands, ``~`` with one, ``* / // % ** & | ^ << >>``
            and ``== != < <= > >=`` with two, or a function of `forebay.math`: ``abs``, ``sqrt``,
            ``min`` …, and ``clamp`` with value, low and high.

    Returns:
        The common type; bool from comparisons, which compare integers by value whatever their
        types; a float from ``/`` and from functions of real numbers. The layout is the longest of
        the operands', of any two of which one must be empty or the end of the other.
        ``//`` truncates integers toward zero and does not round floats; ``%`` has the sign of the
        dividend; an integer to a negative power is 0.

    Raises:
        ValueError: the shapes or layouts do not go together, or an integer is divided by zero.
        TypeError: an operand's type is one that the operation does not take: float16 never; only
            bools where numbers are needed; floats as bits.
    """
    if operation == "+" and len(operands) == 1:
        return operands[0]
    rule = _find(operation, len(operands))
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    layout = common_layout(operands, len(shape))
    types = tuple(operand.dtype.numpy for operand in operands)
    dtype = computation_type(operation, rule.family, types)
    devices = [operand.device for operand in operands]
    device = next((found for found in devices if found.type != "cpu"), devices[0])
    inputs = [operand.tensor.to(device) for operand in operands]  # constants come from the CPU
    if rule.family is not Family.COMPARISON:
        inputs = [tensors.convert(tensor, dtype) for tensor in inputs]
    result = rule.tensor(*inputs, dtype)
    result = result.to(result_type(rule.family, dtype).torch)
    return Sample(result, layout, _source(operands))


@arithmetic.kernel("cpu")
def _arithmetic_cpu(*operands: Sample, operation: str, into: Into) -> Any:
    if operation == "+" and len(operands) == 1:
        return operands[0]
    rule = _find(operation, len(operands))
    inputs = [operand.array for operand in operands]
    shape = np.broadcast(*inputs).shape
    layout = common_layout(operands, len(shape))
    family, function = rule.family, rule.array
    dtype = computation_type(operation, family, tuple(array.dtype for array in inputs))
    result = into(shape, np.bool_ if family is Family.COMPARISON else dtype)
    with np.errstate(all="ignore"):
        if family is Family.COMPARISON:
            if dtype.kind == "f":
                inputs = [array.astype(dtype, copy=False) for array in inputs]
            function(*inputs, out=result)
        elif isinstance(function, np.ufunc):
            function(*inputs, out=result, dtype=dtype, casting="unsafe")
        else:
            function(*(array.astype(dtype, copy=False) for array in inputs), out=result)
    return Sample(result, layout, _source(operands))


def _find(operation: str, operands: int) -> Operation:
    try:
        return OPERATIONS[operation, operands]
    except KeyError:
        raise TypeError(f"'{operation}' does not take {operands} operands") from None


def _source(operands: Sequence[Sample]) -> str | None:
    """Where the data came from; constants come from nowhere."""
    return next((operand.source for operand in operands if operand.source is not None), None)
