from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.testing import run_operator

from oracle import EXACT, Case, Tolerance

rng = np.random.default_rng(3)
PAD = {"out_of_bounds_policy": "pad"}
TRIM = {"out_of_bounds_policy": "trim_to_shape"}
A = np.arange(5 * 6 * 3, dtype=np.uint8).reshape(5, 6, 3)
B = np.arange(8 * 7 * 3, dtype=np.uint8).reshape(8, 7, 3)
V = np.arange(10, dtype=np.float32)


def ints(*values):
    return np.array(values, np.int32)


def floats(*values):
    return np.array(values, np.float32)


def case(data, *bounds, layout="HWC", per_sample=None, tolerance=EXACT, **arguments):
    data = data if isinstance(data, list) else [data]
    return Case(
        "slice",
        [data, *([b] * len(data) for b in bounds)],
        arguments,
        per_sample=per_sample or {},
        layout=layout,
        tolerance=tolerance,
    )


def halves(extent):
    """Relative positions whose products with the extent lie at halves, up to rounding."""
    return [(k + 0.5) / extent for k in range(1, extent - 1, 3)]


def ramp(extent):
    return np.arange(extent, dtype=np.uint16)[:, None, None]


CASES = [
    case([A, B], start=[1, 2], shape=[2, 2]),
    case([A, B], start=1, shape=[3]),
    case([A, B], start=[1, 2], end=[3, 4]),
    case([A, B], start=[1, 2]),
    case([A, B], end=[1, 2]),
    case([A, B], shape=[1, 2]),
    case([A, B], shape=[0, 2]),
    case([A, B], rel_shape=[0.5, 0.5]),
    case([A, B], rel_start=[0.5, 0.5]),
    case([A, B], rel_start=[0.5, 0.5], shape=[2, 2]),
    case([A, B], rel_start=[0.3, 0.3], rel_end=[0.7, 0.7]),
    case([A, B], rel_start=[0.3, 0.3], rel_shape=[0.4, 0.4]),
    case([A, B], start=[1, 1], rel_shape=[0.4, 0.4]),
    case([A, B], start=[1, 1], rel_end=[0.4, 0.4]),
    case([A, B], rel_start=[0.2, 0.2], end=[4, 4]),
    case(A, layout="", start=[1, 2], shape=[2, 2]),
    case(A, layout="", start=[1, 2], shape=[2, 2], axes=[0, 1]),
    case(A, layout="", start=[1, 2], shape=[2, 2], axis_names="HW"),
    case(A, start=[1, 2, 0], shape=[2, 2, 2], axes=[0, 1, 2]),
    case(A, start=[1, 1, 0], shape=[2, 2, 1], axes=[]),
    case(A, start=[1, 1, 0], shape=[2, 2, 1], axis_names=""),
    case(A, start=[1, 2], shape=[2, 2], axis_names="HW"),
    case(A, start=[1], shape=[2], axis_names="H"),
    case(A, start=[1], shape=[2], axes=[-1]),
    case(A, start=[1], shape=[2], axes=[-2]),
    case(A.transpose(2, 0, 1).copy(), layout="CHW", start=[1, 2], shape=[2, 1]),
    case(A.transpose(2, 0, 1).copy(), layout="CHW", start=[1, 2], shape=[2, 1], axes=[1, 0]),
    case(A, start=[-1, 0], shape=[2, 2], fill_values=[1, 2, 300], **PAD),
    case(A, start=[-1, 0], shape=[9, 9], fill_values=2.7, dtype=types.FLOAT, **PAD),
    case(A, start=[-1, 0], shape=[9, 9], dtype=types.FLOAT16, tolerance=Tolerance(1e-3), **PAD),
    case(A, start=[-1, 0], shape=[2, 2], **TRIM),
    case(A, start=[-3, 0], shape=[2, 2], **TRIM),
    case(A, start=[8, 0], shape=[2, 2], **TRIM),
    case(A, start=[8, 0], shape=[2, 2], fill_values=9, **PAD),
    case(A, start=[-3, -3], rel_shape=[0.75, 0.5], fill_values=255, **PAD),
    case([A, B], ints(1, 2), ints(2, 2)),
    case([A, B], np.array([1, 2]), np.array([2, 2])),
    case([A, B], floats(0.2, 0.4), floats(0.5, 0.5)),
    case([A, B], floats(0.2, 0.4), floats(2, 2), normalized_shape=False),
    case([A, B], floats(1, 2), floats(0.5, 0.5), normalized_anchor=False),
    case(
        [A, B], floats(1.5, 2.5), floats(2.5, 2.4), normalized_anchor=False, normalized_shape=False
    ),
    case(A, np.array(1, np.int32), np.array(2, np.int32), axes=[0]),
    case(A, ints(1, 2, 0), ints(2, 2, 2), axes=[0, 1, 2]),
    *(
        case([ramp(37)] * 12, axes=[0], per_sample={name: [floats(p) for p in halves(37)]})
        for name in ("rel_start", "rel_end", "rel_shape")
    ),
    case(
        [ramp(91)] * 26,
        axes=[0],
        per_sample={
            "rel_start": [floats(0.1)] * 26,
            "rel_shape": [floats(p - 0.1) for p in halves(91)[4:]],
        },
    ),
    Case(
        "slice",
        [
            [ramp(91)] * 26,
            [floats(p) for p in halves(91)[4:]],
            [floats(1 - p - 0.003) for p in halves(91)[4:]],
        ],
        {"axes": [0]},
        layout="HWC",
    ),
    case([A, B], per_sample={"start": [ints(1, 2), ints(0, 0)], "shape": [ints(1, 2), ints(2, 1)]}),
    case([A, B], per_sample={"start": [1, 0], "shape": [1, 2]}),
    case([A, B], start=1, shape=2, per_sample={"axes": [ints(0), ints(1)]}),
    case([A, B], shape=[1, 2], per_sample={"rel_start": [floats(0.1, 0.1), floats(0.2, 0.2)]}),
    *(
        case(A.astype(d), start=[1, 2], shape=[9, 9], fill_values=-3.5, **PAD)
        for d in (np.int8, np.uint16, np.int16, np.uint32, np.int64, np.uint64, np.float64)
    ),
    case(V, layout="", start=[1], shape=[2], axes=[0]),
    case(V, layout="", start=[1], shape=[20], axes=[0], fill_values=[7], **PAD),
    case(V, layout="W", start=[1], shape=[2], axis_names="W"),
    case(V.reshape(2, 5), layout="CB", start=[1], shape=[6], axes=[1], fill_values=[7, 8], **PAD),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def run(data, *bounds, layout="HWC", **arguments):
    return run_operator("slice", [data], *([b] for b in bounds), layout=layout, **arguments)[0]


def test_a_region_inside_the_data_is_a_view():
    assert np.shares_memory(run(A, start=1, shape=2).array, A)


def test_bools_are_sliced_too():
    got = run(A > 40, start=[1, 2], shape=[2, 2])
    np.testing.assert_array_equal(got.array, (A > 40)[2:4, 1:3])


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "slice needs bounds"),
        ({"start": [1, 2, 3], "shape": 2}, "'start' takes one value or 2"),
        ({"start": 1, "shape": 2, "end": 3}, "only one of 'end', 'shape'"),
        ({"start": 1, "rel_start": 0.5, "end": 3}, "only one of 'start', 'rel_start'"),
        ({"start": 1, "axes": [0], "axis_names": "H"}, "only one of 'axes', 'axis_names'"),
        ({"start": 1, "axis_names": "X"}, "no axis 'X'"),
        ({"start": 1, "axes": [3]}, "axis 3 is out of range"),
        ({"start": 1, "axes": [-4]}, "axis -4 is out of range"),
        ({"start": 1, "axes": [0, -3]}, "one axis twice"),
        ({"start": -1, "shape": 2}, "reaches outside"),
        ({"start": 3, "end": 2}, "must not be of size -1"),
        ({"start": 3, "shape": -1}, "must not be negative"),
        ({"rel_shape": [-0.1, 0.5]}, "must not be negative"),
        ({"rel_start": [0.5, 0.5], "rel_end": [0.3, 0.5]}, "must not be of size"),
        ({"start": 1, "out_of_bounds_policy": "wrap"}, "must be one of"),
        ({"shape": 9, "fill_values": [1, 2], **PAD}, "2 fill values"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(arguments, text, reference):
    with pytest.raises(ValueError, match=text):
        run(A, reference=reference, **arguments)


@pytest.mark.parametrize(
    ("bounds", "arguments", "text"),
    [
        ((ints(1, 2), floats(0.5, 0.5)), {}, "must both be"),
        ((np.uint8([1, 2]), np.uint8([1, 2])), {}, "must both be"),
        ((ints(1, 2),), {}, "both inputs"),
        ((ints(1), ints(2)), {}, "must have 2 elements"),
        ((ints(1, 2), ints(2, 2)), {"start": 1}, "not both"),
        ((floats(1, 2), floats(2, 2)), {}, "reaches outside"),
    ],
)
def test_input_bounds_that_make_no_sense_are_refused(bounds, arguments, text):
    with pytest.raises(ValueError, match=text):
        run(A, *bounds, **arguments)


def test_default_axes_need_a_width_and_a_height():
    with pytest.raises(ValueError, match="no axis 'W'"):
        run(V, layout="X", start=1)
    with pytest.raises(ValueError, match="axis 1 is out of range"):
        run(V, layout="", start=1)
