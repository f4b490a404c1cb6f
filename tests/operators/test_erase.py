from __future__ import annotations

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import Case

A = np.arange(1, 41, dtype=np.uint8).reshape(4, 5, 2)
B = np.arange(1, 85, dtype=np.uint8).reshape(6, 7, 2)


def floats(*values):
    return np.array(values, np.float32)


def case(*samples, layout="HWC", per_sample=None, **arguments):
    return Case("erase", [list(samples or (A, B))], arguments, per_sample or {}, layout)


def ramp(extent):
    return np.ones((extent, 1, 1), np.uint8)


CASES = [
    case(),
    case(anchor=[1, 1], shape=[2, 2]),
    case(anchor=[1.6, 1], shape=[1.5, 2]),
    case(shape=[2, 2]),
    case(anchor=[0, 0, 2, 3], shape=[1, 1, 2, 2]),
    case(anchor=[0, 1], shape=[1, 1], axes=[0]),
    case(anchor=[1], shape=[1], axis_names="W"),
    case(anchor=[1], shape=[1], axis_names="C"),
    case(anchor=[1], shape=[1], axis_names="C", fill_value=[7, 8]),
    case(layout="", anchor=[1, 1], shape=[1, 1], axes=[1, 0]),
    case(anchor=[0, 1], shape=[1, 2], axes=[1, 0], axis_names="HW"),
    case(anchor=[0, 1], shape=[1, 2], axes=[1, 0]),
    case(anchor=[0, 1], shape=[1, 2], axis_names="WH"),
    case(anchor=[-1, -1], shape=[2, 2]),
    case(anchor=[3, 3], shape=[20, 20]),
    case(anchor=[9, 9], shape=[2, 2]),
    case(anchor=[1, 1], shape=[-1, 2]),
    case(anchor=[0.5, 0.5], shape=[0.5, 0.4], normalized=True),
    case(anchor=[0.3, 0.3], shape=[0.3, 0.3], normalized=True),
    case(anchor=[0.5, 0.5], shape=[1, 1], normalized_anchor=True),
    case(anchor=[1, 1], shape=[0.5, 0.4], normalized_shape=True),
    case(anchor=[2, 2], shape=[2, 2], centered_anchor=True),
    case(anchor=[2, 2], shape=[3, 3], centered_anchor=True),
    case(anchor=[0, 0], shape=[3, 3], centered_anchor=True),
    case(anchor=[0.5, 0.5], shape=[0.5, 0.5], centered_anchor=True, normalized=True),
    case(anchor=[1, 1], shape=[2, 2], fill_value=300),
    case(anchor=[1, 1], shape=[2, 2], fill_value=-5),
    case(anchor=[1, 1], shape=[2, 2], fill_value=[]),
    case(anchor=[1, 1], shape=[2, 2], fill_value=[1, 2.7]),
    case(
        per_sample={
            "anchor": [floats(1, 1), floats(0, 0, 2, 2)],
            "shape": [floats(1, 1), floats(1, 1, 2, 2)],
            "fill_value": [floats(1, 2), floats(3, 4)],
        }
    ),
    *(
        case(A.astype(d), anchor=[1, 1], shape=[2, 2], fill_value=7.5)
        for d in (np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float32)
    ),
    case(np.ones((2, 4, 5, 3), np.uint8), layout="FHWC", shape=[2, 2], axis_names="HW"),
    case(np.ones((2, 4, 5, 3), np.uint8), layout="FHWC", anchor=[1, 1, 1], shape=[1, 2, 2]),
    case(np.ones((4, 5), np.uint8), layout="WH", anchor=[1, 2], shape=[2, 2]),
    case(np.ones((3, 4, 5), np.uint8), layout="CHW", shape=[2, 2], fill_value=[4, 5, 6]),
    # Whether a float32 product falls just below or just above a whole number decides these.
    case(
        *[ramp(37)] * 30,
        axis_names="H",
        normalized=True,
        per_sample={
            "anchor": [floats(k / 37) for k in range(30)],
            "shape": [floats(5 / 37)] * 30,
        },
    ),
    case(
        *[ramp(37)] * 30,
        axis_names="H",
        per_sample={
            "anchor": [floats(k - 0.1) for k in range(1, 31)],
            "shape": [floats(k * 0.1) for k in range(1, 31)],
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


def test_negative_axes_count_from_the_end():
    (got,) = run_operator("erase", [A], layout="HWC", anchor=[1], shape=[1], axes=[-1])
    assert not got.array[..., 1].any()
    np.testing.assert_array_equal(got.array[..., 0], A[..., 0])


@pytest.mark.parametrize("reference", [False, True])
def test_the_input_stays_as_it_is(reference):
    before = A.copy()
    run_operator("erase", [A], layout="HWC", shape=[2, 2], fill_value=9, reference=reference)
    np.testing.assert_array_equal(A, before)


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"anchor": [1, 1]}, "need 2 values for each region"),
        ({"anchor": [1], "shape": [2]}, "need 2 values for each region"),
        ({"anchor": [1, 1], "shape": [2] * 4}, "need 2 values for each region"),
        ({"shape": [2], "axis_names": "X"}, "no axis 'X'"),
        ({"shape": [2], "axes": [3]}, "axis 3 is out of range"),
        ({"shape": [2, 2], "axes": [0, 0]}, "one axis twice"),
        ({"shape": [2, 2], "layout": ""}, "needs 'axes'"),
        ({"shape": [2, 2], "fill_value": [1, 2, 3]}, "3 fill values"),
        ({"shape": [2], "axes": [0], "layout": "", "fill_value": [1, 2]}, "has no channels"),
        ({"shape": [1, 1], "normalized": True, "normalized_shape": False}, "not both"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, text, reference):
    with pytest.raises(ValueError, match=text):
        run_operator("erase", [A], **{"layout": "HWC", **arguments}, reference=reference)
