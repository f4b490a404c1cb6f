"""`types.Constant`: what is a number, what is a node, and what either does in a graph."""

from __future__ import annotations

import operator

import numpy as np
import pytest
import torch

import forebay
from forebay import DataNode, Pipeline, fn, types
from forebay.errors import ArgumentError, PlacementError, UnknownArgumentError
from graphs import check_graph, run_graph

BYTES = [np.arange(1, 7, dtype=np.uint8).reshape(2, 3), np.uint8([[90, 5, 60]])]


def ours(write, *inputs, **options):
    return run_graph(forebay, write, *inputs, **options)


def node():
    with Pipeline(batch_size=1, num_threads=1, device_id=None):
        return fn.external_source(name="x")


DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
DTYPES += ["float16", "float32"]


# ── numbers and nodes ─────────────────────────────────────────────────────────────────────────────

GIVEN = [
    (3, {}),
    (2.5, {"dtype": "FLOAT16"}),
    (True, {}),
    (np.int64(3), {}),
    (np.array(3), {}),
    (torch.tensor(3, dtype=torch.int16), {}),
    (3, {"shape": []}),
    (3, {"shape": (1,)}),
    (3, {"shape": 1}),
    (3, {"shape": [1, 1]}),
    (3, {"shape": 2}),
    (3, {"device": "cpu"}),
    (3, {"layout": ""}),
    (3, {"name": "three"}),
    (3, {"preserve": False}),
    ([3], {}),
    ([3], {"shape": []}),
    (np.ones(1), {}),
    (torch.tensor([1, 2]), {}),
]


@pytest.mark.dali
@pytest.mark.parametrize(("value", "arguments"), GIVEN, ids=str)
def test_a_number_stays_one_and_everything_else_is_a_node_where_it_is_in_dali(value, arguments):
    from nvidia import dali

    found = []
    for library in (forebay, dali):
        given = {**arguments, "dtype": getattr(library.types, arguments.get("dtype", ""), None)}
        with library.Pipeline(batch_size=1, num_threads=1, device_id=None):
            constant = library.types.Constant(value, **given)
        if isinstance(constant, library.types.ScalarConstant):
            found.append((constant.value, int(constant.dtype), list(constant.shape)))
        else:
            found.append(type(constant).__name__)
    assert found[0] == found[1]


@pytest.mark.dali
@pytest.mark.parametrize("dtype", [*DTYPES, "float64"])
@pytest.mark.parametrize("value", [2.7, -2.7, 0.3, 300, -1, True, 2**33])
def test_a_numbers_value_in_another_type_is_dalis(value, dtype):
    from nvidia import dali

    ours, theirs = (getattr(lib.types.Constant(value), dtype)() for lib in (forebay, dali))
    assert type(ours.value) is type(theirs.value)
    assert (ours.value, int(ours.dtype)) == (theirs.value, int(theirs.dtype))
    if isinstance(ours.value, int):  # DALI takes no float for one
        assert bool(ours) == bool(theirs)
        assert int(ours) == int(theirs)


def test_a_number_is_a_number_of_python_too():
    assert float(types.Constant(2.5)) == 2.5
    assert types.Constant(3).uint8() == types.ScalarConstant(3, types.UINT8)
    assert types.Constant(types.FLOAT).value == 9


# ── arithmetic, indexing, shapes ──────────────────────────────────────────────────────────────────

BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt"]


@pytest.mark.dali
@pytest.mark.parametrize("name", [*BINARY, "ge", "and_", "or_", "xor", "lshift", "rshift"])
def test_arithmetic_of_constants_is_dalis(name):
    apply = getattr(operator, name)
    bits = name in ("and_", "or_", "xor", "lshift", "rshift")

    def write(_fn, types, _math, x):
        constant = types.Constant
        whole, narrow = constant([5, 2, 7]), constant([5, 2, 7], dtype=types.UINT8)
        pairs = [
            (whole, 3),
            (3, whole),
            (narrow, constant(3)),
            (narrow, constant(3).uint8()),
            (constant(3).int16(), narrow),
            (narrow, whole),
            (whole, np.array([1, 2, 3])),
            (whole, [1, 2, 3]),
            (whole, constant(3, shape=[2, 1])),
            (constant(3, device="cpu"), 2),
            (constant(np.uint8(3)), narrow),
            (constant(np.int64(3)), whole),
            (constant(torch.tensor([5, 2, 7])), 2),
            (x, narrow),
            (whole, x),
        ]
        real = constant(np.float64([1.5, 2, 3]))
        if not bits:
            pairs += [
                (real, 2),
                (whole, real),
                (real, constant(2).int64()),
                (whole, 2.5),
                (x, real),
            ]
        return tuple(apply(a, b) for a, b in pairs)

    check_graph(write, BYTES, layout="HW")


@pytest.mark.dali
def test_unary_operators_functions_indices_and_shapes_of_constants_are_dalis():
    def write(_fn, types, math):
        x = types.Constant(np.float32([[4, -9, 16], [1, 2, 3]]), layout="HW")
        n = types.Constant([4, -9, 16], dtype=types.INT16)
        return (
            *(-x, abs(x), -n, ~n, math.sqrt(x[1]), math.max(n, 0), math.clamp(n, 0, 9)),
            *(x[0], x[-1, 1:], x[:, ::-1], x[types.Constant(1)], n[n[0] - 3]),
            *(x.shape(), n.shape(dtype=types.INT32), types.Constant(1, shape=[2, 3]).shape()),
            *(x.property("layout"), x.cpu(), x + 1),
        )

    check_graph(write)


@pytest.mark.dali
def test_arguments_that_are_array_constants_are_values_of_every_sample_as_in_dali():
    def write(fn, types, _math, x):
        return (
            fn.slice(x, types.Constant([1]), types.Constant([1]), axes=[1]),
            fn.reductions.sum(x, axes=types.Constant(0), keep_dims=types.Constant(1).bool()),
            fn.zeros(shape=types.Constant([2, 1])),
            fn.resize(
                types.Constant(np.ones((4, 4, 3)), dtype=types.UINT8, layout="HWC"),
                resize_x=types.Constant(3),
                resize_y=types.Constant(2.0, device="cpu"),
            ),
        )

    check_graph(write, BYTES)


def refused(write, library=forebay):
    try:
        run_graph(library, lambda f, t, m, x: write(t.Constant, f, x), BYTES)
    except Exception:
        return True
    return False


@pytest.mark.dali
@pytest.mark.parametrize(
    "write",
    [
        lambda c, fn, x: c(3) + c(4),
        lambda c, fn, x: c(3) + 4,
        lambda c, fn, x: 4 - c(3),
        lambda c, fn, x: c(3) < 4,
        lambda c, fn, x: -c(3),
        lambda c, fn, x: operator.add(c(3), [1, 2]),
        lambda c, fn, x: np.array([1, 2]) + c(3),
        lambda c, fn, x: c(3)[0],
        lambda c, fn, x: c(3).shape(),
        lambda c, fn, x: c(3).gpu(),
        lambda c, fn, x: c([3]).uint8(),
        lambda c, fn, x: c([3], layout="HW"),
        lambda c, fn, x: c([1, 2, 3], shape=[2, 2]),
        lambda c, fn, x: c([True]) + c([True]),
        lambda c, fn, x: x + c(300).uint8(),
        lambda c, fn, x: x + c(-1).uint16(),
        lambda c, fn, x: x + c(2**33),
        lambda c, fn, x: c([1]) & c(2**33).uint32(),
        lambda c, fn, x: c(float("nan")).int32(),
        lambda c, fn, x: c("a"),
        lambda c, fn, x: c(None),
        lambda c, fn, x: c(1j),
        lambda c, fn, x: c(c([3])),
        lambda c, fn, x: c(x),
        lambda c, fn, x: c([1], nonsense=2),
        lambda c, fn, x: c(1, nonsense=2),
        lambda c, fn, x: c([1], device="tpu"),
        lambda c, fn, x: fn.reductions.sum(x, axes=c([0])),
        lambda c, fn, x: fn.transpose(x, perm=c([1, 0])),
        lambda c, fn, x: fn.crop(x, crop=c([1, 1])),
        lambda c, fn, x: x & c(1.5),
    ],
)
def test_what_dali_refuses_of_constants_is_refused(write):
    from nvidia import dali

    assert refused(write, dali), "DALI takes it"
    assert refused(write)


def test_an_integer_out_of_its_types_range_is_refused_in_arithmetic_and_clamped_alone():
    with pytest.raises(ArgumentError, match="300 does not fit uint8"):
        node() + types.Constant(300).uint8()
    (got,) = ours(lambda f, t, m: t.Constant(300).uint8())
    assert got.arrays[0].tolist() == 255


def test_arguments_of_a_constant_are_refused_by_name_and_at_the_users_line():
    with pytest.raises(UnknownArgumentError, match=r"Constant has no argument 'shap'.*'shape'"):
        types.Constant([1], shap=[2])
    with pytest.raises(PlacementError, match="device='tpu'"):
        types.Constant([1], device="tpu")
    assert str(types.Constant([1]).node.origin).startswith(f"{__file__}:")


def test_a_constant_written_outside_belongs_to_every_pipeline():
    outside = types.Constant([1, 2], name="outside")
    assert isinstance(outside, DataNode)
    for _ in range(2):
        (got,) = ours(lambda f, t, m: outside + 1)
        assert got.arrays[0].tolist() == [2, 3]


# ── values, types and shapes ──────────────────────────────────────────────────────────────────────


@pytest.mark.dali
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_constant_of_each_type_is_what_dalis_is(dtype):
    def write(_fn, types, _math):
        cast = operator.methodcaller(dtype)
        numbers = tuple(cast(types.Constant(value)) for value in (0, 3, 300, -1, 2.7, True))
        number = getattr(types, {"float32": "FLOAT"}.get(dtype, dtype.upper()))
        arrays = ([1, 2, 300], [2.5, -1.5, 0.4], np.arange(3), np.float32([1e9, -2.5]))
        return *numbers, *(types.Constant(value, dtype=number) for value in arrays)

    check_graph(write)


@pytest.mark.dali
def test_constants_without_a_type_are_what_dalis_are():
    def write(_fn, types, _math):
        arrays = [np.ones((2, 3), d) for d in (*DTYPES[:-2], "float16", "float32", "float64")]
        listed = [1, 1.5, True, [1, 2], (1.5, 2), [True, False], [True, 2], [], [2.5]]
        scalars = [np.int64(3), np.float32(3), np.array(7), np.uint8(4)]
        return tuple(types.Constant(v) for v in [*arrays, *listed, *scalars])

    check_graph(write)


@pytest.mark.dali
def test_shapes_and_layouts_of_constants_are_what_dalis_are():
    def write(_fn, types, _math):
        return (
            types.Constant(3, shape=[2, 3], layout="HW"),
            types.Constant(2.7, dtype=types.UINT8, shape=[2]),
            types.Constant([5], shape=[2, 2]),
            types.Constant(np.arange(6), shape=[2, 3], layout="AB"),
            types.Constant([1, 2], dtype=types.FLOAT, layout="C"),
            np.arange(12).reshape(3, 4)[::2, ::-1],
        )

    check_graph(write)


@pytest.mark.dali
def test_constants_are_inputs_and_arguments_as_in_dali():
    def write(fn, types, _math, x):
        return (
            fn.copy([1, 2, 3]),
            fn.copy(3),
            fn.stack(x, types.Constant(1).uint8() + x),
            fn.cast(x, dtype=types.Constant(9)),
            fn.slice(x, start=np.array([1]), shape=np.int64(1), axes=np.array([1])),
            fn.cast(2.5, dtype=types.INT32),
        )

    check_graph(write, BYTES)


def test_big_endian_constants_are_read_right():
    (got,) = ours(lambda f, t, m: np.arange(3, dtype=">i2"))
    assert got.arrays[0].tolist() == [0, 1, 2]


def test_a_constant_does_not_follow_its_array():
    array = np.zeros(3, np.uint8)

    def write(_fn, _types, _math):
        kept = _fn.copy(array)
        array[:] = 9
        return kept

    assert ours(write)[0].arrays[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("value", "arguments", "text"),
    [
        ([[1], [2]], {}, "nested lists"),
        ("abc", {}, "takes numbers"),
        (None, {}, "takes numbers"),
        (2**31, {}, "does not fit int32.*dtype=types.INT64"),
        ([1, -(2**31) - 1], {}, "does not fit int32"),
        (np.array([2**40]), {}, "does not fit int32"),
        (np.array([2**40], np.uint64), {}, "does not fit uint32"),
        ([1, 2, 3], {"shape": [2, 2]}, "3 numbers do not fill"),
        ([1, 2, 3], {"layout": "HW"}, "layout 'HW' has not 1 axes"),
        (1, {"layout": "C"}, "layout 'C' has not 0 axes"),
        (1, {"dtype": "uint9"}, "uint9"),
    ],
    ids=str,
)
def test_a_constant_that_cannot_be_is_refused_at_its_use(value, arguments, text):
    with pytest.raises(ArgumentError, match=text):
        node() + types.Constant(value, **arguments)
