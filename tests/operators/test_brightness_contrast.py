from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.testing import run_operator

from oracle import ARITHMETIC, RESAMPLED, Case

rng = np.random.default_rng(3)
TYPES = {
    np.uint8: types.UINT8,
    np.int16: types.INT16,
    np.int32: types.INT32,
    np.float32: types.FLOAT,
}
ALL = {"brightness": 1.2, "brightness_shift": 0.25, "contrast": 0.8, "contrast_center": 100.0}


def image(dtype, *shape):
    values = rng.random(shape) if dtype == np.float32 else rng.integers(0, 250, shape)
    return values.astype(dtype)


LEVELS = [[np.arange(256, dtype=np.uint8).reshape(16, 16, 1)]]
CASES = [
    *(
        Case(
            "brightness_contrast",
            [[image(source, 5, 7, 3), image(source, 2, 9, 3)]],
            {**ALL, "dtype": target},
            tolerance=RESAMPLED if target == types.UINT8 else ARITHMETIC,
        )
        for source in TYPES
        for target in TYPES.values()
    ),
    *(
        Case("brightness_contrast", LEVELS, {"contrast": c, "brightness": b}, tolerance=RESAMPLED)
        for c in (0.0, 0.5, 1.0, 1.2345, -1.0)
        for b in (0.0, 0.5, 1.5)
    ),
    Case("brightness_contrast", [[image(np.uint8, 2, 3, 4, 5)]]),
    Case("brightness_contrast", [[image(np.float32, 2, 3, 4, 5)]], layout="DHWC"),
    Case(
        "brightness_contrast",
        [[image(np.uint8, 4, 5, 3)] * 2],
        per_sample={
            "brightness": [0.5, 1.5],
            "brightness_shift": [0.0, 0.1],
            "contrast": [0.25, 0.75],
            "contrast_center": [0.5, 77.5],
        },
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


def test_the_contrast_comes_before_the_brightness():
    zeros = [np.zeros((1, 1, 3), np.uint8)]
    [result] = run_operator("brightness_contrast", zeros, contrast=0.5, brightness=1.5)
    assert result.array.ravel().tolist() == [96, 96, 96]


def test_data_that_is_no_image_is_refused():
    with pytest.raises(ValueError, match="2 axes"):
        run_operator("brightness_contrast", [np.zeros((3, 4), np.uint8)])
