from __future__ import annotations

import numpy as np
import pytest

from draws import check_distribution, check_form, check_frequencies, normal_cumulative
from forebay import types
from forebay.operators._operator import discover
from forebay.testing import run_operator

from oracle import Case

INTEGERS = [t for t in types.DALIDataType if types.UINT8 <= t <= types.INT64]
MANY = 100_000


def draw(shape=(MANY,), **arguments):
    [sample] = run_operator("random.normal", batch_size=1, shape=shape, **arguments)
    return sample.array


FORMS = [
    *(
        Case("random.normal", [], {"dtype": t, "mean": 5.0}, batch_size=3)
        for t in (*INTEGERS, types.FLOAT, types.FLOAT64)
    ),
    *(Case("random.normal", [], {"shape": s}, batch_size=2) for s in ([], [0], [2, 3], 4)),
    Case("random.normal", [[np.zeros((2, 3), np.uint8), np.zeros((1, 4), np.uint8)]], layout="HW"),
    Case("random.normal", [], per_sample={"mean": [1.0, 2.0], "stddev": [1.0, 2.0]}),
    Case("random.normal", [], per_sample={"shape": [np.int32([2, 3]), np.int32([4, 1])]}),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", FORMS, ids=str)
def test_shape_type_and_layout_are_dalis(case):
    check_form(case)


@pytest.mark.parametrize("dtype", [types.FLOAT, types.FLOAT64])
def test_numbers_are_normally_distributed(dtype):
    drawn = draw(mean=3.0, stddev=2.0, dtype=dtype)
    check_distribution(drawn, normal_cumulative(3, 2))


def test_mean_0_and_deviation_1_are_the_defaults():
    check_distribution(draw(), normal_cumulative(0, 1))


def test_a_negative_deviation_mirrors_the_distribution():
    check_distribution(draw(mean=3.0, stddev=-2.0), normal_cumulative(3, 2))


def test_single_numbers_follow_the_same_rule():
    samples = run_operator("random.normal", batch_size=20_000, mean=-1.0)
    check_distribution(np.array([s.array for s in samples]), normal_cumulative(-1, 1))


def test_integers_are_rounded():
    below = normal_cumulative(0, 1)(np.array([-1.5, -0.5, 0.5, 1.5]))
    drawn = np.clip(draw(dtype=types.INT8), -2, 2)
    expected = {-2: below[0], -1: below[1] - below[0], 0: below[2] - below[1]}
    check_frequencies(drawn, {**expected, 1: below[3] - below[2], 2: 1 - below[3]})


@pytest.mark.parametrize("shape", [(3,), None])
@pytest.mark.parametrize(
    ("mean", "dtype", "expected"),
    [
        (2.5, types.INT32, 3),
        (-2.5, types.INT64, -3),
        (-2.5, types.UINT8, 0),
        (300.0, types.UINT8, 255),
        (np.inf, types.INT16, 32767),
        (np.nan, types.INT16, 0),
    ],
)
def test_integers_are_rounded_away_from_zero_and_clamped(shape, mean, dtype, expected):
    assert (draw(shape=shape, mean=mean, stddev=0.0, dtype=dtype) == expected).all()


@pytest.mark.parametrize("dtype", [types.FLOAT16, types.BOOL])
def test_a_type_that_is_not_supported_is_refused(dtype):
    with pytest.raises(ValueError, match="'dtype' must be one of"):
        draw(dtype=dtype)


def test_a_shape_and_an_input_exclude_each_other():
    with pytest.raises(ValueError, match="not both"):
        run_operator("random.normal", [np.zeros(3)], shape=[3])


def test_the_old_name_is_the_same_operator():
    assert discover()["normal_distribution"] is discover()["random.normal"]
