from __future__ import annotations

import numpy as np
import pytest

from encoded import exif, pillow
from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

OP = "decoders.image_random_crop"
# Every pixel of this picture tells its own place: (y, x, 7).
HEIGHT, WIDTH = 90, 120
PLACES = np.dstack([*np.mgrid[:HEIGHT, :WIDTH], np.full((HEIGHT, WIDTH), 7)]).astype(np.uint8)
PNG = pillow(PLACES, "PNG")


def windows(encoded=PNG, count=200, **arguments):
    """(y, x, height, width) of `count` crops, after a look at whether they are whole windows."""
    found = []
    for crop in run_operator(OP, [encoded] * count, **arguments):
        assert crop.layout == "HWC"
        height, width = crop.shape[:2]
        y, x = crop.array[0, 0, :2].tolist()
        np.testing.assert_array_equal(crop.array, PLACES[y : y + height, x : x + width])
        found.append((y, x, height, width))
    return np.array(found)


def test_windows_obey_the_ranges():
    _, _, h, w = windows(random_area=(0.2, 0.5), random_aspect_ratio=(0.8, 1.25)).T
    area, ratio = h * w / (HEIGHT * WIDTH), w / h
    assert 0.19 < area.min() < 0.22
    assert 0.48 < area.max() < 0.51
    assert 0.8 <= ratio.min() < 0.85
    assert 1.2 < ratio.max() <= 1.25


def test_windows_reach_everywhere():
    y, x, h, w = windows(random_area=(0.1, 0.2)).T
    assert y.min() < 5
    assert x.min() < 5
    assert (y + h).max() > HEIGHT - 5
    assert (x + w).max() > WIDTH - 5


def test_samples_differ_and_the_same_seed_gives_the_same():
    first, again, other = (windows(count=20, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert len(np.unique(first, axis=0)) > 15
    assert (first != other).any()


def test_the_window_is_that_of_random_crop_generator():
    anchors, shapes = run_operator(
        "random_crop_generator", [np.array([HEIGHT, WIDTH])] * 20, seed=4
    )
    drawn = [np.concatenate([a.tensor, s.tensor]) for a, s in zip(anchors, shapes, strict=True)]
    np.testing.assert_array_equal(windows(count=20, seed=4), drawn)


def test_the_window_is_drawn_in_the_turned_picture():
    turned = pillow(np.rot90(PLACES).copy(), "PNG", exif=exif(6)[6:])
    np.testing.assert_array_equal(windows(turned, seed=3), windows(seed=3))


def test_other_types_come_out_as_in_the_plain_decoder():
    crop = run_operator(OP, [PNG], dtype=types.FLOAT, output_type=types.BGR)[0].array
    y, x = np.rint(crop[0, 0, [2, 1]] * 255).astype(int)
    expected = PLACES[y : y + crop.shape[0], x : x + crop.shape[1], ::-1] / 255
    np.testing.assert_allclose(crop, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        {"random_area": (0.5, 0.2)},
        {"random_area": (0.1, 0.2, 0.3)},
        {"random_area": (-1.0, 1.0)},
        {"random_aspect_ratio": (0.0, 1.0)},
        {"random_aspect_ratio": (2.0, 1.0)},
        {"num_attempts": -1},
    ],
)
def test_ranges_that_hold_nothing_are_refused(arguments):
    with pytest.raises(ArgumentError, match=next(iter(arguments))):
        run_operator(OP, [PNG], **arguments)


def test_a_cut_off_file_is_refused():
    with pytest.raises(ValueError, match="the PNG image"):
        run_operator(OP, [PNG[:-20]])
