from __future__ import annotations

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import Case

A = np.arange(1, 7, dtype=np.uint8).reshape(2, 3)
B = np.arange(1, 9, dtype=np.uint8).reshape(4, 2)


def ints(*values):
    return np.array(values, np.int32)


def case(*samples, layout="", per_sample=None, **arguments):
    return Case("pad", [list(samples or (A, B))], arguments, per_sample or {}, layout)


CASES = [
    case(),
    case(layout="HW"),
    case(axes=[0]),
    case(axes=[-1]),
    case(axes=[]),
    case(layout="HW", axis_names="W"),
    case(layout="HW", axis_names=""),
    case(layout="HW", axis_names="WH", shape=[5, 6]),
    case(shape=[3]),
    case(shape=[3, 3]),
    case(shape=[-1, 5]),
    case(shape=[0, 5]),
    case(shape=[5], axes=[1]),
    case(align=[4]),
    case(align=[4, 2]),
    case(align=[1]),
    case(align=[4], shape=[1]),
    case(align=[4], shape=[5, 5]),
    case(align=[3], axes=[0], shape=[5]),
    case(fill_value=2.7),
    case(fill_value=300),
    case(fill_value=-1),
    case(per_sample={"fill_value": [9.0, 8.0]}),
    case(per_sample={"shape": [ints(3, 4), ints(5, 6)]}),
    case(per_sample={"shape": [ints(-1, 4), ints(-1, 6)]}),
    case(per_sample={"shape": [3, 5]}),
    case(per_sample={"align": [ints(3, 4), ints(5, 6)]}),
    case(per_sample={"axes": [ints(0), ints(1)]}),
    case(per_sample={"axes": [ints(0), ints(1)], "shape": [ints(7), ints(8)]}),
    *(
        case(A.astype(d), B.astype(d), fill_value=2.7)
        for d in (
            np.bool_,
            np.int8,
            np.uint16,
            np.uint32,
            np.int64,
            np.uint64,
            np.float16,
            np.float32,
        )
    ),
    case(np.zeros((0, 3), np.uint8), A),
    case(np.ones((2, 2, 2), np.uint8), layout="HWC", shape=[3, 3], axis_names="HW"),
    case(np.ones((1, 1, 2, 2, 2), np.uint8), shape=[2]),
    case(np.arange(5, dtype=np.float32), np.arange(3, dtype=np.float32), fill_value=-1.0),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def test_samples_that_are_large_enough_are_not_copied():
    got = run_operator("pad", [A, A])
    assert np.shares_memory(got[0].array, A)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"axes": [2]}, "axis 2 is out of range"),
        ({"axes": [0, -2]}, "one axis twice"),
        ({"axis_names": "X"}, "no axis 'X'"),
        ({"axes": [0], "axis_names": "H"}, "either 'axes' or"),
        ({"shape": [3, 3, 3]}, "'shape' takes one value or 2"),
        ({"align": [4, 4, 4]}, "'align' takes one value or 2"),
        ({"align": [0]}, "must be positive"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        run_operator("pad", [A, B], layout="HW", **arguments)
