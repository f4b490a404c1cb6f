from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import RESAMPLED, Case, Tolerance

rng = np.random.default_rng(6)
FLOATS = Tolerance(usual=1e-3, worst=2e-3)
"""DALI places its filters in float32: on values up to 255 that is worth up to 1e-3."""


def image(dtype, *shape):
    return (rng.random(shape) * 255).astype(dtype)


def case(
    arguments,
    *shapes,
    operator="resize_crop_mirror",
    dtype=np.uint8,
    layout="",
    per_sample=None,
):
    tolerance = FLOATS if dtype == np.float32 else RESAMPLED
    data = [image(dtype, *shape) for shape in shapes or [(19, 26, 3), (31, 17, 3)]]
    return Case(operator, [data], arguments, per_sample or {}, layout, tolerance)


CROP = {"crop": [8.0, 11.0]}
CASES = [
    *(
        case({"size": [13.0, 21.0], **CROP, "mirror": mirror, **extra}, dtype=dtype)
        for dtype in (np.uint8, np.float32)
        for mirror in (0, 1, 2, 3)
        for extra in ({}, {"antialias": False})
    ),
    *(
        case({**size, **CROP, **extra}, dtype=dtype)
        for dtype in (np.uint8, np.float32)
        for size in (
            {"resize_shorter": 13.0},
            {"resize_shorter": 13.4},
            {"resize_longer": 60.0},
            {"resize_x": -30.0, "resize_y": 25.0},
            {"size": [12.0, 13.0], "roi_start": [2.0, 3.0], "roi_end": [12.0, 17.0]},
        )
        for extra in ({}, {"crop_pos_x": 0.0, "crop_pos_y": 0.7, "mirror": 1})
    ),
    case({"size": [13.0, 21.0], "crop": [30.0, 31.0]}),
    case({"size": [13.0, 21.0], "crop": [30.0, 31.0], "crop_pos_x": 0.0, "rounding": "truncate"}),
    case({"size": [13.0, 21.0], "crop_h": 7.9, "crop_w": 8.0, "mirror": 1}),
    case({"size": [13.0, 21.0]}),
    case({"size": [13.0, 21.0], **CROP, "interp_type": types.INTERP_CUBIC, "mirror": 3}),
    case({"size": [13.0, 21.0], **CROP}, (3, 19, 26), layout="CHW"),
    case({"size": [13.0, 21.0], **CROP}, (2, 19, 26, 3)),
    case({"size": 7.0, "crop": [3.0, 4.0, 5.0]}, (9, 10, 11, 1), layout="DHWC"),
    case({"size": 7.0, "crop": [3.0, 4.0, 5.0], "mirror": 4}, (9, 10, 11, 1), layout="DHWC"),
    case(
        {"resize_shorter": 15.0},
        per_sample={"mirror": [1, 2], "crop": [[5.0, 7.0], [6.0, 6.0]], "crop_pos_x": [0.0, 1.0]},
    ),
    *(
        case({"size": [13.0, 12.0], **CROP, **extra}, operator="fast_resize_crop_mirror")
        for extra in ({}, {"antialias": True}, {"mirror": 1})
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def refused(error, match, data=None, **arguments):
    data = np.zeros((10, 12, 3), np.uint8) if data is None else data
    with pytest.raises(error, match=match):
        run_operator("resize_crop_mirror", [data], **arguments)


def test_bad_arguments_are_refused():
    refused(ArgumentError, "exactly one way", crop=[4.0, 4.0])
    refused(ArgumentError, "not both", size=4.0, crop=[4.0, 4.0], crop_w=3.0)
    refused(ArgumentError, "'crop' takes", size=4.0, crop=[4.0])
    refused(ValueError, "without extent", np.zeros((0, 12, 3), np.uint8), size=4.0, crop=[2.0, 2.0])
    refused(ValueError, "2 axes", np.zeros((4, 5), np.uint8), size=3.0)
    refused(ValueError, "got INT32", np.zeros((4, 5, 3), np.int32), size=3.0)
