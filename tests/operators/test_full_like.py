from __future__ import annotations

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import Case

DTYPES = [
    *["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"],
    *["float16", "float32", "float64"],
]
FILLS = [np.array(v, d) for v, d in ((300.5, "f4"), (-2.5, "f4"), (0.4, "f4"), (-1, "i4"))]


def like(dtype, fill, *shape):
    layout = "" if shape else "HW"
    return Case("full_like", [[np.ones(shape or (2, 3), dtype)], [np.array(fill)]], layout=layout)


CASES = [
    *(like(dtype, fill) for dtype in DTYPES for fill in FILLS),
    like("uint8", np.float32([2.5, -3.5, 1.4])),
    like("int16", np.float32([[2.5], [-3.5]])),
    like("uint8", np.float32([[2.5, 7.0, 1.0]]), 3),
    like("uint8", np.float32([3]), 0, 2),
    like("uint8", np.float32(3)),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("shape", [(2,), (2, 2), (2, 2, 3)])
def test_a_value_that_cannot_be_broadcast_is_refused(shape):
    with pytest.raises(ValueError, match="cannot be broadcast"):
        run_operator("full_like", [np.zeros((2, 3))], [np.zeros(shape)])
