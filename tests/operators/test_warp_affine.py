from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import EXACT, RESAMPLED, Case, Tolerance

rng = np.random.default_rng(3)
FLOATS = Tolerance(usual=1e-2, worst=2e-2)
"""DALI steps through positions in float32: on noise up to 255 that is worth a few 1e-3."""
MATRIX = (0.913, 0.3071, -2.217, -0.2533, 1.1071, 3.1313)
VOLUME = (0.913, 0.3071, 0.1, -2.217, -0.2533, 1.1071, -0.2, 1.1313, 0.05, 0.1, 0.9371, 0.3)


def image(dtype, *shape):
    return (rng.random(shape) * 255).astype(dtype)


def case(arguments, *shapes, dtype=np.uint8, layout="", per_sample=None, tolerance=None):
    if tolerance is None:
        target = arguments.get("dtype", arguments.get("output_dtype"))
        tolerance = FLOATS if dtype == np.float32 or target == types.FLOAT else RESAMPLED
    data = [image(dtype, *shape) for shape in shapes or [(19, 26, 3), (31, 17, 3)]]
    return Case("warp_affine", [data], arguments, per_sample or {}, layout, tolerance)


CASES = [
    *(
        case({"matrix": MATRIX, "inverse_map": inverse, **extra}, dtype=dtype)
        for dtype in (np.uint8, np.float32)
        for inverse in (True, False)
        for extra in ({}, {"fill_value": 20.0}, {"size": [12.4, 33.5], "fill_value": 20.0})
    ),
    *(
        case(
            {"matrix": MATRIX, "interp_type": types.INTERP_NN, **extra},
            dtype=dtype,
            tolerance=EXACT,
        )
        for dtype in (np.uint8, np.int16, np.int32, np.float32)
        for extra in ({}, {"fill_value": 7.6})
    ),
    *(
        case({"matrix": MATRIX, "fill_value": fill, "dtype": types.FLOAT})
        for fill in (7.6, 300.0, -5.0)
    ),
    case({"matrix": MATRIX, "fill_value": 300.0}),
    *(case({"matrix": MATRIX, "fill_value": 9.0}, (19, 26, c)) for c in (1, 2, 4, 5)),
    *(case({"matrix": MATRIX}, dtype=dtype) for dtype in (np.int16, np.int32)),
    *(
        case({"matrix": MATRIX, "dtype": target}, dtype=np.float32, tolerance=RESAMPLED)
        for target in (types.UINT8, types.INT16, types.INT32)
    ),
    case({"matrix": MATRIX, "output_dtype": types.FLOAT}),
    case({"matrix": (0.0,) * 6}),
    case({"matrix": MATRIX}, (2, 19, 26, 3)),
    case({"matrix": MATRIX, "fill_value": 3.0}, (2, 19, 26, 3), layout="FHWC"),
    *(
        case({"matrix": VOLUME, **extra}, (7, 8, 9, 2), dtype=np.float32, layout="DHWC")
        for extra in ({}, {"fill_value": 20.0, "inverse_map": False, "size": [8.0, 9.0, 5.0]})
    ),
    case({"matrix": VOLUME}, (2, 7, 8, 9, 2), layout="FDHWC"),
    case(
        {},
        per_sample={
            "matrix": [np.float32(MATRIX).reshape(2, 3), np.float32([[0, 1, 0], [1, 0, 0]])],
            "size": [[12.0, 13.0], [14.0, 15.0]],
        },
    ),
    Case(
        "warp_affine",
        [[image(np.uint8, 9, 11, 3)] * 2, [np.float32(MATRIX).reshape(2, 3)] * 2],
        layout="HWC",
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


@pytest.mark.parametrize("reference", [False, True])
def test_an_empty_picture_stays_empty(reference):
    data = np.zeros((0, 6, 3), np.uint8)
    result = run_operator("warp_affine", [data], matrix=MATRIX, reference=reference)[0]
    assert result.shape == (0, 6, 3)


def refused(error, match, data=None, *inputs, **arguments):
    data = np.zeros((5, 6, 3), np.uint8) if data is None else data
    with pytest.raises(error, match=match):
        run_operator("warp_affine", [data], *[[i] for i in inputs], **arguments)


def test_a_matrix_must_be_given_once_and_fit():
    matrix = np.float32(MATRIX).reshape(2, 3)
    refused(ArgumentError, "either as the second input")
    refused(ArgumentError, "either as the second input", None, matrix, matrix=MATRIX)
    refused(ArgumentError, "takes the 6 numbers", matrix=VOLUME)
    refused(
        ArgumentError,
        "takes the 12 numbers",
        np.zeros((2, 3, 4, 1), np.uint8),
        matrix=MATRIX,
        layout="DHWC",
    )
    refused(
        ValueError,
        r"float32 matrix of shape \[2, 3\], but got FLOAT64",
        None,
        matrix.astype(np.float64),
    )
    refused(ValueError, r"shape \[3, 3\]", None, np.eye(3, dtype=np.float32))
    refused(ValueError, "cannot be inverted", matrix=(0.0,) * 6, inverse_map=False)
    refused(ValueError, "finite", matrix=(np.nan,) * 6)


def test_sizes_must_be_positive_and_one_an_axis():
    for size in ([0.0, 4.0], [-2.0, 4.0], [3.0], [3.0, 4.0, 5.0], [np.inf, 2.0]):
        refused(ArgumentError, "'size' takes 2 positive numbers", matrix=MATRIX, size=size)


def test_data_that_cannot_be_warped_is_refused():
    refused(ValueError, "channels last", np.zeros((3, 5, 6), np.uint8), matrix=MATRIX, layout="CHW")
    refused(ValueError, "2 axes", np.zeros((5, 6), np.uint8), matrix=MATRIX)
    refused(ValueError, "got UINT16", np.zeros((5, 6, 3), np.uint16), matrix=MATRIX)
    refused(ValueError, "UINT8 cannot become INT16", matrix=MATRIX, dtype=types.INT16)
    refused(ArgumentError, "interp_type", matrix=MATRIX, interp_type=types.INTERP_CUBIC)
    refused(ValueError, "no pixels", np.zeros((0, 6, 3), np.uint8), matrix=MATRIX, size=[3.0, 4.0])
