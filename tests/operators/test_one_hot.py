from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case

INPUTS = [
    *["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"],
    *["float32", "float64"],
]
OUTPUTS = [
    *[types.UINT8, types.UINT16, types.UINT32, types.UINT64, types.INT8, types.INT16],
    *[types.INT32, types.INT64, types.FLOAT, types.FLOAT64],
]


def case(labels, layout="", **arguments):
    batch = labels if isinstance(labels, list) else [labels]
    batch = [np.asarray(v) if isinstance(v, np.ndarray) else np.array(v, np.int32) for v in batch]
    return Case("one_hot", [batch], {"num_classes": 3, **arguments}, layout=layout)


CASES = [
    *(case(np.array([1, 0, 7], d)) for d in INPUTS),
    *(case([[2, 0]], dtype=d, on_value=70000.7, off_value=-1.5) for d in OUTPUTS),
    case([1, 2]),
    case([[1], [2]]),
    case([[1], [2, 0]]),
    case([[1], [2]], axis=-1),
    *(case([[1]], "W", axis=axis) for axis in (0, 1, -1)),
    *(case([[[1, 2], [0, 2]]], axis=axis) for axis in (0, 1, 2, -1)),
    *(case([[[1, 2], [0, 2]]], "HW", axis=axis, axis_name="C") for axis in (0, 1, 2)),
    case([[1, 2]], "W", axis_name="C"),
    case([[1]], "W", axis_name="C"),
    case([[1]], axis_name="C"),
    case([[[1]]]),
    case([1], axis_name="C"),
    case([[-1, 7, 2]]),
    case(np.float32([1.5, 0.9, -0.5, 2.99])),
    case(np.zeros((0, 2), np.int32)),
    case([1], num_classes=0),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def test_what_is_not_a_number_is_no_class():
    (got,) = run_operator("one_hot", [np.float32([np.nan, np.inf, -np.inf])], num_classes=2)
    assert not got.tensor.any()


@pytest.mark.parametrize("dtype", ["bool", "float16"])
def test_class_numbers_of_other_types_are_refused(dtype):
    with pytest.raises(ValueError, match="but got"):
        run_operator("one_hot", [np.ones(2, dtype)], num_classes=2)


@pytest.mark.parametrize("axis", [2, -2])
def test_an_axis_out_of_range_is_refused(axis):
    with pytest.raises(ValueError, match=r"\[-1, 1\]"):
        run_operator("one_hot", [np.ones(2, np.int32)], num_classes=2, axis=axis)


def test_an_axis_name_needs_a_layout():
    with pytest.raises(ValueError, match="the data has none"):
        run_operator("one_hot", [np.ones(2, np.int32)], num_classes=2, axis_name="C")


@pytest.mark.parametrize(
    "arguments",
    [{"num_classes": -1}, {"axis_name": "CD"}, {"dtype": types.FLOAT16}, {"dtype": types.BOOL}],
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(ArgumentError, match=next(iter(arguments))):
        run_operator("one_hot", [np.ones(2, np.int32)], **arguments)
