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
        Case("hue", [[image(np.uint8, 20, 21, 3)]], arguments, tolerance=RESAMPLED)
        for arguments in (
            {},
            {"hue": 40.0},
            {"hue": -300.5},
            {"hue": 40.0, "image_type": types.YCbCr},
        )
    ),
    *(
        Case("hue", [[image(d, 5, 7, 3), image(d, 2, 9, 3)]], {"hue": 75.0}, tolerance=RESAMPLED)
        for d in (np.uint8, np.int16, np.int32)
    ),
    Case(
        "hue",
        [[image(np.float32, 4, 5, 3)]],
        {"hue": 75.0, "dtype": types.FLOAT},
        tolerance=SUMS,
    ),
    Case(
        "hue",
        [[image(np.float16, 4, 5, 3)]],
        {"hue": 75.0, "dtype": types.FLOAT16},
        tolerance=HALF,
    ),
    Case("hue", [[image(np.uint8, 4, 5, 3)]], {"hue": 75.0, "dtype": types.FLOAT}, tolerance=SUMS),
    Case("hue", [[image(np.float32, 4, 5, 3)]], {"hue": 75.0}, tolerance=SUMS),
    Case("hue", [[image(np.uint8, 2, 3, 4, 3)]], {"hue": 75.0}, layout="FHWC", tolerance=RESAMPLED),
    Case(
        "hue",
        [[image(np.uint8, 4, 5, 3)] * 2],
        per_sample={"hue": [10.0, -99.0]},
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


def test_a_full_turn_changes_nothing():
    pixels = image(np.uint8, 9, 9, 3)
    [got] = run_operator("hue", [pixels], hue=360.0)
    np.testing.assert_array_equal(got.array, pixels)


def test_data_that_is_no_colour_image_is_refused():
    with pytest.raises(ValueError, match="3 channels"):
        run_operator("hue", [np.zeros((4, 5, 1), np.uint8)])
    with pytest.raises(ValueError, match="CHW"):
        run_operator("hue", [np.zeros((3, 5, 4), np.uint8)], layout="CHW")
