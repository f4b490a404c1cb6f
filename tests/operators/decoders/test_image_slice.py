from __future__ import annotations

import numpy as np
import pytest

from encoded import TURNS, exif, picture, pillow
from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case

OP = "decoders.image_slice"
COLOURED = picture()
JPEG = pillow(COLOURED, "JPEG", subsampling="4:2:0")
PNG = pillow(COLOURED, "PNG")
TURNED = [pillow(COLOURED, "JPEG", exif=exif(o)) for o in TURNS]


def case(**arguments):
    return Case(OP, [[JPEG, PNG]], arguments)


def positional(anchor, shape, dtype, **arguments):
    bounds = [[np.array(v, dtype)] * 2 for v in (anchor, shape)]
    return Case(OP, [[JPEG, PNG], *bounds], arguments)


CASES = [
    case(start=(5, 6), shape=(20, 30)),
    case(start=(5, 6), end=(20, 30)),
    case(start=(5, 6)),
    case(end=(5, 6)),
    case(start=(5, 6), rel_end=(0.5, 0.5)),
    case(rel_start=(0.1, 0.2), rel_shape=(0.33, 0.47)),
    case(rel_start=(0.5, 0.5), rel_end=(1.0, 0.9)),
    case(start=(5,), shape=(7,)),
    case(start=(5,), shape=(7,), axis_names="H"),
    case(start=(5,), shape=(7,), axes=(1,)),
    case(start=(5, 6), shape=(7, 8), axes=(0, 1)),
    case(start=(5, 6), shape=(7, 8), axis_names="HW"),
    case(start=(5, 6), shape=(20, 30), output_type=types.GRAY),
    case(start=(5, 6), shape=(20, 30), dtype=types.INT16),
    positional((0.1, 0.2), (0.5, 0.4), np.float32),
    positional((5, 6), (20, 30), np.float32, normalized_anchor=False, normalized_shape=False),
    positional((0.1, 0.2), (20, 30), np.float32, normalized_shape=False),
    positional((5, 6), (20, 30), np.int32),
    positional((5, 6), (20, 30), np.int32, axis_names="HW"),
    Case(OP, [TURNED], {"start": (7, 11), "shape": (30, 41)}),
    Case(
        OP,
        [[JPEG, PNG]],
        per_sample={
            "start": [np.array((1, 2), np.int32), np.array((30, 20), np.int32)],
            "shape": [np.array((50, 9), np.int32), np.array((3, 4), np.int32)],
        },
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("orientation", TURNS)
def test_the_region_lies_in_the_turned_picture(orientation):
    encoded = pillow(COLOURED, "PNG", exif=exif(orientation)[6:])
    cut = run_operator(OP, [encoded], start=(3, 4), shape=(20, 10))[0]
    np.testing.assert_array_equal(cut.array, TURNS[orientation](COLOURED)[4:14, 3:23])


@pytest.mark.parametrize(
    "bounds",
    [
        {"start": (70, 0), "shape": (20, 5)},
        {"start": (-1, 0), "shape": (20, 5)},
        {"rel_start": (0.0, 0.5), "rel_shape": (0.7, 0.7)},
        {"start": (5, 5), "shape": (0, 3)},
    ],
)
def test_a_region_that_is_empty_or_reaches_outside_is_refused(bounds):
    with pytest.raises(ValueError, match="does not lie in the image of 61 × 83 pixels"):
        run_operator(OP, [JPEG], **bounds)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"start": (5, 5), "end": (9, 9), "shape": (3, 3)},
        {"start": (5, 5), "shape": (3, 3), "axes": (0, 1), "axis_names": "WH"},
        {"start": (5,), "shape": (3,), "axes": (2,)},
        {"start": (0,), "shape": (1,), "axis_names": "C"},
    ],
)
def test_bounds_that_are_missing_or_given_twice_are_refused(arguments):
    with pytest.raises(ArgumentError):
        run_operator(OP, [JPEG], **arguments)


def test_an_end_before_the_start_is_refused():
    with pytest.raises(ValueError, match="-2"):
        run_operator(OP, [JPEG], start=(5, 5), end=(3, 9))
