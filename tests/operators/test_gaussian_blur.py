from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import ARITHMETIC, RESAMPLED, Case

rng = np.random.default_rng(5)


def image(dtype, *shape):
    return (rng.random(shape) * 200).astype(dtype)


def case(arguments, *shapes, dtype=np.uint8, layout="", per_sample=None, tolerance=None):
    if tolerance is None:
        exact = np.dtype(dtype).kind == "f" and dtype != np.float16
        tolerance = ARITHMETIC if exact else RESAMPLED
    data = [image(dtype, *shape) for shape in shapes or [(13, 17, 3), (16, 11, 3)]]
    return Case("gaussian_blur", [data], arguments, per_sample or {}, layout, tolerance)


CASES = [
    *(
        case(arguments, dtype=dtype, layout="HWC")
        for dtype in (np.uint8, np.float32)
        for arguments in (
            {"sigma": 1.2},
            {"sigma": 0.3},
            {"sigma": 8.0},
            {"window_size": 1},
            {"window_size": 3},
            {"window_size": 5, "sigma": 2.5},
            {"window_size": [3, 7]},
            {"sigma": [0.5, 2.0]},
            {"sigma": [0.0, 2.0], "window_size": [5, 0]},
            {"sigma": [1.0, 2.0], "window_size": 3},
        )
    ),
    case({"sigma": 1.2, "dtype": types.FLOAT}, layout="HWC", tolerance=ARITHMETIC),
    *(
        case({"sigma": 1.2}, dtype=dtype, layout="HWC")
        for dtype in (np.int8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
    ),
    *(case({"sigma": 1.2}, dtype=dtype, layout="HWC") for dtype in (np.float16, np.float64)),
    *(
        case({"sigma": 0.9}, shape, layout=layout)
        for layout, shape in (
            ("HW", (9, 8)),
            ("", (9, 8)),
            ("", (9,)),
            ("W", (9,)),
            ("", (9, 8, 7)),
            ("CHW", (3, 9, 8)),
            ("FHWC", (2, 9, 8, 3)),
            ("FHW", (2, 9, 8)),
            ("DHWC", (5, 9, 8, 2)),
            ("FCHW", (2, 3, 9, 8)),
            ("CFHW", (2, 3, 9, 8)),
            ("FDHWC", (2, 5, 9, 8, 2)),
            ("XYC", (9, 8, 2)),
            ("XYZ", (9, 8, 7)),
        )
    ),
    *(case({"sigma": 0.9}, (9, 8, c), layout="HWC") for c in (1, 2, 4, 5)),
    case({"sigma": 0.9}, (9, 1, 3), (1, 2, 3), layout="HWC"),
    case({"sigma": [0.5, 1.0, 2.0]}, (5, 9, 8, 2), layout="DHWC"),
    case({}, layout="HWC", per_sample={"sigma": [[0.5, 1.5], [2.0, 0.7]]}),
    case({}, layout="HWC", per_sample={"sigma": [1.5, 0.7], "window_size": [7, 3]}),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


@pytest.mark.parametrize("reference", [False, True])
def test_an_empty_picture_stays_empty(reference):
    data = np.zeros((0, 6, 3), np.uint8)
    result = run_operator("gaussian_blur", [data], sigma=1.0, layout="HWC", reference=reference)
    assert result[0].shape == (0, 6, 3)


def test_the_input_is_not_changed():
    data = image(np.uint8, 9, 8, 3)
    before = data.copy()
    run_operator("gaussian_blur", [data], sigma=2.0, layout="HWC")
    np.testing.assert_array_equal(data, before)


def refused(error, match, data=None, layout="HWC", **arguments):
    data = np.zeros((5, 6, 3), np.uint8) if data is None else data
    with pytest.raises(error, match=match):
        run_operator("gaussian_blur", [data], layout=layout, **arguments)


def test_bad_windows_are_refused():
    for arguments in (
        {},
        {"sigma": -1.0},
        {"sigma": np.nan},
        {"sigma": np.inf},
        {"sigma": [1.0, 0.0]},
        {"window_size": 4},
        {"window_size": -3},
    ):
        refused(ArgumentError, "each axis needs", **arguments)
    refused(ArgumentError, "one number or 2", sigma=[1.0, 2.0, 3.0])


def test_data_that_cannot_be_blurred_is_refused():
    refused(ValueError, "BOOL", np.zeros((5, 6, 3), bool), sigma=1.0)
    refused(ValueError, "one to three axes", np.zeros((2, 3, 4, 5), np.uint8), "", sigma=1.0)
    refused(ValueError, "one to three axes", np.zeros((5, 3, 6), np.uint8), "HCW", sigma=1.0)
    refused(ValueError, "'dtype' can be", sigma=1.0, dtype=types.INT16)
