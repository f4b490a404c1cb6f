from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import ARITHMETIC, Case

rng = np.random.default_rng(1)
INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]


def data(dtype, *shape):
    """Numbers over the range of 8 bits, also negative where the type has them."""
    low = 0 if dtype.startswith("u") else -128
    return rng.uniform(low, low + 255, shape).astype(dtype)


OWN = [
    *[types.UINT8, types.UINT16, types.UINT32, types.UINT64],
    *[types.INT8, types.INT16, types.INT32, types.INT64],
]
DTYPES = [*INTEGERS, "float32"]


def case(*samples, layout="", **arguments):
    inputs = [list(samples)]
    return Case("reductions.mean", inputs, arguments, layout=layout, tolerance=ARITHMETIC)


CASES = [
    *(case(data(d, 4, 5, 3), data(d, 2, 1, 3), layout="HWC") for d in DTYPES),
    *(
        case(data(d, 4, 5, 3), axes=axes, keep_dims=keep, layout="HWC")
        for d in ("uint8", "float32")
        for axes in (0, [1], [0, 1], [-1], [1, -3], [])
        for keep in (False, True)
    ),
    case(data("int16", 4, 5), axis_names="W", layout="HW"),
    case(data("int16", 4, 5), axis_names="WH", keep_dims=True, layout="HW"),
    case(data("int16", 4, 5), axis_names="", layout="HW"),
    case(np.array(3, np.int32), keep_dims=True),
    case(np.zeros((0, 3), np.float32)),
    case(np.zeros((2, 0), np.uint8), axes=1),
    case(data("float32", 300, 200)),
    case(data("uint8", 300, 200)),
    case(np.array([2**62, 2**62, 2**61], np.int64)),
    case(np.array([2**63 + 2**62, 2**63], np.uint64)),
    *(  # few and small: DALI adds up in the result's own type
        case(np.array([[2, 5, 4], [1, 2, 1]], d), dtype=dtype, axes=1)
        for d, dtype in zip(INTEGERS, OWN, strict=True)
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def test_negative_means_are_cut_off_toward_zero():
    (got,) = run_operator("reductions.mean", [np.int8([-1, -2])], dtype=types.INT8)
    assert got.tensor.item() == -1


def test_means_in_the_datas_own_type_do_not_overflow():
    (got,) = run_operator("reductions.mean", [np.full(5, 250, np.uint8)], dtype=types.UINT8)
    assert got.tensor.item() == 250


@pytest.mark.parametrize("dtype", [types.INT16, types.FLOAT64, types.INT64])
def test_a_type_that_the_result_cannot_have_is_refused(dtype):
    with pytest.raises(ArgumentError, match="'dtype' can be FLOAT, INT32 here"):
        run_operator("reductions.mean", [np.ones(2, np.int32)], dtype=dtype)
