from __future__ import annotations

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import Case

X = np.arange(6, dtype=np.uint8).reshape(1, 2, 1, 3)


def case(*samples, layout="FHWC", **arguments):
    return Case("squeeze", [list(samples or (X,))], arguments, layout=layout)


CASES = [
    case(axes=[0]),
    case(axes=0),
    case(axes=[0, 2]),
    case(axes=[2, 0]),
    case(axes=[4]),
    case(axes=[0, 4]),
    case(axes=[]),
    case(axis_names="F"),
    case(axis_names="FW"),
    case(axis_names=""),
    case(axes=[0], layout=""),
    case(X, X[:, :, :, :2].copy(), axes=[0]),
    case(np.ones(1, np.uint8), axes=[0], layout="W"),
    case(np.ones((1, 0, 1), np.uint8), axes=[0], layout=""),
    case(np.ones((0, 3, 1), np.uint8), axes=[1], layout=""),
    case(np.ones((2, 0, 3), np.uint8), axes=[0], layout=""),
    case(X.astype(bool), axes=[0]),
    case(X.astype(np.uint64), axes=[0]),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def test_the_axes_may_differ_from_sample_to_sample():
    got = run_operator("squeeze", [X, X], per_sample={"axes": [np.int32([0]), np.int32([2])]})
    assert [sample.shape for sample in got] == [(2, 1, 3), (1, 2, 3)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "needs either"),
        ({"axes": [0], "axis_names": "F"}, "needs either"),
        ({"axes": [-2]}, "from 0, but got .-2.; the last axis of data with 4 axes is 3"),
        ({"axes": [0, -2]}, "from 0"),
        ({"axes": [1]}, "axis 1 of .* has 2"),
        ({"axis_names": "H"}, "axis 1 of .* has 2"),
        ({"axis_names": "X"}, "no axis 'X'"),
        ({"axes": [0, 0]}, "one axis twice"),
        ({"axis_names": "F", "layout": ""}, "no axis 'F'"),
    ],
)
def test_axes_that_cannot_be_removed_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        run_operator("squeeze", [X], **{"layout": "FHWC", **arguments})


def test_an_axis_without_elements_is_not_removed():
    with pytest.raises(ValueError, match=r"axis 1 of .* has 0"):
        run_operator("squeeze", [np.ones((1, 0, 1), np.uint8)], axes=[1])
