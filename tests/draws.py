"""Checks of random operators: their form against DALI's, their numbers against a distribution.

The bounds are Hoeffding's and the Dvoretzky–Kiefer–Wolfowitz inequality (with Massart's constant).
They hold for any number of draws, so that a right operator fails a check less often than once in
10^12 seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracle import Case, run_dali

RARE = 1e-12


def check_form(case: Case) -> None:
    """The shapes, element types and layouts are those that DALI gives."""
    for reference in (False, True):
        got = case.run(reference=reference)
        for samples, (arrays, layout) in zip(got, run_dali(case), strict=True):
            assert [s.shape for s in samples] == [a.shape for a in arrays], str(case)
            assert [s.array.dtype for s in samples] == [a.dtype for a in arrays], str(case)
            assert [s.layout for s in samples] == [layout] * len(arrays), str(case)


def check_frequencies(drawn: np.ndarray, expected: Mapping[Any, float]) -> None:
    """Nothing but the keys of `expected` was drawn, each about as often as its value says."""
    assert math.isclose(sum(expected.values()), 1)
    values, counts = np.unique(drawn, return_counts=True)
    found = dict(zip(values.tolist(), counts.tolist(), strict=True))
    assert set(found) <= {value for value, share in expected.items() if share > 0}
    bound = math.sqrt(math.log(2 * len(expected) / RARE) / (2 * drawn.size))
    for value, share in expected.items():
        got = found.get(value, 0) / drawn.size
        assert abs(got - share) <= bound, f"{value} drawn in {got:.4f}, not {share:.4f} of all"


def check_distribution(drawn: np.ndarray, cumulative: Callable[[np.ndarray], np.ndarray]) -> None:
    """The numbers follow a continuous distribution, given by its cumulative function."""
    sorted_ = np.sort(drawn.ravel().astype(np.float64))
    expected = cumulative(sorted_)
    count = sorted_.size
    above = np.abs(np.arange(1, count + 1) / count - expected).max()
    below = np.abs(np.arange(count) / count - expected).max()
    assert max(above, below) <= math.sqrt(math.log(2 / RARE) / (2 * count))


def normal_cumulative(mean: float, deviation: float) -> Callable[[np.ndarray], np.ndarray]:
    error_function = np.vectorize(math.erf)
    return lambda x: 0.5 * (1 + error_function((x - mean) / (deviation * math.sqrt(2))))
