from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.testing import run_operator

from oracle import RESAMPLED, Case, Tolerance

rng = np.random.default_rng(5)
SUMS = Tolerance(usual=2e-4, worst=2e-4, relative=1e-5)
HALF = Tolerance(usual=1e-3, worst=1e-3, relative=2**-10)


def image(dtype, *shape):
    real = np.dtype(dtype).kind == "f"
    return (rng.random(shape) if real else rng.integers(0, 256, shape)).astype(dtype)


CASES = [
    *(
        Case("hsv", [[image(np.uint8, 20, 21, 3)]], arguments, tolerance=RESAMPLED)
        for arguments in (
            {},
            {"hue": 40.0, "saturation": 0.5},
            {"value": 0.5},
            {"value": 0.0},
            {"value": 3.0},
        )
    ),
    *(
        Case(
            "hsv",
            [[image(d, 5, 7, 3), image(d, 2, 9, 3)]],
            {"hue": 75.0, "saturation": 1.5, "value": 0.8},
            tolerance=RESAMPLED,
        )
        for d in (np.uint8, np.int16, np.int32)
    ),
    Case(
        "hsv",
        [[image(np.float32, 4, 5, 3)]],
        {"hue": 75.0, "saturation": 1.5, "value": 0.8, "dtype": types.FLOAT},
        tolerance=SUMS,
    ),
    Case(
        "hsv",
        [[image(np.float16, 4, 5, 3)]],
        {"hue": 75.0, "saturation": 1.5, "value": 0.8, "dtype": types.FLOAT16},
        tolerance=HALF,
    ),
    Case(
        "hsv",
        [[image(np.uint8, 4, 5, 3)]],
        {"hue": 75.0, "saturation": 1.5, "value": 0.8, "dtype": types.FLOAT},
        tolerance=SUMS,
    ),
    Case(
        "hsv",
        [[image(np.float32, 4, 5, 3)]],
        {"hue": 75.0, "saturation": 1.5, "value": 0.8},
        tolerance=SUMS,
    ),
    Case(
        "hsv",
        [[image(np.uint8, 2, 3, 4, 3)]],
        {"hue": 75.0, "saturation": 1.5, "value": 0.8},
        layout="FHWC",
        tolerance=RESAMPLED,
    ),
    Case(
        "hsv",
        [[image(np.uint8, 4, 5, 3)] * 2],
        per_sample={"hue": [10.0, -99.0], "saturation": [0.5, 1.5], "value": [1.1, 0.2]},
        tolerance=RESAMPLED,
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def test_the_result_is_uint8_unless_another_type_is_asked_for():
    [got] = run_operator("hsv", [np.full((2, 2, 3), 0.7, np.float32)])
    assert got.dtype == types.UINT8
    assert (got.array == 1).all()


def test_data_that_is_no_colour_image_is_refused():
    with pytest.raises(ValueError, match="3 channels"):
        run_operator("hsv", [np.zeros((4, 5, 1), np.uint8)])
    with pytest.raises(ValueError, match="CHW"):
        run_operator("hsv", [np.zeros((3, 5, 4), np.uint8)], layout="CHW")
