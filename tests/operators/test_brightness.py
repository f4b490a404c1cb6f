from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.testing import run_operator

from oracle import ARITHMETIC, RESAMPLED, Case

rng = np.random.default_rng(1)
TYPES = {
    np.uint8: types.UINT8,
    np.int16: types.INT16,
    np.int32: types.INT32,
    np.float32: types.FLOAT,
}


def image(dtype, *shape):
    values = rng.random(shape) if dtype == np.float32 else rng.integers(0, 250, shape)
    return values.astype(dtype)


def pair(dtype):
    return [[image(dtype, 5, 7, 3), image(dtype, 2, 9, 3)]]


LEVELS = [[np.arange(256, dtype=np.uint8).reshape(16, 16, 1)]]
CASES = [
    *(
        Case(
            "brightness",
            pair(source),
            {"brightness": 1.3, "brightness_shift": 0.1, "dtype": target},
            tolerance=RESAMPLED if target == types.UINT8 else ARITHMETIC,
        )
        for source in TYPES
        for target in TYPES.values()
    ),
    *(Case("brightness", pair(d), {"brightness": 0.7}, tolerance=ARITHMETIC) for d in TYPES),
    *(
        Case("brightness", LEVELS, {"brightness": b, "brightness_shift": s}, tolerance=RESAMPLED)
        for b in (0.0, 0.5, 1.0, 1.2345, 3.0, -1.0)
        for s in (-0.3, 0.0, 0.5)
    ),
    Case("brightness", [[image(np.uint8, 3, 4, 1), image(np.uint8, 0, 4, 1)]]),
    Case("brightness", [[image(np.uint8, 3, 4, 0)]]),
    Case("brightness", [[image(np.uint8, 2, 3, 4, 5)]], {"brightness": 0.5}),
    Case("brightness", [[image(np.uint8, 2, 3, 4, 2)]], {"brightness": 0.5}, layout="DHWC"),
    Case(
        "brightness",
        [[image(np.uint8, 4, 5, 3)] * 3],
        per_sample={"brightness": [0.0, 0.8, 2.0], "brightness_shift": [0.5, -0.1, 0.0]},
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def test_halves_round_away_from_zero():
    [result] = run_operator("brightness", [np.array([[[1, 3, 255]]], np.uint8)], brightness=0.5)
    assert result.array.ravel().tolist() == [1, 2, 128]


def test_on_uint8_hardly_any_level_is_off():
    levels = np.arange(256)
    wrong = 0
    for factor, shift in rng.uniform((0, -0.5), (3, 0.5), (200, 2)):
        arguments = {"brightness": factor, "brightness_shift": shift}
        [got] = run_operator("brightness", LEVELS[0], **arguments)
        expected = np.clip(np.floor(levels * factor + shift * 255 + 0.5), 0, 255)
        wrong += (got.array.ravel() != expected).sum()
    assert wrong < 1e-3 * 200 * 256


def test_the_shift_is_a_part_of_the_output_types_range():
    for dtype, expected in ((types.UINT8, 128), (types.INT16, 16384), (types.FLOAT, 0.5)):
        zeros = [np.zeros((1, 1, 3), np.uint8)]
        [result] = run_operator("brightness", zeros, brightness_shift=0.5, dtype=dtype)
        assert (result.array == expected).all()


def test_a_view_of_a_larger_image_is_taken_as_it_is():
    whole = image(np.uint8, 8, 9, 3)
    [result] = run_operator("brightness", [whole[1:5, 7:2:-1]], brightness=1.0)
    np.testing.assert_array_equal(result.array, whole[1:5, 7:2:-1])


@pytest.mark.parametrize(
    ("data", "layout", "message"),
    [
        (np.zeros((4, 5), np.uint8), "", "2 axes"),
        (np.zeros((3, 4, 5), np.uint8), "CHW", "CHW"),
        (np.zeros((4, 5, 3), np.uint16), "", "UINT16"),
        (np.zeros((4, 5, 3), np.float64), "", "FLOAT64"),
        (np.zeros((4, 5, 3), np.float16), "", "FLOAT16"),
        (np.zeros((4, 5, 3), np.bool_), "", "BOOL"),
    ],
)
def test_data_that_is_no_image_is_refused(data, layout, message):
    with pytest.raises(ValueError, match=message):
        run_operator("brightness", [data], layout=layout)


def test_an_output_type_that_is_not_supported_is_refused():
    with pytest.raises(ValueError, match="dtype"):
        run_operator("brightness", [image(np.uint8, 2, 2, 3)], dtype=types.UINT16)
