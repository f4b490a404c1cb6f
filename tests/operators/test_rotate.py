from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import EXACT, RESAMPLED, Case, Tolerance

rng = np.random.default_rng(4)
FLOATS = Tolerance(usual=1e-2, worst=2e-2)
"""DALI steps through positions in float32: on noise up to 255 that is worth a few 1e-3."""


def image(dtype, *shape):
    return (rng.random(shape) * 255).astype(dtype)


def case(arguments, *shapes, dtype=np.uint8, layout="", angles=(), tolerance=None, **per_sample):
    if tolerance is None:
        tolerance = FLOATS if dtype == np.float32 else RESAMPLED
    shapes = shapes or [(19, 26, 3)]
    shapes = [shapes[i % len(shapes)] for i in range(max(len(angles), len(shapes)))]
    per_sample = {**({"angle": list(angles)} if angles else {}), **per_sample}
    data = [image(dtype, *shape) for shape in shapes]
    return Case("rotate", [data], arguments, per_sample, layout, tolerance)


ANGLES = (0.0, 10.0, 33.3, -50.0, 90.0, 123.4, 180.0, 361.0, 270.0)
CASES = [
    *(
        case(extra, (19, 26, 3), (18, 33, 3), dtype=dtype, angles=ANGLES)
        for dtype in (np.uint8, np.float32)
        for extra in (
            {},
            {"keep_size": True},
            {"fill_value": 9.0},
            {"size": [15.6, 31.2], "fill_value": 200.0},
        )
    ),
    *(
        case({"angle": 37.7, **extra, "interp_type": types.INTERP_NN}, dtype=d, tolerance=EXACT)
        for d in (np.uint8, np.int16, np.int32, np.float32)
        for extra in ({}, {"fill_value": 9.0})
    ),
    *(case({"angle": 37.7, "fill_value": 5.0}, (19, 26, c)) for c in (1, 2, 4, 5)),
    case({"angle": 37.7, "dtype": types.FLOAT}, tolerance=FLOATS),
    case({"angle": 37.7, "dtype": types.UINT8}, dtype=np.float32, tolerance=RESAMPLED),
    case({"angle": 37.7}, (2, 19, 26, 3)),
    case({"angle": 37.7, "axis": [0.0, 0.0, 1.0]}, (2, 19, 26, 3), layout="FHWC"),
    case({"fill_value": 9.0}, angles=(10.0, 20.0), size=[[12.0, 13.0], [14.0, 15.0]]),
    *(
        case({"angle": angle, "axis": axis}, (7, 8, 9, 2), dtype=np.float32, layout="DHWC")
        for axis, angle in (
            ([0.0, 0.0, 1.0], 30.0),
            ([0.0, 1.0, 0.0], 50.0),
            ([1.0, 0.0, 0.0], -30.0),
            ([1.0, -2.0, 0.7], 100.0),
        )
    ),
    case({"angle": 40.0, "axis": [1.0, 2.0, 3.0]}, (2, 7, 8, 9, 1), layout="FDHWC"),
    case(
        {"fill_value": 9.0},
        (7, 8, 9, 2),
        layout="DHWC",
        angles=(10.0, 20.0),
        axis=[[1.0, 2.0, 3.0], [0.0, -1.0, 0.5]],
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


@pytest.mark.dali
def test_canvases_are_as_large_as_dalis():
    shapes = [(int(h), int(w), 1) for h, w in rng.integers(3, 60, (150, 2))]
    angles = [float(a) for a in rng.uniform(-200, 200, 100)]
    angles += [float(a) for a in rng.choice([45, 90, 135, 180, 225, -45, 30, 60, 270], 50)]
    case({}, *shapes, angles=angles, tolerance=Tolerance(worst=255, usual=255)).check_dali()


@pytest.mark.dali
@pytest.mark.parametrize("axis", [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 2.0, 3.0]])
def test_canvases_of_volumes_are_as_large_as_dalis(axis):
    shapes = [(*map(int, s), 1) for s in rng.integers(4, 12, (30, 3))]
    angles = [*map(float, rng.uniform(-200, 200, 20)), *[45.0, 135.0, -45.0, 90.0, 180.0] * 2]
    anything = Tolerance(worst=255, usual=255)
    case({"axis": axis}, *shapes, angles=angles, layout="DHWC", tolerance=anything).check_dali()


def test_a_quarter_turn_is_counter_clockwise():
    data = image(np.uint8, 5, 8, 3)
    result = run_operator("rotate", [data], angle=90.0)[0].array
    np.testing.assert_array_equal(result, np.rot90(data))


def refused(error, match, data=None, **arguments):
    data = np.zeros((5, 6, 3), np.uint8) if data is None else data
    with pytest.raises(error, match=match):
        run_operator("rotate", [data], **arguments)


def test_bad_arguments_are_refused():
    volume = np.zeros((2, 5, 6, 3), np.uint8)
    refused(ArgumentError, "needs the argument 'angle'")
    refused(ArgumentError, "must be finite", angle=np.nan)
    refused(ArgumentError, "about an 'axis'", volume, angle=3.0, layout="DHWC")
    for axis in ([0.0, 0.0, 0.0], [0.0, 1.0], [np.inf, 0.0, 0.0]):
        refused(ArgumentError, "about an 'axis'", volume, angle=3.0, axis=axis, layout="DHWC")
    refused(ArgumentError, "'size' takes 2 positive numbers", angle=3.0, size=[0.0, 3.0])
    refused(ArgumentError, "interp_type", angle=3.0, interp_type=types.INTERP_LANCZOS3)


def test_data_that_cannot_be_rotated_is_refused():
    refused(ValueError, "channels last", np.zeros((3, 5, 6), np.uint8), angle=3.0, layout="CHW")
    refused(ValueError, "2 axes", np.zeros((5, 6), np.uint8), angle=3.0)
    refused(ValueError, "got INT64", np.zeros((5, 6, 3), np.int64), angle=3.0)
    refused(ValueError, "no pixels", np.zeros((0, 6, 3), np.uint8), angle=30.0)
