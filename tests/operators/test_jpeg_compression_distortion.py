from __future__ import annotations

import cv2
import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import Case, Tolerance

rng = np.random.default_rng(8)
# Exact with the libjpeg-turbo that OpenCV has today; another version may round otherwise.
CODEC = Tolerance(usual=1, worst=4, most=0.98)


def image(*shape):
    noise = rng.integers(0, 256, shape).astype(np.float32)
    smooth = cv2.GaussianBlur(noise, (0, 0), 2)
    return cv2.normalize(smooth, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)


PICTURE = image(37, 53, 3)
CASES = [
    *(
        Case("jpeg_compression_distortion", [[PICTURE]], {"quality": q}, tolerance=CODEC)
        for q in (-1, 0, 1, 5, 50, 75, 95, 100, 101)
    ),
    Case("jpeg_compression_distortion", [[PICTURE, image(8, 5, 3)]], tolerance=CODEC),
    Case(
        "jpeg_compression_distortion",
        [[np.stack([PICTURE, PICTURE[::-1]])]],
        {"quality": 10},
        tolerance=CODEC,
    ),
    Case(
        "jpeg_compression_distortion",
        [[PICTURE] * 3],
        per_sample={"quality": [5, 95, 0]},
        tolerance=CODEC,
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def test_a_better_quality_is_closer_to_the_image():
    errors = []
    for quality in (1, 20, 60, 100):
        [got] = run_operator("jpeg_compression_distortion", [PICTURE], quality=quality)
        errors.append(np.abs(got.array.astype(int) - PICTURE).mean())
    assert errors == sorted(errors, reverse=True)
    assert len(set(errors)) == 4


def test_an_empty_image_stays_empty():
    [got] = run_operator("jpeg_compression_distortion", [np.zeros((0, 4, 3), np.uint8)])
    assert got.shape == (0, 4, 3)


def test_the_input_stays_as_it_was():
    before = PICTURE.copy()
    run_operator("jpeg_compression_distortion", [PICTURE], quality=1)
    np.testing.assert_array_equal(PICTURE, before)


@pytest.mark.parametrize(
    ("shape", "dtype", "layout", "message"),
    [
        ((4, 5, 3), np.float32, "", "FLOAT"),
        ((4, 5, 1), np.uint8, "", "3 channels.* got 1"),
        ((3, 4, 5), np.uint8, "CHW", "CHW"),
        ((2, 4, 5, 3), np.uint8, "DHWC", "DHWC"),
    ],
)
def test_data_that_is_no_rgb_image_is_refused(shape, dtype, layout, message):
    with pytest.raises(ValueError, match=message):
        run_operator("jpeg_compression_distortion", [np.zeros(shape, dtype)], layout=layout)
