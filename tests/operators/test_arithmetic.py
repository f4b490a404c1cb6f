from __future__ import annotations

import operator as python
import re

import numpy as np
import pytest

from forebay.batch import Sample
from forebay.testing import run_operator

from oracle import ARITHMETIC, EXACT

INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float32", "float64"]
NUMBERS = [*INTEGERS, *FLOATS]
COMPARISONS = {
    "==": python.eq,
    "!=": python.ne,
    "<": python.lt,
    "<=": python.le,
    ">": python.gt,
    ">=": python.ge,
}
BITS = {
    "&": python.and_,
    "|": python.or_,
    "^": python.xor,
    "<<": python.lshift,
    ">>": python.rshift,
}
NUMERIC = {
    "+": python.add,
    "-": python.sub,
    "*": python.mul,
    "/": python.truediv,
    "//": python.floordiv,
    "%": python.mod,
    "**": python.pow,
}
MATH = ["min", "max", "pow", "fpow", "atan2"]
REALS = [
    *["fabs", "sqrt", "rsqrt", "cbrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "asin"],
    *["acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "floor", "ceil"],
]
DIVISIONS = ("//", "%")


def values(dtype, *, least=True, zero=True):
    """Telling values of a type: its limits, small numbers, and for floats fractions and NaN."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([True, False]) if zero else np.array([True])
    if dtype.kind == "f":
        found = [1, -1, 2, -7, 7.5, -0.5, 100, 1e-3, np.nan, np.inf, 0.0, -0.0]
    else:
        limits = np.iinfo(dtype)
        found = [limits.max, limits.max - 6, 1, 2, 3, 7, 100, 31, 5, 0]
        if dtype.kind == "i":
            found += [limits.min if least else limits.min + 1, -1, -2, -7, -100]
    if not zero:
        found = [v for v in found if v]
    return np.array(found, dtype)


def pairs(types, *, division=False):
    """Every value of every type against every value of every type, by broadcasting.

    In divisions the least integer is left out: over −1 it ends DALI's process.
    """
    left = {t: values(t, least=not division)[:, None] for t in types}
    right = {t: values(t, zero=not division)[None, :] for t in types}
    return [(left[a], right[b]) for a in types for b in types if a != "bool" or b != "bool"]


def dali(function, groups, layouts=("", "", "")):
    """DALI's results of `function` on each group of operands: (array, layout)."""
    from nvidia.dali import Pipeline, fn

    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    nodes = {}

    def node(array, layout):
        if id(array) not in nodes:
            nodes[id(array)] = fn.external_source(lambda: [array], layout=layout or None)
        return nodes[id(array)]

    with pipe:
        outputs = [
            function(*(node(a, layout) for a, layout in zip(group, layouts, strict=False)))
            for group in groups
        ]
        pipe.set_outputs(*outputs)
    return [(np.array(o.at(0)), o.layout()) for o in pipe.run()]


def ours(operation, *operands, layouts=("", "", ""), reference=False):
    columns = [[Sample(a, layout)] for a, layout in zip(operands, layouts, strict=False)]
    (result,) = run_operator("arithmetic", *columns, operation=operation, reference=reference)
    return result


def check(operation, function, groups):
    for group, (expected, _) in zip(groups, dali(function, groups), strict=True):
        tolerance = ARITHMETIC if expected.dtype.kind == "f" else EXACT
        for reference in (False, True):
            got = ours(operation, *group, reference=reference).tensor.numpy()
            types = " and ".join(str(a.dtype) for a in group)
            tolerance.check(got, expected, f"{operation} of {types}, reference={reference}")


def math_function(name):
    from nvidia.dali import math

    return getattr(math, name)


@pytest.mark.dali
@pytest.mark.parametrize("operation", [*NUMERIC, *MATH])
def test_numbers_agree_with_dali(operation):
    function = NUMERIC.get(operation) or math_function(operation)
    groups = pairs(["bool", *NUMBERS], division=operation in DIVISIONS)
    if operation == "%":  # DALI takes the remainder of an integer and a float32 in float64
        groups = [g for g in groups if not mixed(g) or min(a.dtype.itemsize for a in g) < 4]
    check(operation, function, groups)


@pytest.mark.dali
@pytest.mark.parametrize("operation", BITS)
def test_bit_operations_agree_with_dali(operation):
    check(operation, BITS[operation], pairs(["bool", *INTEGERS]))


@pytest.mark.dali
@pytest.mark.parametrize("operation", COMPARISONS)
def test_comparisons_agree_with_dali(operation):
    groups = pairs(["bool", *NUMBERS])
    # For DALI a negative integer is less than any float: not even −1 == −1.0.
    groups = [g for g in groups if not mixed(g) or all(a.dtype.kind != "i" for a in g)]
    check(operation, COMPARISONS[operation], groups)


def mixed(group):
    return len({a.dtype.kind == "f" for a in group}) == 2


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("operation", COMPARISONS)
def test_negative_integers_compare_with_floats_by_value(operation, reference):
    for a, b in ((-1, -1.0), (-1, -7.0), (-7, -1.0), (-1, 0.5)):
        for integer in ("int8", "int64"):
            operands = np.array(a, integer), np.array(b, np.float32)
            got = ours(operation, *operands, reference=reference).tensor
            assert got.item() is COMPARISONS[operation](a, b)
            got = ours(operation, *operands[::-1], reference=reference).tensor
            assert got.item() is COMPARISONS[operation](b, a)


@pytest.mark.dali
def test_products_of_bools_agree_with_dali():
    check("*", python.mul, [(np.array([[True], [False]]), np.array([True, False]))])


@pytest.mark.dali
@pytest.mark.parametrize("operation", ["-", "abs"])
def test_unary_operators_agree_with_dali(operation):
    function = python.neg if operation == "-" else math_function("abs")
    check(operation, function, [(values(a),) for a in NUMBERS])


@pytest.mark.dali
def test_inversion_agrees_with_dali():
    check("~", python.invert, [(values(a),) for a in ["bool", *INTEGERS]])


@pytest.mark.dali
@pytest.mark.parametrize("operation", REALS)
def test_functions_of_real_numbers_agree_with_dali(operation):
    groups = [(values(a),) for a in NUMBERS]
    if operation == "rsqrt":  # DALI gives NaN there, where we give infinity and 0
        groups = [(v[np.isfinite(v) & (v != 0)],) for (v,) in groups]
    if operation in ("sin", "cos", "tan"):  # the last bits of huge arguments are all that counts
        groups = [(v[~(np.abs(v.astype(float)) > 1e6)],) for (v,) in groups]
    check(operation, math_function(operation), groups)


@pytest.mark.dali
@pytest.mark.parametrize(
    "types",
    [
        ("uint8", "int8", "uint16"),
        ("uint8", "uint8", "uint8"),
        ("int8", "uint8", "uint32"),
        ("uint64", "uint64", "uint32"),
        ("uint64", "int8", "float32"),
        ("bool", "bool", "uint8"),
        ("float32", "float32", "float32"),
        ("float64", "int32", "bool"),
    ],
)
def test_clamp_agrees_with_dali(types):
    v, low, high = (values(t) for t in types)
    group = v[:, None, None], low[None, :, None], high[None, None, :]
    check("clamp", math_function("clamp"), [group])


@pytest.mark.dali
@pytest.mark.parametrize(
    ("shapes", "layouts"),
    [
        (((2, 3, 4), (2, 3, 4)), ("HWC", "HWC")),
        (((2, 3, 4), (4,)), ("HWC", "C")),
        (((4,), (2, 3, 4)), ("C", "HWC")),
        (((2, 3, 4), (3, 4)), ("HWC", "")),
        (((3,), (2, 3)), ("H", "")),
        (((2, 3, 4), (5, 2, 3, 4)), ("HWC", "")),
        (((1, 3, 1), (2, 1, 4)), ("HWC", "HWC")),
        (((), (5,)), ("", "W")),
        (((), ()), ("", "")),
        (((1,), ()), ("W", "")),
        (((0, 3), (1, 3)), ("", "")),
        (((2, 1), (3,), (2, 3)), ("HW", "W", "")),
    ],
)
def test_shapes_and_layouts_agree_with_dali(shapes, layouts):
    operands = [np.ones(shape, np.int16) for shape in shapes]
    operation = "+" if len(shapes) == 2 else "clamp"
    function = python.add if len(shapes) == 2 else math_function("clamp")
    ((expected, layout),) = dali(function, [operands], layouts)
    for reference in (False, True):
        got = ours(operation, *operands, layouts=layouts, reference=reference)
        assert got.layout == layout
        EXACT.check(got.tensor.numpy(), expected, str(shapes))


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("layouts", [("HWC", "CHW"), ("HWC", "H"), ("", "W", "C")])
def test_layouts_that_disagree_are_refused(layouts, reference):
    operands = [np.ones((1,) * max(len(layout), 1), np.uint8) for layout in layouts]
    operation = "+" if len(layouts) == 2 else "clamp"
    with pytest.raises(ValueError, match="do not go together"):
        ours(operation, *operands, layouts=layouts, reference=reference)


@pytest.mark.parametrize("reference", [False, True])
def test_shapes_that_cannot_be_broadcast_are_refused(reference):
    with pytest.raises(ValueError, match="shape mismatch"):
        ours("+", np.ones((2, 3)), np.ones((2, 4)), reference=reference)


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operation", DIVISIONS)
def test_an_integer_divided_by_zero_is_refused(operation, dtype, reference):
    operands = np.array([1, 2], dtype), np.array([1, 0], dtype)
    with pytest.raises(ValueError, match="divided by zero"):
        ours(operation, *operands, reference=reference)


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_the_least_integer_over_minus_one_wraps(dtype, reference):
    least, one = np.array([np.iinfo(dtype).min], dtype), np.array([-1], dtype)
    assert ours("//", least, one, reference=reference).tensor.tolist() == [np.iinfo(dtype).min]
    assert ours("%", least, one, reference=reference).tensor.tolist() == [0]


@pytest.mark.parametrize("reference", [False, True])
def test_the_inverse_root_of_zero_is_infinity(reference):
    got = ours("rsqrt", np.array([0.0, np.inf], np.float32), reference=reference)
    assert got.tensor.tolist() == [np.inf, 0]


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    ("operation", "dtype"), [("+", bool), ("sqrt", bool), ("-", bool), ("&", "float32")]
)
def test_types_that_an_operation_does_not_take_are_refused(operation, dtype, reference):
    operands = [np.ones(2, dtype)] * (1 if operation in ("sqrt", "-") else 2)
    with pytest.raises(TypeError, match=re.escape(f"'{operation}' takes")):
        ours(operation, *operands, reference=reference)


@pytest.mark.parametrize("reference", [False, True])
def test_float16_is_refused_and_the_way_out_is_named(reference):
    with pytest.raises(TypeError, match=r"fn\.cast"):
        ours("+", np.ones(2, np.float16), np.ones(2, np.float32), reference=reference)


def test_plus_gives_anything_back_also_float16_and_bools():
    for dtype in (np.float16, bool):
        operand = np.ones(2, dtype)
        assert ours("+", operand, layouts=("W",)).array is operand
        assert ours("+", operand, layouts=("W",), reference=True).layout == "W"


def test_a_wrong_number_of_operands_is_refused():
    with pytest.raises(TypeError, match="does not take 1 operands"):
        ours("*", np.ones(2))


def test_operands_are_never_changed():
    a, b = np.arange(6, dtype=np.int32), np.arange(1, 7, dtype=np.int32)
    for operation in ("//", "%", "**", "min", "<<", "+"):
        ours(operation, a, b)
    assert a.tolist() == [0, 1, 2, 3, 4, 5]
    assert b.tolist() == [1, 2, 3, 4, 5, 6]


def test_the_source_is_that_of_the_first_operand_that_has_one():
    one = Sample(np.array(1, np.int32))
    data = Sample(np.array([1, 2]), "W", source="a.jpg")
    (result,) = run_operator("arithmetic", [one], [data], operation="-")
    assert result.source == "a.jpg"
