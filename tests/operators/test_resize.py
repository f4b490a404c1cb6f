from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator
from forebay.types import DALIInterpType

from oracle import EXACT, RESAMPLED, Case, Tolerance

rng = np.random.default_rng(2)
FLOATS = Tolerance(usual=1e-3, worst=2e-3)
"""DALI places its filters in float32: on values up to 255 that is worth up to 1e-3."""


def image(dtype, *shape):
    return (rng.random(shape) * 255).astype(dtype)


def case(arguments, *shapes, dtype=np.uint8, layout="", per_sample=None, tolerance=None):
    if tolerance is None:
        tolerance = FLOATS if dtype == np.float32 else RESAMPLED
    data = [image(dtype, *shape) for shape in shapes or [(19, 26, 3), (31, 17, 3)]]
    return Case("resize", [data], arguments, per_sample or {}, layout, tolerance)


# Odd extents to even ones: no output pixel lies so that a tap is just at the end of the filter,
# where float noise decides in DALI whether it counts, which shows in a Gaussian.
ODD = ((19, 27, 3), (31, 17, 3), (19, 27, 3), (19, 27, 3))
FILTERS = [
    case(
        {"interp_type": kind, "antialias": antialias},
        *ODD,
        dtype=dtype,
        per_sample={"size": [[8.0, 12.0], [8.0, 12.0], [48.0, 42.0], [8.0, 50.0]]},
        tolerance=EXACT if kind == types.INTERP_NN else None,
    )
    for kind in DALIInterpType
    for antialias in (True, False)
    for dtype in (np.uint8, np.float32)
] + [
    case({"size": size, "interp_type": types.INTERP_NN}, (6, 12, 1), tolerance=EXACT)
    for size in ([37.0, 5.0], [7.0, 26.0], [4.0, 18.0], [2.0, 36.0])  # with ties
]
SIZES = [
    *(
        case({**size, "subpixel_scale": subpixel}, dtype=dtype)
        for subpixel, dtype in ((True, np.uint8), (False, np.float32))
        for size in (
            {"resize_x": 13.0},
            {"resize_y": 40.0},
            {"resize_x": -13.0, "resize_y": 22.4},
            {"size": [9.0, -30.0]},
            {"size": 12.0},
            {"size": [0.0, 12.0]},
            {"size": [0.0, 0.0], "max_size": 5.0},
            {"resize_shorter": 10.0},
            {"resize_shorter": -10.0},
            {"resize_longer": 50.0},
            {"resize_shorter": 30.0, "max_size": 35.0},
            {"resize_shorter": 30.0, "max_size": [25.0, 35.0]},
            {"resize_x": 40.0, "max_size": [15.0, 35.0]},
            {"size": [11.0, 33.0], "mode": "not_larger"},
            {"size": [11.0, 33.0], "mode": "not_smaller"},
            {"size": [11.0, 33.0], "mode": "not_smaller", "max_size": 20.0},
            {"resize_x": 33.0, "mode": "stretch"},
            {"resize_x": 33.0, "mode": "stretch", "max_size": 14.0},
        )
    ),
    case({"resize_shorter": 0.0}, tolerance=EXACT),
    case({"resize_x": 6.0, "resize_z": 4.0}),
]
CORNERS = (
    ([2.0, 3.0], [15.0, 16.0]),
    ([15.0, 3.0], [2.0, 16.0]),
    ([2.3, 16.9], [15.4, 3.1]),
    ([-5.0, -4.0], [12.0, 40.0]),
    ([0.0, 0.0], [17.0, 17.0]),
)
REGIONS = [
    case(
        {"size": size, "antialias": antialias},
        *[(19, 26, 3)] * len(CORNERS),
        dtype=dtype,
        per_sample={"roi_start": [a for a, _ in CORNERS], "roi_end": [b for _, b in CORNERS]},
    )
    for antialias in (True, False)
    for dtype in (np.uint8, np.float32)
    for size in ([7.0, 9.0], [40.0, 9.0], [31.0, 33.0])
] + [
    case({"size": [7.0, 9.0], "roi_start": 0.25, "roi_end": [0.75, 1.0], "roi_relative": True}),
    case({"resize_shorter": 7.0, "roi_start": [3.0, 2.0], "roi_end": [12.5, 17.0]}),
    case({"resize_x": 7.0, "roi_start": [12.5, 2.0], "roi_end": [3.0, 17.0]}),
    case({"resize_x": 7.0, "mode": "not_larger", "roi_start": [12.5, 2.0], "roi_end": [3.0, 17.0]}),
    case(
        {"size": [7.0, 9.0]},
        per_sample={"roi_start": [[1.0, 2.0], [3.0, 0.5]], "roi_end": [[9.0, 9.0], [12.0, 11.0]]},
    ),
]
LAYOUTS = [
    *(case({"size": [9.0, 30.0]}, (19, 26, c)) for c in (1, 2, 4, 5)),
    *(
        case({"size": [9.0, 30.0]}, dtype=dtype, tolerance=tolerance)
        for dtype, tolerance in ((np.int16, RESAMPLED), (np.uint16, RESAMPLED))
    ),
    case({"size": [9.0, 30.0], "dtype": types.FLOAT}, tolerance=FLOATS),
    case({"size": [9.0, 30.0], "dtype": types.FLOAT, "interp_type": types.INTERP_NN}),
    case({"size": [9.0, 30.0], "dtype": types.UINT8}),
    case({"size": [9.0, 30.0], "interp_type": types.INTERP_NN}, dtype=np.uint16, tolerance=EXACT),
    case({"size": [9.0, 30.0]}, (3, 19, 26), layout="CHW"),
    case({"size": [9.0, 30.0]}, (2, 19, 26, 3)),
    case({"size": [9.0, 30.0]}, (2, 19, 26, 3), layout="FHWC"),
    case({"size": [9.0, 30.0]}, (2, 3, 19, 26), layout="FCHW"),
    case({"size": [4.0, 9.0, 20.0]}, (7, 12, 13, 2), layout="DHWC"),
    case({"resize_x": 26.0, "resize_z": 6.0}, (7, 12, 13, 2), layout="DHWC"),
    case({"resize_shorter": 6.0}, (2, 1, 7, 12, 13), layout="FCDHW"),
    case({"size": [19.0, 26.0]}, (19, 26, 3), tolerance=EXACT),
    *(
        case({**size, "min_filter": types.INTERP_CUBIC, "mag_filter": kind}, dtype=np.float32)
        for size in ({"size": [9.0, 30.0]}, {"size": [30.0, 9.0]})
        for kind in (types.INTERP_NN, types.INTERP_LANCZOS3)
    ),
    case({"size": [9.0, 30.0], "interp_type": types.INTERP_CUBIC, "mag_filter": 1}),
    case({"size": [9.0, 30.0], "save_attrs": True}),
    case({"size": [9.0, 30.0], "save_attrs": True}, (3, 19, 26), layout="CHW"),
    *(case(size, (0, 26, 3)) for size in ({"size": [3.0, 4.0]}, {"resize_y": 5.0})),
    *(case(size, (0, 26, 3)) for size in ({"resize_shorter": 5.0}, {"resize_x": 5.0})),
    case({}, per_sample={"size": [[3.0, 7.0], [40.0, -20.0]]}),
    case({}, per_sample={"resize_shorter": [7.0, 40.0]}),
    case({"resize_y": 9.0}, per_sample={"resize_x": [7.0, 0.0]}),
]
KEPT = [  # a tap lies just at each end of the filter, and rounding in DALI counts one of them
    case(
        {"interp_type": kind, "antialias": antialias},
        *[(9, 8, 3), (8, 31, 1), (9, 12, 3), (7, 7, 2)],
        dtype=dtype,
        per_sample={"size": [[9.0, 8.0], [8.0, 31.0], [27.0, 4.0], [7.0, 11.0]]},
    )
    for kind in DALIInterpType
    for antialias in (True, False)
    for dtype in (np.uint8, np.float32)
]
CASES = FILTERS + KEPT + SIZES + REGIONS + LAYOUTS


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


@pytest.mark.parametrize("reference", [False, True])
def test_a_region_far_outside_shows_the_edge(reference):
    data = image(np.uint8, 9, 8, 3)
    arguments = {"size": [3.0, 4.0], "roi_start": [-30.0, 20.0], "roi_end": [-10.0, 60.0]}
    result = run_operator("resize", [data], reference=reference, **arguments)[0].tensor.numpy()
    np.testing.assert_array_equal(result, np.broadcast_to(data[0, -1], (3, 4, 3)))


def test_a_cropped_view_is_resized_like_its_copy_and_not_changed():
    data = image(np.uint8, 40, 50, 3)
    before = data.copy()
    view = data[3:33, 5:45]
    for size in ([11.0, 13.0], [60.0, 70.0]):
        got, expected = run_operator("resize", [view, view.copy()], size=size)
        np.testing.assert_array_equal(got.array, expected.array)
    np.testing.assert_array_equal(data, before)


def test_infinities_reach_only_the_pixels_that_see_them():
    data = np.zeros((1, 64, 1), np.float32)
    data[0, 0] = np.inf
    result = run_operator("resize", [data], size=[1.0, 8.0])[0].tensor.numpy()
    assert np.isinf(result[0, 0, 0])
    np.testing.assert_array_equal(result[0, 2:], 0)


def refused(error, match, data=None, layout="HWC", **arguments):
    data = np.zeros((10, 12, 3), np.uint8) if data is None else data
    with pytest.raises(error, match=match):
        run_operator("resize", [data], layout=layout, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"resize_x": 5.0, "size": [4.0, 4.0]},
        {"resize_x": 5.0, "resize_longer": 4.0},
        {"resize_shorter": 5.0, "resize_longer": 4.0},
        {"per_sample": {"resize_x": [5.0]}, "size": 4.0},
    ],
    ids=str,
)
def test_the_size_must_be_given_in_one_way(arguments):
    refused(ArgumentError, "exactly one way", **arguments)


def test_bad_sizes_and_regions_are_refused():
    refused(ArgumentError, "leave out 'mode'", resize_shorter=5.0, mode="stretch")
    refused(ArgumentError, "must be one of", resize_x=5.0, mode="larger")
    refused(ArgumentError, "'size' takes one finite number or 2", size=[1.0, 2.0, 3.0])
    refused(ArgumentError, "'size' takes one finite number or 2", size=[np.nan, 2.0])
    refused(ArgumentError, "'max_size' takes", size=4.0, max_size=[1.0, 2.0, 3.0])
    refused(ArgumentError, "both 'roi_start' and 'roi_end'", size=4.0, roi_end=[4.0, 4.0])
    refused(ArgumentError, "'roi_end' takes", size=4.0, roi_start=1.0, roi_end=[1.0, np.inf])
    refused(ArgumentError, "without extent", resize_x=4.0, roi_start=1.0, roi_end=[4.0, 1.0])


def test_data_that_cannot_be_resized_is_refused():
    for dtype in (np.int8, np.int32, np.float64, np.float16, bool):
        refused(ValueError, "convert it with fn.cast", np.zeros((4, 5, 3), dtype), size=3.0)
    refused(ValueError, "'dtype' can be", size=3.0, dtype=types.INT16)
    refused(ValueError, "2 axes", np.zeros((4, 5), np.uint8), "HW", size=3.0)
    refused(ValueError, "2 axes", np.zeros((4, 5), np.uint8), "", size=3.0)
