from __future__ import annotations

import math

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import Case

rng = np.random.default_rng(9)


def image(dtype, *shape):
    return rng.integers(1, 200, shape).astype(dtype)


ONES = [[np.ones((90, 120, 1), np.uint8)]]
CASES = [
    *(
        Case("grid_mask", [[image(d, 20, 30, 3), image(d, 7, 5, 3)]], {"tile": 6})
        for d in (np.uint8, np.int16, np.int32, np.float32)
    ),
    *(Case("grid_mask", [[image(np.uint8, 20, 30, c)]], {"tile": 7}) for c in (1, 2, 4, 6)),
    *(
        Case("grid_mask", ONES, arguments)
        for arguments in (
            {},
            {"tile": 1},
            {"tile": 8, "ratio": 0.3},
            {"tile": 5, "ratio": 0.6},
            {"tile": 10, "ratio": 0.7, "shift_x": 33.0, "shift_y": -7.0},
            {"tile": 10, "ratio": 0.5, "angle": 0.3},
            {"tile": 7, "ratio": 0.6, "angle": 2.0, "shift_x": -2.5, "shift_y": 1.0},
            {"tile": 8, "angle": math.pi / 2},
            {"tile": 8, "ratio": 0.0},
            {"tile": 8, "ratio": 1.0},
            {"tile": 8, "ratio": -0.5},
            {"tile": 8, "ratio": 1.5},
        )
    ),
    Case("grid_mask", ONES, {"tile": 3}, layout="HWC"),
    Case("grid_mask", [[np.ones((0, 4, 3), np.uint8)]]),
    Case("grid_mask", [[np.ones((4, 4, 0), np.uint8)]]),
    Case(
        "grid_mask",
        [[image(np.uint8, 20, 30, 3)] * 2],
        per_sample={
            "angle": [0.1, 1.0],
            "ratio": [0.3, 0.6],
            "shift_x": [1.0, 2.0],
            "shift_y": [-1.0, 0.0],
            "tile": [5, 8],
        },
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def test_squares_of_half_a_tile_are_cut_out():
    [got] = run_operator("grid_mask", [np.ones((4, 6, 1), np.uint8)], tile=4)
    assert got.array[..., 0].tolist() == [
        [0, 0, 1, 1, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1, 1],
    ]


@pytest.mark.parametrize("reference", [True, False])
def test_what_is_hidden_is_zero_whatever_it_was(reference):
    data = [np.full((8, 8, 1), np.nan, np.float32)]
    [got] = run_operator("grid_mask", data, tile=4, ratio=1.0, reference=reference)
    assert (got.array == 0).all()


@pytest.mark.parametrize("tile", [0, -5])
def test_a_tile_must_be_positive(tile):
    with pytest.raises(ValueError, match=f"'tile' must be positive, but got {tile}"):
        run_operator("grid_mask", [image(np.uint8, 4, 4, 3)], tile=tile)
    with pytest.raises(ValueError, match=f"'tile' must be positive, but got {tile}"):
        run_operator("grid_mask", [image(np.uint8, 4, 4, 3)], per_sample={"tile": [tile]})


@pytest.mark.parametrize(
    ("shape", "dtype", "layout", "message"),
    [
        ((4, 5, 3), np.uint16, "", "UINT16"),
        ((4, 5), np.uint8, "", "2 axes"),
        ((3, 4, 5), np.uint8, "CHW", "CHW"),
        ((2, 4, 5, 3), np.uint8, "FHWC", "FHWC"),
    ],
)
def test_data_that_is_no_image_is_refused(shape, dtype, layout, message):
    with pytest.raises(ValueError, match=message):
        run_operator("grid_mask", [np.zeros(shape, dtype)], layout=layout)
