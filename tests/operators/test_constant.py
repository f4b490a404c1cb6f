from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import EXACT, Case

NUMBERS = {"idata": [300, -1, 0, 1], "fdata": [300.5, -1.5, 0.4, 0.5]}
DTYPES = [
    *[types.UINT8, types.UINT16, types.UINT32, types.UINT64, types.INT8, types.INT16],
    *[types.INT32, types.INT64, types.FLOAT16, types.FLOAT, types.BOOL],
]
CASES = [
    *(
        Case("constant", [], {name: numbers, "dtype": dtype}, batch_size=2)
        for name, numbers in NUMBERS.items()
        for dtype in DTYPES
    ),
    *(
        Case("constant", [], arguments, batch_size=1)
        for arguments in (
            {"idata": 5},
            {"fdata": 1.5},
            {"idata": [1, 2, 3]},
            {"idata": [1, 2, 3, 4], "shape": [2, 2], "layout": "HW"},
            {"idata": 7, "shape": [2, 2]},
            {"idata": 7, "shape": []},
            {"idata": 7, "shape": 3, "layout": "W"},
            {"idata": []},
            {"idata": [1], "shape": [0, 3]},
            {"idata": 2**63 - 1, "dtype": types.INT64},
        )
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def test_numbers_can_be_float64():
    (got,) = run_operator("constant", fdata=[0.5, 2], dtype=types.FLOAT64, batch_size=1)
    EXACT.check(got.tensor.numpy(), np.array([0.5, 2.0]), "float64")


def test_samples_share_no_memory():
    first, second = run_operator("constant", idata=[1, 2], batch_size=2)
    first.tensor[0] = 9
    assert second.tensor.tolist() == [1, 2]
    assert run_operator("constant", idata=[1, 2], batch_size=1)[0].tensor.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either 'idata' or 'fdata'"),
        ({"idata": 1, "fdata": 2.0}, "either 'idata' or 'fdata'"),
        ({"idata": [1, 2, 3], "shape": [2, 2]}, "3 numbers do not fill"),
        ({"idata": [1], "shape": [-1]}, "0 or more"),
        ({"idata": [1, 2], "layout": "HW"}, "layout 'HW' does not fit"),
        ({"idata": 2**40}, "do not fit int32"),
        ({"idata": 1.5}, "'idata' takes a list of ints"),
        ({"idata": 1, "dtype": types.STRING}, "not a type of tensor elements"),
    ],
)
def test_arguments_that_make_no_constant_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        run_operator("constant", batch_size=1, given=arguments)
