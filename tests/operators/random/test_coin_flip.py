from __future__ import annotations

import numpy as np
import pytest

from draws import check_form, check_frequencies
from forebay import types
from forebay.operators._operator import discover
from forebay.testing import run_operator

from oracle import Case

MANY = 100_000


def draw(shape=(MANY,), **arguments):
    [sample] = run_operator("random.coin_flip", batch_size=1, shape=shape, **arguments)
    return sample.array


FORMS = [
    *(
        Case("random.coin_flip", [], {"dtype": t, "shape": s}, batch_size=3)
        for t in (types.UINT8, types.INT32, types.BOOL)
        for s in ([], [4])
    ),
    *(Case("random.coin_flip", [], {"shape": s}, batch_size=2) for s in ([0], [2, 3], 4)),
    Case("random.coin_flip", [], batch_size=2),
    Case("random.coin_flip", [[np.zeros((2, 3), np.uint8), np.zeros((1, 4), np.uint8)]]),
    Case("random.coin_flip", [], per_sample={"probability": [0.1, 1.0]}),
    Case("random.coin_flip", [], per_sample={"shape": [np.int32([2, 3]), np.int32([4, 1])]}),
]
CERTAIN = [
    Case("random.coin_flip", [], {"probability": p, "shape": [20]}, batch_size=2)
    for p in (0.0, 1.0)
]


@pytest.mark.dali
@pytest.mark.parametrize("case", FORMS, ids=str)
def test_shape_type_and_layout_are_dalis(case):
    check_form(case)


@pytest.mark.dali
@pytest.mark.parametrize("case", CERTAIN, ids=str)
def test_what_is_certain_is_as_in_dali(case):
    case.check_dali()


@pytest.mark.parametrize("probability", [0.5, 0.1, 0.9])
def test_ones_come_with_the_given_probability(probability):
    expected = {0: 1 - probability, 1: probability}
    check_frequencies(draw(probability=probability), expected)
    samples = run_operator("random.coin_flip", batch_size=20_000, probability=probability)
    check_frequencies(np.array([sample.array for sample in samples]), expected)


def test_each_sample_has_its_own_probability():
    samples = run_operator("random.coin_flip", per_sample={"probability": [0.0, 1.0] * 20})
    assert [int(sample.array) for sample in samples] == [0, 1] * 20


def test_a_type_that_is_not_supported_is_refused():
    with pytest.raises(ValueError, match="'dtype' must be one of"):
        draw(dtype=types.FLOAT)


@pytest.mark.parametrize("probability", [-0.5, 1.5, float("nan")])
def test_what_is_no_probability_is_refused(probability):
    with pytest.raises(ValueError, match="'probability' must lie in"):
        draw(probability=probability)
    with pytest.raises(ValueError, match="'probability' must lie in"):
        run_operator("random.coin_flip", per_sample={"probability": [probability]})


def test_a_probability_must_be_float32():
    with pytest.raises(ValueError, match="FLOAT64"):
        run_operator("random.coin_flip", per_sample={"probability": [np.float64(0.5)]})


def test_the_old_name_is_the_same_operator():
    assert discover()["coin_flip"] is discover()["random.coin_flip"]
