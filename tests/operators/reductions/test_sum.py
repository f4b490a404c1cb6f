from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import ARITHMETIC, EXACT, Case

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
    tolerance = ARITHMETIC if samples[0].dtype == np.float32 else EXACT
    return Case("reductions.sum", [list(samples)], arguments, layout=layout, tolerance=tolerance)


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
    *(case(data(d, 40, 5), dtype=dtype, axes=0) for d, dtype in zip(INTEGERS, OWN, strict=True)),
    *(case(data(d, 4, 5), dtype=types.FLOAT, axes=0) for d in INTEGERS if d[-2:] != "64"),
    case(np.array([2**64 - 1, 3], np.uint64)),
    case(np.array([2**63 - 1, 5], np.int64)),
    case(np.zeros((0, 3), np.float32)),
    case(np.zeros((0, 3), np.uint8), axes=0),
    case(data("float32", 300, 200)),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def test_big_integers_are_summed_exactly_before_they_become_floats():
    (got,) = run_operator("reductions.sum", [np.int32([2**24, 1, 1, 1])], dtype=types.FLOAT)
    assert got.tensor.item() == 2**24 + 4  # 2²⁴ + 3, to the nearest float32
    (got,) = run_operator(
        "reductions.sum", [np.array([2**63, 2**62], np.uint64)], dtype=types.FLOAT
    )
    assert got.tensor.item() == 2.0**63 + 2.0**62


@pytest.mark.parametrize("dtype", [types.INT16, types.FLOAT64, types.UINT64])
def test_a_type_that_sums_cannot_have_is_refused(dtype):
    with pytest.raises(ArgumentError, match="'dtype' can be INT64, INT32, FLOAT here"):
        run_operator("reductions.sum", [np.ones(2, np.int32)], dtype=dtype)
