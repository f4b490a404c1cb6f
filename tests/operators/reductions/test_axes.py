"""What holds for the axes of all reductions."""

from __future__ import annotations

import numpy as np
import pytest

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.testing import run_operator

NAMES = ["sum", "mean", "mean_square", "rms", "min", "max", "variance", "std_dev"]
pytestmark = pytest.mark.parametrize("name", NAMES)


def reduce(name, data, layout="", **arguments):
    mean = [[np.zeros((), np.float32)]] if name in ("variance", "std_dev") else []
    return run_operator(f"reductions.{name}", [Sample(data, layout, "a.jpg")], *mean, **arguments)


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_is_not_there_is_refused(name, axis):
    with pytest.raises(IndexError, match=f"axis {axis} is out of range for data with 2 axes"):
        reduce(name, np.zeros((2, 3), np.uint8), axes=[0, axis])


@pytest.mark.parametrize("axes", [[0, 0], [1, -1]])
def test_an_axis_given_twice_is_refused(name, axes):
    with pytest.raises(ValueError, match="given twice"):
        reduce(name, np.zeros((2, 3), np.uint8), axes=axes)


def test_letters_that_the_layout_lacks_are_refused(name):
    with pytest.raises(ValueError, match="'HW' has not all of 'WC'"):
        reduce(name, np.zeros((2, 3), np.uint8), "HW", axis_names="WC")
    with pytest.raises(ValueError, match="'' has not all of 'W'"):
        reduce(name, np.zeros((2, 3), np.uint8), axis_names="W")


def test_axes_are_given_by_number_or_by_letter(name):
    with pytest.raises(ArgumentError, match="either 'axes' or 'axis_names'"):
        reduce(name, np.zeros((2, 3), np.uint8), "HW", axis_names="W", axes=1)


@pytest.mark.parametrize("dtype", ["bool", "float16", "float64"])
def test_types_that_cannot_be_reduced_are_refused_and_the_way_out_is_named(name, dtype):
    with pytest.raises(TypeError, match=r"cannot be reduced; convert it: fn\.cast"):
        reduce(name, np.zeros((2, 3), dtype))


def test_the_source_is_kept(name):
    assert reduce(name, np.zeros((2, 3), np.uint8))[0].source == "a.jpg"
