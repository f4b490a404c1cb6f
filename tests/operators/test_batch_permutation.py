from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from forebay import types
from forebay.operators.batch_permutation import batch_permutation
from forebay.testing import run_operator


def draw(size, seed=0, **arguments):
    got = run_operator(batch_permutation, batch_size=size, seed=seed, **arguments)
    assert all(sample.shape == () and sample.dtype == types.INT32 for sample in got)
    return tuple(sample.tensor.item() for sample in got)


def counts(size, **arguments):
    return Counter(draw(size, seed, **arguments) for seed in range(1200))


def dali_results(size, **arguments):
    from nvidia.dali import Pipeline, fn

    pipe = Pipeline(batch_size=size, num_threads=1, device_id=None, seed=1)
    with pipe:
        pipe.set_outputs(fn.batch_permutation(**arguments))
    return {tuple(np.array(pipe.run()[0].as_array()).tolist()) for _ in range(400)}


@pytest.mark.dali
@pytest.mark.parametrize(
    ("size", "arguments"),
    [
        (3, {}),
        (3, {"allow_repetitions": True}),
        (4, {"no_fixed_points": True}),
        (3, {"allow_repetitions": True, "no_fixed_points": True}),
        (1, {"no_fixed_points": True}),
        (1, {"allow_repetitions": True, "no_fixed_points": True}),
    ],
)
def test_the_possible_results_are_dalis_and_equally_likely(size, arguments):
    found = counts(size, **arguments)
    assert set(found) == dali_results(size, **arguments)
    mean = 1200 / len(found)
    chi_squared = sum((n - mean) ** 2 / mean for n in found.values())
    assert chi_squared < len(found) + 5 * (2 * len(found)) ** 0.5  # five standard deviations


def test_the_same_seed_gives_the_same_permutation():
    assert draw(50, seed=3) == draw(50, seed=3) != draw(50, seed=4)
    assert sorted(draw(50, seed=3)) == list(range(50))
