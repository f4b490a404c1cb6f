from __future__ import annotations

import numpy as np
import pytest
import torch

from forebay import types
from forebay.testing import run_operator

from oracle import EXACT, Case, Tolerance

ALL = (
    types.UINT8, types.UINT16, types.UINT32, types.UINT64, types.INT8, types.INT16, types.INT32,
    types.INT64, types.FLOAT16, types.FLOAT, types.FLOAT64, types.BOOL,
)  # fmt: skip
INTEGERS = ALL[:8]
TRICKY = [
    0, -0.0, 0.25, 0.5, 0.4, 1.5, 2.5, -0.4, -0.5, -1.5, 127.5, -128.5, 254.5, 255.5, 300, -129,
    65535.5, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1024, 2**63, 2**64 - 2048,
    2**64, -(2**31), -(2**63), -(2**64), 1e30, -1e30, np.inf, -np.inf, 8388609.5, 8388607.5, 65519,
    65520, 1e-8, np.nextafter(0.5, 0), 2**31 - 0.5, 2**32 - 0.5,
]  # fmt: skip
WHOLE = [
    0, 1, -1, 127, 128, 255, 256, -128, -129, 32767, 32768, -32769, 65504, 65535, 65536, 2**24 + 1,
    2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63,
    -(2**63), 2**64 - 1,
]  # fmt: skip
HALF = Tolerance(relative=2**-10)
"""One unit in the last place of a float16: DALI rounds ties away from zero, IEEE 754 to even."""


def values(dtype: types.DALIDataType) -> np.ndarray:
    if dtype == types.BOOL:
        return np.array([True, False])
    if dtype.is_float:
        with np.errstate(over="ignore"):
            near = np.array([np.nextafter(np.float32(0.5), np.float32(0))], np.float32)
            return np.concatenate([np.array(TRICKY), near]).astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    return np.array([v for v in WHOLE if limits.min <= v <= limits.max], dtype.numpy)


CASES = [
    Case(
        "cast",
        [[values(source)]],
        {"dtype": target},
        tolerance=HALF if target == types.FLOAT16 else EXACT,
    )
    for source in ALL
    for target in ALL
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def test_the_layout_is_kept():
    result = run_operator("cast", [np.zeros((2, 3, 1), np.uint8)], layout="HWC", dtype=types.FLOAT)
    assert result[0].layout == "HWC"


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("source", [np.float16, np.float32, np.float64])
def test_nan_becomes_zero_in_integers(source, reference):
    for target in INTEGERS:
        (got,) = run_operator(
            "cast", [np.array([np.nan, 3], source)], dtype=target, reference=reference
        )
        assert got.tensor.numpy().tolist() == [0, 3]


def test_float16_ties_go_to_even():
    (got,) = run_operator("cast", [np.float32([2049, 2051, 65519, 65520])], dtype=types.FLOAT16)
    assert got.array.tolist() == [2048, 2052, 65504, np.inf]


def test_torch_tensors_and_dtypes_are_taken():
    (got,) = run_operator("cast", [torch.tensor([2.5, -7.0])], dtype=torch.uint8)
    assert got.tensor.tolist() == [3, 0]


def test_the_type_is_needed():
    with pytest.raises(ValueError, match="needs the argument 'dtype'"):
        run_operator("cast", [np.zeros(3)])


@pytest.mark.parametrize("dtype", [types.STRING, types.NO_TYPE])
def test_what_is_no_type_of_elements_is_refused(dtype):
    with pytest.raises(ValueError, match=r"is not a type|not supported"):
        run_operator("cast", [np.zeros(3)], dtype=dtype)
