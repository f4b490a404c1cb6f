from __future__ import annotations

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import ARITHMETIC, Case

rng = np.random.default_rng(1)
DTYPES = [
    *["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"],
    "float32",
]


def case(dtype, shape, layout="", *, mean=None, keep_mean=False, **arguments):
    """A case with the true mean along the axes, unless a mean is given."""
    low = 0 if dtype.startswith("u") else -128
    data = rng.uniform(low, low + 255, shape).astype(dtype)
    axes = arguments.get("axes")
    along = None if axes is None else tuple(np.atleast_1d(axes).tolist())
    if mean is None:
        mean = data.mean(along, keepdims=keep_mean)
    inputs = [[data], [np.array(mean, np.float32)]]
    return Case("reductions.std_dev", inputs, arguments, layout=layout, tolerance=ARITHMETIC)


CASES = [
    *(case(d, (4, 5, 3), "HWC") for d in DTYPES),
    *(
        case("uint8", (4, 5, 3), "HWC", axes=axes, keep_dims=keep, keep_mean=keep_mean)
        for axes in (0, [1], [0, 1], [-1], [-1, 0])
        for keep in (False, True)
        for keep_mean in (False, True)
    ),
    *(case("float32", (4, 5), ddof=ddof) for ddof in (1, -1, 20)),
    case("uint8", (4, 5), mean=[7.0]),
    case("uint8", (4, 5), mean=[[7.0]]),
    case("float32", (300, 200)),
    case("float32", (0,), mean=1.0),
    case("int32", (2,), mean=3.0, ddof=2),
    case("float32", (2, 2), "HW", mean=[1.5, 4], axis_names="W"),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def test_one_mean_serves_all_rows():
    data = np.uint8([[1, 2], [3, 5]])
    (got,) = run_operator("reductions.std_dev", [data], [np.array(1, np.float32)], axes=1)
    np.testing.assert_allclose(
        got.tensor.numpy(), np.array([1 / 2, (4 + 16) / 2]) ** 0.5, rtol=1e-6
    )


def test_along_no_axes_it_is_the_deviation_itself():
    data, mean = np.float32([[1, 2], [3, 5]]), np.ones((2, 2), np.float32)
    (got,) = run_operator("reductions.std_dev", [data], [mean], axes=[])
    np.testing.assert_allclose(got.tensor.numpy(), np.array([[0, 1], [4, 16]]) ** 0.5, rtol=1e-6)


@pytest.mark.parametrize("mean", [(2,), (1, 3), (2, 3), (0,)])
def test_a_mean_of_another_shape_is_refused(mean):
    data = np.zeros((2, 3, 4), np.uint8)
    with pytest.raises(ValueError, match=r"the shape \[3, 4\] or \[1, 3, 4\]"):
        run_operator("reductions.std_dev", [data], [np.zeros(mean, np.float32)], axes=0)


@pytest.mark.parametrize("dtype", ["float64", "uint8", "float16"])
def test_a_mean_of_another_type_is_refused(dtype):
    with pytest.raises(TypeError, match="must be FLOAT"):
        run_operator("reductions.std_dev", [np.zeros(3, np.uint8)], [np.zeros((), dtype)])
