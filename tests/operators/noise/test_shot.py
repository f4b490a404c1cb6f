from __future__ import annotations

import math

import numpy as np
import pytest

from draws import check_form, check_frequencies
from forebay.testing import run_operator

from oracle import Case

TYPES = (
    np.uint8,
    np.int8,
    np.uint16,
    np.int16,
    np.uint32,
    np.int32,
    np.uint64,
    np.int64,
    np.float32,
)
FORMS = [
    *(Case("noise.shot", [[np.ones((3, 4, 3), d), np.ones((1, 2, 3), d)]]) for d in TYPES),
    *(
        Case("noise.shot", [[np.zeros(s, np.float32)]], layout=layout)
        for s, layout in (((3, 4), "HW"), ((3, 4, 5), "CHW"), ((12,), ""), ((), ""), ((0, 3), ""))
    ),
]
CERTAIN = [
    *(Case("noise.shot", [[np.zeros((4, 5, 3), d)]]) for d in TYPES),
    Case("noise.shot", [[np.full((4, 5, 3), -10, np.float32)]], {"factor": 3.0}),
    Case("noise.shot", [[np.full((4, 5, 3), -10, np.int16)]], {"factor": 3.0}),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", FORMS, ids=str)
def test_shape_type_and_layout_are_dalis(case):
    check_form(case)


@pytest.mark.dali
@pytest.mark.parametrize("case", CERTAIN, ids=str)
def test_what_is_dark_stays_dark(case):
    case.check_dali()


def poisson(mean, most):
    shares = {k: math.exp(-mean) * mean**k / math.factorial(k) for k in range(most)}
    return {**shares, most: 1 - sum(shares.values())}


@pytest.mark.parametrize(("value", "factor"), [(10, 5.0), (6, 20.0), (5, 1.0)])
def test_values_are_poisson_counts_times_the_factor(value, factor):
    [got] = run_operator("noise.shot", [np.full((200, 200, 3), value, np.float32)], factor=factor)
    counts = got.array / factor
    np.testing.assert_array_equal(counts, np.rint(counts))
    check_frequencies(np.minimum(counts, 8), poisson(value / factor, 8))


def test_integers_are_rounded_and_clamped():
    [got] = run_operator("noise.shot", [np.full((50, 50, 3), 10, np.uint8)], factor=2.5)
    assert set(np.unique(got.array)) <= {int(k * 2.5 + 0.5) for k in range(100)}
    [got] = run_operator("noise.shot", [np.full((50, 50, 3), 200, np.uint8)], factor=100.0)
    assert set(np.unique(got.array)) == {0, 100, 200, 255}


def test_every_channel_has_its_own_noise():
    [got] = run_operator("noise.shot", [np.full((100, 100, 3), 100, np.float32)])
    assert np.abs(np.corrcoef(got.array.reshape(-1, 3).T)[0, 1:]).max() < 0.1


def test_values_beyond_all_images_do_not_break_it():
    data = np.array([np.inf, np.nan, 1e38, -np.inf], np.float32)
    [got] = run_operator("noise.shot", [data], factor=1e-3)
    assert np.isfinite(got.array).all()


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_must_be_positive(factor):
    with pytest.raises(ValueError, match="'factor' must be positive"):
        run_operator("noise.shot", [np.ones((2, 2, 3), np.uint8)], factor=factor)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.bool_])
def test_a_type_that_is_not_supported_is_refused(dtype):
    with pytest.raises(ValueError, match="an integer type is needed"):
        run_operator("noise.shot", [np.zeros((2, 2, 3), dtype)])
