from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.testing import run_operator

from oracle import ARITHMETIC, EXACT, Case, Tolerance

rng = np.random.default_rng(8)
X = np.array([[1, 2, 3], [4, 5, 60]], np.uint8)
Y = np.array([[7, 8], [9, 1], [3, 3]], np.uint8)
BIG = [(rng.random((17, 23, 3)) * 255).astype(np.uint8) for _ in range(2)]


NEAR = Tolerance(usual=1e-5, worst=1e-5, relative=1e-5)
"""Next to zero the float32 rounding of the mean of three nearly equal values shows."""


def floats(*shape, values):
    return np.array(values, np.float32).reshape(shape)


ROWS = [floats(1, 3, values=[1, 2, 3]), floats(1, 2, values=[2, 1])]
COLUMNS = [floats(2, 1, values=[1, 2]), floats(3, 1, values=[2, 0, 3])]


def case(*samples, layout="HW", per_sample=None, tolerance=ARITHMETIC, **arguments):
    return Case(
        "normalize", [list(samples or (X, Y))], arguments, per_sample or {}, layout, tolerance
    )


CASES = [
    case(),
    case(layout=""),
    case(batch=True),
    case(axes=[0]),
    case(axes=[1]),
    case(axes=[0, 1]),
    case(axis_names="W"),
    case(axis_names="WH"),
    case(X, X + 1, axes=[0], batch=True),
    case(X, X + 3, axes=[0], batch=True, ddof=1),
    case(*BIG, layout="HWC"),
    case(*BIG, layout="HWC", axes=[0, 1]),
    case(*BIG, layout="HWC", axis_names="HW", batch=True),
    case(*BIG, layout="HWC", axis_names="C", tolerance=NEAR),
    case(mean=2.0),
    case(mean=2.0, axes=[0]),
    case(mean=2.0, batch=True),
    case(stddev=2.0),
    case(stddev=-2.0),
    case(stddev=2.0, axes=[0]),
    case(stddev=2.0, ddof=1),
    case(stddev=2.0, epsilon=1.0),
    case(mean=2.0, stddev=2.0),
    case(mean=2.0, stddev=2.0, batch=True),
    case(mean=1.0, stddev=0.0),
    case(ddof=1),
    case(ddof=1, mean=2.0),
    case(ddof=1, batch=True),
    case(ddof=6),
    case(ddof=2, axes=[0]),
    case(ddof=-1),
    *(
        case(floats(n, 3, values=[v * v for v in range(3 * n)]), axes=[0], ddof=d, epsilon=e)
        for n in (1, 2)
        for d in (0, 1, 2)
        for e in (0.0, 0.5)
    ),
    case(ddof=6, epsilon=0.5),
    case(ddof=12, epsilon=0.5, batch=True),
    case(ddof=6, epsilon=0.5, mean=2.0),
    case(ddof=2, epsilon=0.5, axes=[0], per_sample={"mean": ROWS}),
    case(epsilon=1.0),
    case(epsilon=-1.0),
    case(scale=2.0, shift=3.0),
    case(dtype=types.UINT8, scale=10, shift=100, tolerance=EXACT),
    case(dtype=types.INT8, scale=100, tolerance=EXACT),
    case(dtype=types.INT32, scale=100, tolerance=EXACT),
    *(
        case(X.astype(d), Y.astype(d))
        for d in (np.int8, np.int16, np.uint16, np.int32, np.uint32, np.float32)
    ),
    case(per_sample={"mean": ROWS}),
    case(per_sample={"mean": ROWS}, axes=[0]),
    case(per_sample={"mean": ROWS, "stddev": ROWS}),
    case(per_sample={"stddev": COLUMNS}),
    case(per_sample={"stddev": COLUMNS}, axes=[1]),
    case(per_sample={"stddev": COLUMNS}, mean=2.0),
    case(per_sample={"stddev": COLUMNS}, mean=2.0, axes=[1]),
    case(per_sample={"mean": [floats(1, 1, values=[1]), floats(1, 1, values=[2])]}),
    case(np.zeros((0, 3), np.uint8)),
    case(np.zeros((2, 3), np.uint8), shift=5.0),
    case(np.float32([1, 2]), np.float32([3, 3]), layout=""),
    case(X[:, None], X[:, None] + 1, layout="", axes=[0, 2]),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def test_the_formula_is_the_documented_one():
    x = rng.random((4, 5))
    got = run_operator("normalize", [x], axes=[0], ddof=1, epsilon=0.01, scale=2, shift=3)
    expected = (x - x.mean(0)) / np.sqrt(x.var(0, ddof=1) + 0.01) * 2 + 3
    np.testing.assert_allclose(got[0].array, expected, rtol=1e-5)


def test_types_that_dali_refuses_are_taken():
    for dtype in (np.float64, np.float16, np.int64, np.uint64):
        got = run_operator("normalize", [X.astype(dtype)], dtype=types.FLOAT64)
        x = X.astype(float)
        np.testing.assert_allclose(got[0].tensor.numpy(), (x - x.mean()) / x.std(), rtol=1e-5)


def test_a_mean_of_the_datas_shape_is_subtracted():
    mean = [np.float32([[1, 1]])]
    (got,) = run_operator(
        "normalize", [np.float32([[1, 5]])], stddev=2.0, per_sample={"mean": mean}
    )
    assert got.array.tolist() == [[0, 2]]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"axes": [-1]}, "axis -1 is out of range"),
        ({"axes": [2]}, "axis 2 is out of range"),
        ({"axes": [0, 0]}, "one axis twice"),
        ({"axes": []}, "at least one axis"),
        ({"axis_names": "X"}, "no axis 'X'"),
        ({"axes": [0], "axis_names": "H"}, "either 'axes' or"),
        ({"mean": 2.0, "stddev": 2.0, "axes": [0]}, "no axes to reduce"),
        ({"mean": [1.0, 2.0]}, "single numbers"),
        ({"mean": "1"}, "takes a value"),
        ({"axes": [0], "batch": True}, "same extents"),
        ({"batch": True, "per_sample": {"mean": ROWS}}, "batch=True"),
        ({"axes": [1], "per_sample": {"mean": ROWS}}, "averaging over"),
        ({"per_sample": {"mean": [np.float32([1, 2, 3])] * 2}}, "does not fit"),
        ({"per_sample": {"mean": [np.float32([[1, 2]])] * 2}}, "does not fit"),
        ({"per_sample": {"mean": [np.int32([[1]])] * 2}}, "takes FLOAT values"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        run_operator("normalize", [X, Y], layout="HW", **arguments)
