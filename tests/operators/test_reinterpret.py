from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.testing import run_operator

from oracle import Case

X = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def ints(*values):
    return np.array(values, np.int32)


def floats(*values):
    return np.array(values, np.float32)


def case(*samples, shape_input=None, layout_of_input="HWC", per_sample=None, **arguments):
    inputs = [list(samples or (X,))]
    if shape_input is not None:
        inputs.append(shape_input)
    return Case("reinterpret", inputs, arguments, per_sample or {}, layout_of_input)


CASES = [
    case(shape=[6, 4]),
    case(shape=[4, 3, 2]),
    case(shape=24),
    case(shape=[-1]),
    case(shape=[-1, 4]),
    case(shape=[-2, 4]),
    case(shape=[6, 4], layout="AB"),
    case(shape=[6, 4], layout=""),
    case(shape=[2, 3, 4], layout=""),
    case(layout="CHW"),
    case(layout=""),
    case(rel_shape=[1, 1, 1]),
    case(rel_shape=[0.5, 2, 1]),
    case(rel_shape=[0.5, -1]),
    case(rel_shape=[-1]),
    case(rel_shape=[1, 1, 1, -1]),
    case(rel_shape=[0.3, -1]),
    case(rel_shape=[1, -1], src_dims=[2, 0]),
    case(rel_shape=[1, 1, 1], src_dims=[2, 0, 1]),
    case(src_dims=[2, 0, 1]),
    case(src_dims=[1, 0, 2], shape=[2, 3, 4]),
    case(src_dims=[0, 1, 2, -1], layout="HWCX"),
    case(src_dims=[2, -1, 0, 1], layout_of_input=""),
    case(X[:, :, :1].copy(), src_dims=[0, 1], layout_of_input=""),
    *(
        case(np.zeros((10, 6), np.uint8), rel_shape=r, layout_of_input="")
        for r in ([0.25, -1], [0.15, -1], [1.24, -1], [-1, 2.5])
    ),
    case(shape_input=[ints(6, 4)], layout="AB"),
    case(shape_input=[ints(6, 4)], layout_of_input=""),
    case(shape_input=[ints(-1, 4)], layout_of_input=""),
    case(shape_input=[np.array([6, 4])], layout_of_input=""),
    case(shape_input=[np.uint8([6, 4])], layout_of_input=""),
    case(X, X, shape_input=[ints(6, 4), ints(8, 3)], layout_of_input=""),
    case(X, X, per_sample={"shape": [ints(6, -1), ints(3, 8)]}, layout_of_input=""),
    case(X, X, per_sample={"rel_shape": [floats(0.5, -1), floats(1, -1)]}, layout_of_input=""),
    case(np.zeros((0, 3), np.uint8), shape=[-1, 3], layout_of_input=""),
    case(np.array(3, np.float32), shape=[1], layout_of_input=""),
    case(np.ones(1, np.float32), shape=[], layout_of_input=""),
    *(
        case(X.astype(d), shape=[6, 4])
        for d in (np.bool_, np.uint16, np.uint32, np.uint64, np.float16, float)
    ),
    *(
        case(dtype=t)
        for t in (types.INT8, types.BOOL, types.UINT16, types.INT32, types.FLOAT, types.UINT32)
    ),
    case(dtype=types.INT32, shape=[6]),
    case(dtype=types.INT32, shape=[-1]),
    case(dtype=types.INT32, shape=[2, -1]),
    case(dtype=types.INT32, rel_shape=[1, 1, -1]),
    case(dtype=types.INT32, rel_shape=[1, 1, 0.25]),
    case(dtype=types.INT32, layout="ABC"),
    case(dtype=types.INT32, src_dims=[1, 0, 2]),
    case(X.astype(np.float32), dtype=types.UINT8),
    case(X.astype(np.float32), dtype=types.UINT8, shape=[-1, 3]),
    case(X.astype(np.float32), dtype=types.UINT64),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def test_strided_data_is_taken():
    turned = X.transpose(2, 0, 1)
    for reference in (False, True):
        (got,) = run_operator("reinterpret", [turned], shape=[4, 6], reference=reference)
        np.testing.assert_array_equal(got.tensor.numpy(), turned.reshape(4, 6))


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "nor anything else to change"),
        ({"shape": [5, 5]}, r"cannot have the shape \[5, 5\]"),
        ({"shape": [5, -1]}, r"cannot have the shape \[5, -1\]"),
        ({"shape": [0, -1]}, "cannot have the shape"),
        ({"shape": []}, "cannot have the shape"),
        ({"shape": [-1, -1]}, "only one extent may be negative"),
        ({"shape": [6, 4], "layout": "ABC"}, "does not fit the shape"),
        ({"layout": "AB"}, "does not fit the shape"),
        ({"shape": [6, 4], "rel_shape": [1, 1, 1]}, "only once"),
        ({"rel_shape": [1, 1, 1, 1]}, "'src_dims' can add axes"),
        ({"rel_shape": [1, 1], "src_dims": [2, 0, 1]}, "equally long"),
        ({"src_dims": [3, 0]}, "'src_dims' takes the axes 0 to 2"),
        ({"src_dims": [-2, 0, 1, 2]}, "'src_dims' takes the axes 0 to 2"),
        ({"src_dims": [0]}, "cannot have the shape"),
        ({"dtype": types.FLOAT64}, "do not divide"),
        ({"dtype": types.INT32, "src_dims": [2, 0, 1]}, "do not divide"),
        ({"dtype": types.INT32, "shape": [24]}, "cannot have the shape"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(arguments, text, reference):
    with pytest.raises(ValueError, match=text):
        run_operator("reinterpret", [X], layout="HWC", given=arguments, reference=reference)


@pytest.mark.parametrize(
    ("shape", "arguments", "text"),
    [
        (floats(6, 4), {}, "vector of integers"),
        (np.array(24, np.int32), {}, "vector of integers"),
        (ints(6, 4), {"shape": [6, 4]}, "only once"),
        (ints(6, 4), {"rel_shape": [1, 1]}, "only once"),
    ],
)
def test_shape_inputs_that_make_no_sense_are_refused(shape, arguments, text):
    with pytest.raises(ValueError, match=text):
        run_operator("reinterpret", [X], [shape], **arguments)


@pytest.mark.parametrize("reference", [False, True])
def test_a_single_element_without_axes_is_refused_where_its_size_changes(reference):
    with pytest.raises(ValueError, match="without axes"):
        run_operator(
            "reinterpret", [np.array(3, np.float32)], dtype=types.UINT8, reference=reference
        )
