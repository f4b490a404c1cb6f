from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case

data = [np.zeros((2, 300), np.uint8), np.zeros((0, 3), np.uint8)]
TYPES = [types.INT32, types.INT64, types.UINT32, types.UINT64, types.FLOAT, types.FLOAT64]
CASES = [
    *(Case("shapes", [data], {"dtype": d}, layout="HW") for d in TYPES),
    Case("shapes", [data], {"type": types.INT32}),
    Case("shapes", [data]),
    Case("shapes", [[np.float32(3)]]),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("dtype", [types.UINT8, types.FLOAT16, types.BOOL])
def test_types_that_hold_no_extents_are_refused(dtype):
    with pytest.raises(ArgumentError, match="'dtype' must be one of"):
        run_operator("shapes", data, dtype=dtype)


def test_the_old_and_the_new_name_of_dtype_exclude_each_other():
    with pytest.raises(ArgumentError, match="old name"):
        run_operator("shapes", data, dtype=types.INT32, type=types.INT32)
