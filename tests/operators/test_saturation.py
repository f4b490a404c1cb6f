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
        Case("saturation", [[image(np.uint8, 20, 21, 3)]], arguments, tolerance=RESAMPLED)
        for arguments in ({}, {"saturation": 0.0}, {"saturation": 2.5}, {"saturation": -0.5})
    ),
    *(
        Case(
            "saturation",
            [[image(d, 5, 7, 3), image(d, 2, 9, 3)]],
            {"saturation": 0.3},
            tolerance=RESAMPLED,
        )
        for d in (np.uint8, np.int16, np.int32)
    ),
    Case(
        "saturation",
        [[image(np.float32, 4, 5, 3)]],
        {"saturation": 0.3, "dtype": types.FLOAT},
        tolerance=SUMS,
    ),
    Case(
        "saturation",
        [[image(np.float16, 4, 5, 3)]],
        {"saturation": 0.3, "dtype": types.FLOAT16},
        tolerance=HALF,
    ),
    Case(
        "saturation",
        [[image(np.uint8, 4, 5, 3)]],
        {"saturation": 0.3, "dtype": types.FLOAT},
        tolerance=SUMS,
    ),
    Case("saturation", [[image(np.float32, 4, 5, 3)]], {"saturation": 0.3}, tolerance=SUMS),
    Case(
        "saturation",
        [[image(np.uint8, 2, 3, 4, 3)]],
        {"saturation": 0.3},
        layout="FHWC",
        tolerance=RESAMPLED,
    ),
    Case(
        "saturation",
        [[image(np.uint8, 4, 5, 3)] * 2],
        per_sample={"saturation": [0.5, 1.5]},
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


def test_gray_stays_gray():
    pixels = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
    [got] = run_operator("saturation", [pixels], saturation=2.0)
    assert np.abs(got.array.astype(int) - pixels).max() <= 1


def test_data_that_is_no_colour_image_is_refused():
    with pytest.raises(ValueError, match="3 channels"):
        run_operator("saturation", [np.zeros((4, 5, 1), np.uint8)])
    with pytest.raises(ValueError, match="CHW"):
        run_operator("saturation", [np.zeros((3, 5, 4), np.uint8)], layout="CHW")
