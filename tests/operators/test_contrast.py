from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.testing import run_operator

from oracle import ARITHMETIC, RESAMPLED, Case

rng = np.random.default_rng(2)
TYPES = {
    np.uint8: types.UINT8,
    np.int16: types.INT16,
    np.int32: types.INT32,
    np.float32: types.FLOAT,
}


def image(dtype, *shape):
    values = rng.random(shape) if dtype == np.float32 else rng.integers(0, 250, shape)
    return values.astype(dtype)


LEVELS = [[np.arange(256, dtype=np.uint8).reshape(16, 16, 1)]]
CASES = [
    *(
        Case(
            "contrast",
            [[image(source, 5, 7, 3), image(source, 2, 9, 3)]],
            {"contrast": 0.7, "dtype": target},
            tolerance=RESAMPLED if target == types.UINT8 else ARITHMETIC,
        )
        for source in TYPES
        for target in TYPES.values()
    ),
    *(
        Case("contrast", LEVELS, {"contrast": c, "contrast_center": m}, tolerance=RESAMPLED)
        for c in (0.0, 0.5, 1.0, 1.2345, 3.0, -1.0)
        for m in (0.0, 0.5, 100.0, 255.0)
    ),
    *(
        Case("contrast", LEVELS, {"contrast": c}, tolerance=RESAMPLED)
        for c in (0.0, 0.5, 1.0, 1.25, 3.0, -1.0)
    ),
    Case("contrast", [[image(np.uint8, 2, 3, 4, 5)]], {"contrast": 0.5}),
    Case("contrast", [[image(np.uint8, 2, 3, 4, 2)]], {"contrast": 0.5}, layout="DHWC"),
    Case(
        "contrast",
        [[image(np.uint8, 4, 5, 3)] * 3],
        per_sample={"contrast": [0.0, 0.8, 2.0], "contrast_center": [0.5, 77.4, 128.0]},
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


@pytest.mark.parametrize(
    ("dtype", "center"), [(np.uint8, 128), (np.int16, 16384), (np.int32, 2**30), (np.float32, 0.5)]
)
def test_no_contrast_leaves_half_the_range_of_the_inputs_type(dtype, center):
    [result] = run_operator("contrast", [np.zeros((2, 2, 3), dtype)], contrast=0.0)
    assert (result.array == center).all()


def test_data_that_is_no_image_is_refused():
    with pytest.raises(ValueError, match="CHW"):
        run_operator("contrast", [np.zeros((3, 4, 5), np.uint8)], layout="CHW")
    for dtype, name in ((np.int8, "INT8"), (np.bool_, "BOOL")):
        with pytest.raises(ValueError, match=f"but got {name}"):
            run_operator("contrast", [np.zeros((3, 4, 5), dtype)])
