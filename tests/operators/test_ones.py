from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case

DTYPES = [
    *[types.UINT8, types.UINT16, types.UINT32, types.UINT64, types.INT8, types.INT16],
    *[types.INT32, types.INT64, types.FLOAT16, types.FLOAT, types.FLOAT64, types.BOOL],
]
CASES = [
    *(
        Case("ones", [], {"shape": [2, 3], "dtype": d, "layout": "HW"}, batch_size=1)
        for d in DTYPES
    ),
    Case("ones", [], batch_size=2),
    Case("ones", [], {"shape": 3}, batch_size=1),
    Case("ones", [], {"shape": []}, batch_size=1),
    Case("ones", [], {"shape": [0, 3]}, batch_size=1),
    Case("ones", [], {"layout": "HW"}, {"shape": [np.int32([2, 1]), np.int32([1, 4])]}),
    Case("ones", [], per_sample={"shape": [np.int32(2), np.int32(3)]}),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("arguments", [{"shape": [-2, 3]}, {"shape": [2, 3], "layout": "H"}])
def test_an_impossible_shape_is_refused(arguments):
    with pytest.raises(ArgumentError, match=r"takes extents|does not fit"):
        run_operator("ones", batch_size=1, given=arguments)


def test_an_impossible_shape_of_a_sample_is_refused():
    with pytest.raises(ArgumentError, match="takes extents of 0 or more"):
        run_operator("ones", per_sample={"shape": [np.int32([-1])]})
    with pytest.raises(ArgumentError, match="layout 'H' does not fit"):
        run_operator("ones", per_sample={"shape": [np.int32([1, 1])]}, given={"layout": "H"})
