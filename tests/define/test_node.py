from __future__ import annotations

import operator
import re

import numpy as np
import pytest
import torch

import forebay
from forebay import Pipeline, fn
from forebay.errors import ArgumentError, NodeUseError, OperatorError
from graphs import check_graph, run_graph
from naming import stable

from oracle import ARITHMETIC

rng = np.random.default_rng(3)
BYTES = [rng.integers(1, 100, (2, 3)).astype(np.uint8), rng.integers(1, 100, (1, 3), np.uint8)]
SIGNED = [rng.integers(-100, 100, (2, 3)).astype(np.int16), np.int16([[-7, 3, 9]])]
SHIFTS = [np.full((2, 3), 2, np.uint8), np.full((1, 3), 5, np.uint8)]
REALS = [(rng.random((2, 3)) * 0.9 + 0.05).astype(np.float32), np.float32([[0.1, 0.5, 0.9]])]
PICTURE = [np.arange(5 * 6 * 3, dtype=np.uint8).reshape(5, 6, 3), np.ones((4, 7, 3), np.uint8)]


def ours(write, *inputs, **options):
    return run_graph(forebay, write, *inputs, **options)


def node():
    with Pipeline(batch_size=1, num_threads=1, device_id=None):
        return fn.external_source(name="x")


# ── arithmetic ────────────────────────────────────────────────────────────────────────────────────

NUMBERS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]


def reflected(operation):
    return lambda a, b: operation(b, a)


@pytest.mark.dali
@pytest.mark.parametrize("name", NUMBERS + COMPARISONS)
def test_a_binary_operator_does_what_dalis_does(name):
    apply = getattr(operator, name)

    def write(_fn, types, _math, a, b, f):
        return (
            apply(a, b),
            apply(a, f),
            apply(a, 3),
            apply(a, 2.5),
            apply(3, b),
            apply(2.5, a),
            apply(a, types.Constant(7).uint8()),
            apply(types.Constant(7).int16(), b),
            apply(f, types.Constant(2.0).float32()),
            apply(a, np.array([1, 2, 3])),
            apply(a, [1, 2, 3]),
            apply(a, (1.5, 2.5, 3.5)),
            apply(types.Constant([1, 2, 3]), b),
        )

    check_graph(write, BYTES, SIGNED, REALS, layout="HW", tolerance=ARITHMETIC)


@pytest.mark.dali
@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_a_bitwise_operator_does_what_dalis_does(name):
    apply = getattr(operator, name)

    def write(_fn, types, _math, a, b):
        return apply(a, b), apply(a, 3), apply(5, b), apply(types.Constant(9).uint8(), b)

    check_graph(write, BYTES, SHIFTS)


@pytest.mark.dali
def test_unary_operators_do_what_dalis_do():
    check_graph(lambda f, t, m, a, b: (-a, +a, ~a, -b, +b, abs(b), ~b), BYTES, SIGNED)


@pytest.mark.dali
def test_operators_on_bools_do_what_dalis_do():
    def write(_fn, _types, _math, a, b):
        p, q = a > 50, b > 0
        return p & q, p | q, p ^ q, p == q, p != True, p + 1, p * b, True & p  # noqa: E712 - a node

    check_graph(write, BYTES, SIGNED)


@pytest.mark.dali
def test_an_expression_of_many_operators_does_what_dalis_does():
    def write(_fn, _types, math, a, b, f):
        x = a
        x += 1
        x *= f
        return math.sqrt(abs(b) + x) / (1 + f**2) - (a > b) * 3, math.clamp(x, 3, 10.5)

    check_graph(write, BYTES, SIGNED, REALS, tolerance=ARITHMETIC)


def test_numpy_arrays_scalars_and_tensors_may_stand_on_the_left():
    def write(_fn, _types, _math, a):
        return (
            np.array([1, 2, 3], np.int16) + a,
            np.float32(2) * a,
            np.int64(2) - a,
            torch.tensor([1, 2, 3], dtype=torch.uint8) + a,
            torch.tensor([1, 2, 3]) * a,
            operator.add([1, 2, 3], a),
            np.array([9, 50, 99], np.uint8) < a,
        )

    x = BYTES[0]
    expected = [
        (np.int16([1, 2, 3]) + x).astype(np.int16),
        np.float32(2) * x.astype(np.float32),
        np.int64(2) - x.astype(np.int64),
        np.uint8([1, 2, 3]) + x,
        np.int64([1, 2, 3]) * x,
        np.int32([1, 2, 3]) + x.astype(np.int32),
        np.uint8([9, 50, 99]) < x,
    ]
    for output, array in zip(ours(write, BYTES), expected, strict=True):
        assert output.arrays[0].dtype == array.dtype
        np.testing.assert_array_equal(output.arrays[0], array)


@pytest.mark.parametrize("other", [None, "a", 1j, {}, object()], ids=stable)
def test_arithmetic_with_what_is_no_number_is_refused_by_type(other):
    with pytest.raises(TypeError, match=re.escape(type(other).__name__)):
        node() + other


# ── math ──────────────────────────────────────────────────────────────────────────────────────────

FROM_UNIT = ["sqrt", "rsqrt", "cbrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "asin"]
FROM_UNIT += ["acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh", "floor", "ceil", "fabs"]


@pytest.mark.dali
@pytest.mark.parametrize("name", [*FROM_UNIT, "acosh", "abs"])
def test_a_function_of_math_does_what_dalis_does(name):
    def write(_fn, _types, math, f, b):
        function = getattr(math, name)
        x = f + 1 if name == "acosh" else f
        integers = [function(b)] if name not in ("asin", "acos", "atanh", "log", "sqrt") else []
        return function(x), *integers

    check_graph(write, REALS, BYTES, tolerance=ARITHMETIC)


@pytest.mark.dali
@pytest.mark.parametrize("name", ["pow", "fpow", "atan2", "min", "max"])
def test_a_function_of_two_values_does_what_dalis_does(name):
    def write(_fn, types, math, a, f):
        function = getattr(math, name)
        return function(a, f), function(a, 2), function(1.5, f), function(types.Constant(3), a)

    check_graph(write, BYTES, REALS, tolerance=ARITHMETIC)


@pytest.mark.dali
def test_clamp_does_what_dalis_does():
    def write(_fn, types, math, a, f):
        bounds = types.Constant(20).uint8(), types.Constant(50).uint8()
        return math.clamp(a, 20, 50), math.clamp(a, *bounds), math.clamp(f, 0.2, 1)

    check_graph(write, BYTES, REALS)


@pytest.mark.dali
def test_math_has_all_functions_that_dalis_has():
    from nvidia import dali

    names = {n for n in dir(dali.math) if not n.startswith("_") and callable(getattr(dali.math, n))}
    assert not {name for name in names if not hasattr(forebay.math, name)}


# ── indexing ──────────────────────────────────────────────────────────────────────────────────────

INDICES = [
    np.s_[0],
    np.s_[-1],
    np.s_[1, 2, 0],
    np.s_[1:3],
    np.s_[-2:, :-1],
    np.s_[:, 1],
    np.s_[::2, ::-1],
    np.s_[3:0:-2, 1:4:2, -1],
    np.s_[10:, -20:20],
    np.s_[2:2],
    np.s_[:],
    np.s_[()],
    np.s_[True],
    np.s_[np.int64(1), np.uint8(2) :],
]


@pytest.mark.dali
@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_an_index_does_what_dalis_does(index):
    check_graph(lambda f, t, m, x: x[index], PICTURE, layout="HWC")


@pytest.mark.dali
def test_an_index_may_differ_per_sample_as_in_dali():
    def write(_fn, _types, _math, x, i, j):
        return x[i], x[i:j], x[:, i], x[-1, i:, 0], x[j:i:-1], x[i - 1 : j + 1], x[x.shape()[0] - 1]

    starts = [np.array(1, np.int32), np.array(0, np.int32)]
    stops = [np.array(3, np.uint8), np.array(2, np.uint8)]
    check_graph(write, PICTURE, starts, stops, layout="HWC")


@pytest.mark.parametrize(
    "index",
    [
        np.s_[...],
        np.s_[..., 0],
        np.s_[1, ...],
        np.s_[0, ..., 1:],
        np.s_[1, ..., 2, 0],
        np.s_[None],
        np.s_[:, None],
        np.s_[..., None],
        np.s_[0, None, :, ::-1],
        np.s_[None, ..., None, 0],
    ],
    ids=repr,
)
def test_ellipsis_and_newaxis_do_what_numpys_do(index):
    (got,) = ours(lambda f, t, m, x: x[index], PICTURE)
    for array, picture in zip(got.arrays, PICTURE, strict=True):
        np.testing.assert_array_equal(array, picture[index])


@pytest.mark.parametrize("index", [1.0, "a", [0, 1], slice(0, 1.5), (0, {}), np.float32(1)])
def test_an_index_that_is_no_integer_is_refused_when_it_is_written(index):
    with pytest.raises(NodeUseError, match="an index is made of integers"):
        node()[index]


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (5, "index 5 is out of range for axis 0 of extent 5"),
        (-6, "index -6 is out of range"),
        ((0, 0, 0, 0), "4 subscripts are too many"),
        (slice(None, None, 0), "step of the range over axis 0 is 0"),
    ],
)
def test_an_index_that_does_not_fit_names_the_sample_and_the_line(index, text):
    with pytest.raises(OperatorError, match=f"sample 0.*test_node.py:.*{text}"):
        ours(lambda f, t, m, x: x[index], PICTURE)


def test_several_ellipses_are_refused_when_they_are_written():
    with pytest.raises(ArgumentError, match="single ellipsis"):
        node()[..., 0, ...]


# ── asking and moving ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.dali
def test_shape_and_properties_are_dalis():
    def write(_fn, types, _math, x):
        return (
            x.shape(),
            x.shape(dtype=types.INT32),
            x.shape()[1],
            x.property("layout"),
            x.source_info(),
            x.cpu(),
        )

    check_graph(write, PICTURE, layout="HWC")


def test_a_node_on_the_cpu_is_its_own_cpu():
    x = node()
    assert x.cpu() is x
    assert x.device == "cpu"
    assert x.gpu().device == "gpu"


def test_a_nodes_repr_has_its_name_device_and_line():
    assert re.search(r"name='x', device='cpu', line=.*test_node.py:\d+", repr(node()))


def test_an_unknown_property_is_refused_with_those_that_there_are():
    with pytest.raises(ArgumentError, match="layout"):
        node().property("leyout")


# ── what a node cannot do ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("use", "named"),
    [
        (lambda x: 1 if x > 0 else 2, "`if`"),
        (lambda x: x and 1, "`and`"),
        (lambda x: not x, "`not`"),
        (lambda x: 0 < x < 5, "`if`"),
        (len, "`len`"),
        (float, "`float`"),
        (int, "`int`"),
        (range, "`range`"),
        (lambda x: [1, 2][x], "index of a Python list"),
        (lambda x: 3 in x, "`in`"),
        (lambda x: operator.setitem(x, 0, 1), "assignment"),
        (np.asarray, "numpy functions"),
        (list, "iterated"),
        (lambda x: [*x], "unpacked"),
    ],
)
def test_a_node_used_as_if_it_had_a_value_says_what_it_is_and_where_it_was_written(use, named):
    with pytest.raises(NodeUseError, match=rf"(?s)name='.*test_node.py:\d+.*{named}"):
        use(node())


def test_numpys_functions_on_nodes_are_refused():
    with pytest.raises(TypeError, match="DataNode"):
        np.sqrt(node())


def test_nodes_are_hashable_and_equality_writes_a_node():
    x = node()
    assert {x: 1}[x] == 1
    assert isinstance(x == 1, forebay.DataNode)
