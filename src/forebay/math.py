"""Mathematical functions of nodes, element by element. Results of integers are float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forebay.define.call import write_arithmetic
from forebay.define.node import DataNode


def _unary(name: str) -> Callable[[Any], DataNode]:
    def function(value: Any) -> DataNode:
        return write_arithmetic(name, value)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of every element."
    return function


def _binary(name: str) -> Callable[[Any, Any], DataNode]:
    def function(left: Any, right: Any) -> DataNode:
        return write_arithmetic(name, left, right)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of every pair of elements, with broadcasting."
    return function


abs = _unary("abs")
fabs = _unary("fabs")
sqrt = _unary("sqrt")
rsqrt = _unary("rsqrt")
cbrt = _unary("cbrt")
exp = _unary("exp")
log = _unary("log")
log2 = _unary("log2")
log10 = _unary("log10")
sin = _unary("sin")
cos = _unary("cos")
tan = _unary("tan")
asin = _unary("asin")
acos = _unary("acos")
atan = _unary("atan")
sinh = _unary("sinh")
cosh = _unary("cosh")
tanh = _unary("tanh")
asinh = _unary("asinh")
acosh = _unary("acosh")
atanh = _unary("atanh")
floor = _unary("floor")
ceil = _unary("ceil")
pow = _binary("pow")
fpow = _binary("fpow")
atan2 = _binary("atan2")
min = _binary("min")
max = _binary("max")


def clamp(value: Any, low: Any, high: Any) -> DataNode:
    """Every element, or the bound that it exceeds."""
    return write_arithmetic("clamp", value, low, high)
