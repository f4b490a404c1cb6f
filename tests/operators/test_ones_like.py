from __future__ import annotations

import numpy as np
import pytest

from forebay import types

from oracle import Case

DTYPES = [
    *["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"],
    *["float16", "float32", "float64"],
]
CASES = [
    *(
        Case("ones_like", [[np.full((2, 3), 7, d), np.full((1, 2), 7, d)]], layout="HW")
        for d in DTYPES
    ),
    Case("ones_like", [[np.full((2, 3), 7, np.int32)]], {"dtype": types.UINT8}, layout="HW"),
    Case("ones_like", [[np.full((2, 3), 7, np.uint8)]], {"dtype": types.FLOAT16}),
    Case("ones_like", [[np.array(5, np.int32)]]),
    Case("ones_like", [[np.zeros((0, 3), np.int32)]]),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()
