from __future__ import annotations

import numpy as np
import pytest

from oracle import Case

X = np.array([[-1.5, 0.5, 2.5, 300.0]], np.float32)
CASES = [
    Case("cast_like", [[X], [np.zeros(2, d)]], layout=layout)
    for d in (np.uint8, np.int16, np.int64, np.float32, np.float64, np.bool_)
    for layout in ("", "HW")
    if not layout or d is np.uint8
]
CASES[1] = Case("cast_like", [[X, X + 1], [np.zeros((1, 2), np.uint8)] * 2])


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()
