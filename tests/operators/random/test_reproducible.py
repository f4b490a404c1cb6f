"""What holds for every random operator: its numbers depend on the place they are drawn at only."""

from __future__ import annotations

import numpy as np
import pytest

from forebay.batch import Sample
from forebay.operators._operator import discover
from forebay.operators._rng import Rng

IMAGE = Sample(np.full((8, 8, 3), 100, np.uint8), "HWC")
OPERATORS = {
    "random.uniform": ([], {"shape": (64,)}),
    "random.normal": ([], {"shape": (64,)}),
    "random.coin_flip": ([], {"shape": (64,)}),
    "random.beta": ([], {"shape": (64,)}),
    "random.choice": ([Sample(np.array(1000))], {"shape": (64,)}),
    "noise.gaussian": ([IMAGE], {"stddev": 20.0}),
    "noise.shot": ([IMAGE], {}),
    "noise.salt_and_pepper": ([IMAGE], {"prob": 0.5}),
}
PLACES = [(1, 0, 0, 0), (2, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1)]


def draw(name, place):
    inputs, arguments = OPERATORS[name]
    return discover()[name](*inputs, rng=Rng(*place), **arguments).array


@pytest.mark.parametrize("name", OPERATORS)
def test_the_same_place_gives_the_same_numbers(name):
    first = [draw(name, place) for place in PLACES]
    again = [draw(name, place) for place in reversed(PLACES)]
    for a, b in zip(first, reversed(again), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", OPERATORS)
def test_another_key_epoch_batch_or_row_gives_other_numbers(name):
    drawn = [draw(name, place) for place in PLACES]
    for i, a in enumerate(drawn):
        assert not any(np.array_equal(a, b) for b in drawn[:i])


@pytest.mark.parametrize("name", OPERATORS)
def test_the_input_stays_as_it_was(name):
    draw(name, PLACES[0])
    assert (IMAGE.array == 100).all()
