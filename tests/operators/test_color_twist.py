from __future__ import annotations

import colorsys

import numpy as np
import pytest

from forebay import types
from forebay.testing import run_operator

from oracle import RESAMPLED, Case, Tolerance

rng = np.random.default_rng(4)
TYPES = {
    np.uint8: types.UINT8,
    np.int16: types.INT16,
    np.int32: types.INT32,
    np.float16: types.FLOAT16,
    np.float32: types.FLOAT,
}
# The sums of three float32 products of up to 10^3 differ in their last bits.
SUMS = Tolerance(usual=2e-4, worst=2e-4, relative=1e-5)
HALF = Tolerance(usual=1e-3, worst=1e-3, relative=2**-10)
ALL = {"hue": 40.0, "saturation": 0.5, "brightness": 1.3, "contrast": 0.7}


def image(dtype, *shape):
    real = np.dtype(dtype).kind == "f"
    return (rng.random(shape) if real else rng.integers(0, 256, shape)).astype(dtype)


def tolerance(target):
    if target == types.FLOAT16:
        return HALF
    return SUMS if target == types.FLOAT else RESAMPLED


CASES = [
    *(
        Case(
            "color_twist",
            [[image(source, 5, 7, 3), image(source, 2, 9, 3)]],
            {**ALL, "dtype": target},
            tolerance=tolerance(target),
        )
        for source in TYPES
        for target in TYPES.values()
    ),
    *(Case("color_twist", [[image(d, 4, 5, 3)]], ALL, tolerance=HALF) for d in (np.float16,)),
    *(
        Case("color_twist", [[image(np.uint8, 40, 50, 3)]], a, tolerance=RESAMPLED)
        for a in (
            {},
            {"hue": -170.0},
            {"hue": 720.0},
            {"saturation": 0.0},
            {"saturation": 3.0},
            {"saturation": -1.0},
            {"brightness": 0.0},
            {"brightness": 0.5},
            {"contrast": 0.0},
            {"contrast": 2.5, "brightness": 0.5},
            {"hue": 30.0, "image_type": types.BGR},
            {"hue": 30.0, "image_type": types.GRAY},
        )
    ),
    Case("color_twist", [[image(np.uint8, 2, 3, 4, 3)]], ALL, tolerance=RESAMPLED),
    Case("color_twist", [[image(np.float32, 2, 3, 4, 3)]], ALL, layout="DHWC", tolerance=SUMS),
    Case("color_twist", [[image(np.uint8, 0, 4, 3)]], ALL),
    Case(
        "color_twist",
        [[image(np.uint8, 20, 20, 3)] * 3],
        per_sample={
            "hue": [0.0, 90.0, -10.0],
            "saturation": [1.0, 0.3, 2.0],
            "brightness": [1.5, 1.0, 0.7],
            "contrast": [0.5, 1.0, 1.5],
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


def test_on_uint8_hardly_any_element_is_off():
    pixels = image(np.uint8, 100, 100, 3)
    [got] = run_operator("color_twist", [pixels], **ALL)
    to_yiq = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
    angle = np.deg2rad(40)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    yiq = pixels @ to_yiq.T
    yiq[..., 1:] = 0.5 * yiq[..., 1:] @ turn.T
    values = ((yiq @ np.linalg.inv(to_yiq).T - 128) * 0.7 + 128) * 1.3
    expected = np.clip(np.floor(values + 0.5), 0, 255).astype(np.uint8)
    assert (got.array != expected).mean() < 1e-3


def test_no_saturation_gives_the_luma_of_yiq():
    pixel = np.array([[[10, 200, 90]]], np.uint8)
    [got] = run_operator("color_twist", [pixel], saturation=0.0)
    luma = colorsys.rgb_to_yiq(10, 200, 90)[0]
    assert np.abs(got.array - luma).max() <= 1.5


def test_halves_round_away_from_zero():
    [got] = run_operator("color_twist", [np.array([[[1, 3, 5]]], np.uint8)], brightness=0.5)
    assert got.array.ravel().tolist() == [1, 2, 3]


def test_the_input_stays_as_it_was():
    pixels = image(np.float32, 4, 4, 3)
    before = pixels.copy()
    run_operator("color_twist", [pixels], **ALL)
    np.testing.assert_array_equal(pixels, before)


@pytest.mark.parametrize(
    ("shape", "dtype", "layout", "message"),
    [
        ((4, 5), np.uint8, "", "2 axes"),
        ((3, 4, 5), np.uint8, "CHW", "CHW"),
        ((4, 5, 1), np.uint8, "", "3 channels.* got 1"),
        ((4, 5, 4), np.uint8, "", "3 channels.* got 4"),
        ((4, 5, 4), np.int16, "", "3 channels.* got 4"),
        ((4, 5, 0), np.uint8, "", "3 channels.* got 0"),
        ((4, 5, 3), np.uint16, "", "UINT16"),
        ((4, 5, 3), np.float64, "", "FLOAT64"),
    ],
)
def test_data_that_is_no_colour_image_is_refused(shape, dtype, layout, message):
    with pytest.raises(ValueError, match=message):
        run_operator("color_twist", [np.zeros(shape, dtype)], layout=layout)
