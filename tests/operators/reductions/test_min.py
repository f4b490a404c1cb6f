from __future__ import annotations

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import Case

rng = np.random.default_rng(1)
INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]


def data(dtype, *shape):
    """Numbers over the range of 8 bits, also negative where the type has them."""
    low = 0 if dtype.startswith("u") else -128
    return rng.uniform(low, low + 255, shape).astype(dtype)


DTYPES = [*INTEGERS, "float32"]


def case(*samples, layout="", **arguments):
    return Case("reductions.min", [list(samples)], arguments, layout=layout)


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
    *(case(np.array([np.iinfo(d).max, np.iinfo(d).min], d)) for d in INTEGERS),
    case(np.float32([np.nan, 1, 2])),
    case(np.float32([[1, np.nan, -2], [np.inf, 1, -np.inf]]), axes=1),
    case(np.zeros((0, 3), np.uint8), axes=0),
    case(np.zeros((0, 3), np.float32), axes=1),
    case(np.zeros((0, 3), np.int64), keep_dims=True),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("values", [[np.nan, np.nan], [], [np.inf, np.nan]])
def test_of_no_numbers_it_is_infinity(values):
    (got,) = run_operator("reductions.min", [np.array(values, np.float32)])
    assert got.tensor.item() == np.inf
