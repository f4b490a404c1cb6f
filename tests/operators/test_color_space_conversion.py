from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.testing import run_operator
from forebay.types import BGR, GRAY, RGB, YCbCr

from oracle import EXACT, RESAMPLED, Case

rng = np.random.default_rng(6)
SPACES = (RGB, BGR, GRAY, YCbCr)
PAIRS = [(a, b) for a in SPACES for b in SPACES if a != b]


def image(space, *shape):
    return rng.integers(0, 256, (*shape, space.channels)).astype(np.uint8)


def arguments(a, b):
    return {"image_type": a, "output_type": b}


def colours(a, b):
    return YCbCr in (a, b) and GRAY not in (a, b)


CASES = [
    *(
        Case(
            "color_space_conversion",
            [[image(a, 50, 60), image(a, 3, 5)]],
            arguments(a, b),
            tolerance=RESAMPLED if colours(a, b) else EXACT,
        )
        for a, b in PAIRS
    ),
    *(
        Case("color_space_conversion", [[image(RGB, *shape)]], arguments(RGB, b), layout=layout)
        for b in (BGR, GRAY)
        for shape, layout in (
            ((2, 3, 4), ""),
            ((2, 3, 4), "FHWC"),
            ((2, 3, 4), "DHWC"),
            ((2, 2, 3, 4), ""),
            ((2, 2, 3, 4), "FDHWC"),
        )
    ),
    Case(
        "color_space_conversion",
        [[image(YCbCr, 2, 9, 8)]],
        arguments(YCbCr, BGR),
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


def test_ycbcr_is_studio_swing():
    corners = np.array([[[0, 0, 0], [255, 255, 255], [0, 0, 255], [255, 0, 0]]], np.uint8)
    [got] = run_operator("color_space_conversion", [corners], **arguments(RGB, YCbCr))
    assert got.array[0].tolist() == [[16, 128, 128], [235, 128, 128], [41, 240, 110], [81, 90, 240]]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_an_empty_image_stays_empty(a, b):
    empty = [np.zeros((0, 4, a.channels), np.uint8)]
    [got] = run_operator("color_space_conversion", empty, **arguments(a, b))
    assert got.shape == (0, 4, b.channels)


@pytest.mark.parametrize(
    ("a", "b"), [(RGB, RGB), (GRAY, GRAY), (RGB, types.ANY_DATA), (types.ANY_DATA, RGB)]
)
def test_a_conversion_that_does_not_exist_is_refused(a, b):
    with pytest.raises(ValueError, match=f"no conversion from {a.name} to {b.name}"):
        run_operator("color_space_conversion", [np.zeros((2, 2, 3), np.uint8)], **arguments(a, b))


@pytest.mark.parametrize(
    ("shape", "dtype", "space", "layout", "message"),
    [
        ((2, 2, 1), np.uint8, RGB, "", "RGB has 3 channels, but got 1"),
        ((2, 2, 4), np.uint8, RGB, "", "RGB has 3 channels, but got 4"),
        ((2, 2, 3), np.uint8, GRAY, "", "GRAY has 1 channels, but got 3"),
        ((2, 2, 3), np.float32, RGB, "", "UINT8"),
        ((3, 2, 2), np.uint8, RGB, "CHW", "CHW"),
        ((2, 3), np.uint8, RGB, "", "2 axes"),
    ],
)
def test_data_that_does_not_fit_is_refused(shape, dtype, space, layout, message):
    with pytest.raises(ValueError, match=message):
        run_operator(
            "color_space_conversion",
            [np.zeros(shape, dtype)],
            layout=layout,
            **arguments(space, BGR),
        )


def test_both_types_are_needed():
    with pytest.raises(ValueError, match="output_type"):
        run_operator("color_space_conversion", [image(RGB, 2, 2)], image_type=RGB)
