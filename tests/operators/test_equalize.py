from __future__ import annotations

import numpy as np
import pytest

from forebay.operators._operator import discover
from forebay.testing import run_operator

from oracle import Case

rng = np.random.default_rng(7)


def image(*shape, low=30, high=200):
    return (low + (high - low) * rng.random(shape) ** 2).astype(np.uint8)


CASES = [
    *(Case("equalize", [[image(20, 30, c), image(5, 9, c)]]) for c in (1, 2, 3, 4, 5)),
    Case("equalize", [[image(20, 30)]]),
    Case("equalize", [[image(20, 30)]], layout="HW"),
    Case("equalize", [[image(3, 20, 30)]], layout="CHW"),
    Case("equalize", [[image(3, 20, 30)]], layout="FHW"),
    Case("equalize", [[image(2, 20, 30, 3)]]),
    Case("equalize", [[image(2, 20, 30, 3)]], layout="FHWC"),
    Case("equalize", [[image(2, 3, 20, 30)]], layout="FCHW"),
    Case("equalize", [[np.full((4, 5, 3), 7, np.uint8)]]),
    Case("equalize", [[np.arange(256, dtype=np.uint8).reshape(16, 16, 1)]]),
    Case("equalize", [[image(64, 64, 3, low=0, high=256)]]),
    Case("equalize", [[image(64, 64, 1, low=100, high=103)]]),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def test_two_levels_become_black_and_white():
    pixels = np.array([[[10], [20]], [[20], [10]]], np.uint8)
    [got] = run_operator("equalize", [pixels])
    assert got.array[..., 0].tolist() == [[0, 255], [255, 0]]


def test_an_empty_image_stays_empty():
    [got] = run_operator("equalize", [np.zeros((0, 4, 3), np.uint8)])
    assert got.shape == (0, 4, 3)


@pytest.mark.parametrize(
    ("shape", "dtype", "layout", "message"),
    [
        ((4, 5, 3), np.uint16, "", "UINT16"),
        ((4, 5, 3), np.float32, "", "FLOAT"),
        ((2, 4, 5, 3), np.uint8, "DHWC", "DHWC"),
        ((12,), np.uint8, "", "1 axes"),
    ],
)
def test_data_that_is_no_image_is_refused(shape, dtype, layout, message):
    with pytest.raises(ValueError, match=message):
        run_operator("equalize", [np.zeros(shape, dtype)], layout=layout)


def test_the_old_name_is_the_same_operator():
    assert discover()["experimental.equalize"] is discover()["equalize"]
