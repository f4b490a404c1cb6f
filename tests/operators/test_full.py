from __future__ import annotations

import numpy as np
import pytest

from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case

pair = np.array([3, 4], np.uint8)
CASES = [
    *(
        Case("full", [[np.array(1, d)]], {"shape": [2, 3], "layout": "HW"})
        for d in ("bool", "uint8", "uint16", "uint64", "int16", "float16", "float32", "float64")
    ),
    Case("full", [[pair]], {"shape": [2, 2]}),
    Case("full", [[pair]], {"shape": [2]}, layout="W"),
    Case("full", [[pair]], {"shape": [3, 2], "layout": "AB"}, layout="W"),
    Case("full", [[pair[:, None]]], {"shape": [2, 3]}),
    Case("full", [[pair[None]]], {"shape": [2]}),
    Case("full", [[pair[:1]]]),
    Case("full", [[pair[:1]]], {"shape": [0]}),
    Case("full", [[pair[:1], pair[1:]]], per_sample={"shape": [np.int32([1]), np.int32([3])]}),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize(
    ("value", "shape"), [((2,), (3,)), ((2,), ()), ((2, 2), (2,)), ((2, 1), (3, 2))]
)
def test_a_value_that_cannot_be_broadcast_is_refused(value, shape):
    with pytest.raises(ValueError, match="cannot be broadcast"):
        run_operator("full", [np.zeros(value)], shape=shape)


def test_an_impossible_shape_is_refused():
    with pytest.raises(ArgumentError, match="takes extents"):
        run_operator("full", [np.zeros(())], shape=[-1])
    with pytest.raises(ArgumentError, match="does not fit"):
        run_operator("full", [np.zeros(())], given={"shape": [2], "layout": "HW"})
    with pytest.raises(ArgumentError, match="does not fit"):
        run_operator("full", [np.zeros(())], given={"layout": "W"})
