from __future__ import annotations

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import Case

X = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def case(*samples, layout="HWC", **arguments):
    return Case("expand_dims", [list(samples or (X,))], arguments, layout=layout)


CASES = [
    case(axes=[0]),
    case(axes=1),
    case(axes=[0, 2]),
    case(axes=[3]),
    case(axes=[4, 0]),
    case(axes=[]),
    case(axes=[0], layout=""),
    case(axes=[0], new_axis_names="F"),
    case(axes=[0, 3], new_axis_names="AB"),
    case(axes=[3, 0], new_axis_names="AB"),
    case(axes=[1, 2], new_axis_names="AB"),
    case(axes=[4, 3], new_axis_names="AB"),
    case(axes=[0], new_axis_names="H"),
    case(X, X[:1].copy(), axes=[1]),
    case(np.array(3, np.uint8), axes=[0], layout=""),
    case(np.array(3, np.uint8), axes=[0], new_axis_names="F", layout=""),
    case(X.astype(np.uint16), axes=[0]),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "needs the argument 'axes'"),
        ({"axes": [-1]}, "must not be negative"),
        ({"axes": [4]}, "cannot be inserted at 4"),
        ({"axes": [0, 5]}, "cannot be inserted at 5"),
        ({"axes": [0, 0]}, "one axis twice"),
        ({"axes": [0], "new_axis_names": "FG"}, "a letter for each of 1 new axes"),
        ({"axes": [0, 1], "new_axis_names": "F"}, "a letter for each of 2 new axes"),
        ({"axes": [0], "new_axis_names": "F", "layout": ""}, "needs data with a layout"),
    ],
)
def test_axes_that_cannot_be_inserted_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        run_operator("expand_dims", [X], **{"layout": "HWC", **arguments})
