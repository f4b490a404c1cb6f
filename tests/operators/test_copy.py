from __future__ import annotations

import numpy as np
import pytest

from forebay.batch import Sample
from forebay.testing import run_operator

from oracle import Case

DTYPES = ["bool", "uint8", "uint16", "uint64", "int32", "float16", "float64"]
CASES = [
    *(Case("copy", [[np.ones((2, 3), d), np.ones((0, 3), d)]], layout="HW") for d in DTYPES),
    Case("copy", [[np.array(3, np.int32)]]),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def test_a_copy_has_memory_of_its_own():
    array = np.arange(6).reshape(2, 3)
    (copy,) = run_operator("copy", [Sample(array, "HW", "a.jpg")])
    copy.tensor.zero_()
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert copy.source == "a.jpg"


def test_a_copy_of_a_view_is_contiguous():
    (copy,) = run_operator("copy", [np.arange(6).reshape(2, 3).T])
    assert copy.tensor.is_contiguous()
    assert copy.tensor.tolist() == [[0, 3], [1, 4], [2, 5]]
