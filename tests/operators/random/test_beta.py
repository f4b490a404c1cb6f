from __future__ import annotations

import numpy as np
import pytest

from draws import check_distribution, check_form
from forebay import types
from forebay.testing import run_operator

from oracle import Case

MANY = 100_000


def draw(shape=(MANY,), **arguments):
    [sample] = run_operator("random.beta", batch_size=1, shape=shape, **arguments)
    return sample.array


FORMS = [
    *(Case("random.beta", [], {"dtype": t}, batch_size=3) for t in (types.FLOAT, types.FLOAT64)),
    *(Case("random.beta", [], {"shape": s}, batch_size=2) for s in ([], [0], [2, 3], 4)),
    Case("random.beta", [[np.zeros((2, 3), np.uint8), np.zeros((1, 4), np.uint8)]]),
    Case("random.beta", [], per_sample={"alpha": [0.1, 1.0], "beta": [2.0, 1.0]}),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", FORMS, ids=str)
def test_shape_type_and_layout_are_dalis(case):
    check_form(case)


# For whole numbers and halves the cumulative function is elementary.
@pytest.mark.parametrize(
    ("arguments", "cumulative"),
    [
        ({}, lambda x: x),
        ({"alpha": 3.0}, lambda x: x**3),
        ({"beta": 3.0}, lambda x: 1 - (1 - x) ** 3),
        ({"alpha": 2.0, "beta": 2.0}, lambda x: 3 * x**2 - 2 * x**3),
        ({"alpha": 0.5, "beta": 0.5}, lambda x: 2 / np.pi * np.arcsin(np.sqrt(x))),
    ],
)
def test_numbers_are_beta_distributed(arguments, cumulative):
    check_distribution(draw(**arguments), cumulative)


def test_single_numbers_follow_the_same_rule():
    samples = run_operator("random.beta", batch_size=20_000, alpha=3.0)
    check_distribution(np.array([sample.array for sample in samples]), lambda x: x**3)


def test_tiny_parameters_give_zeros_and_ones():
    drawn = draw(alpha=1e-6, beta=1e-6, shape=(1000,))
    assert np.isin(drawn, (0, 1)).mean() > 0.99
    assert 0.3 < drawn.mean() < 0.7


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_parameters_must_be_positive(name, value):
    with pytest.raises(ValueError, match=f"'{name}' must be positive"):
        draw(**{name: value})
    with pytest.raises(ValueError, match=f"'{name}' must be positive"):
        run_operator("random.beta", per_sample={name: [value]})


@pytest.mark.parametrize("dtype", [types.INT32, types.FLOAT16])
def test_a_type_that_is_not_supported_is_refused(dtype):
    with pytest.raises(ValueError, match="'dtype' must be one of"):
        draw(dtype=dtype)
