from __future__ import annotations

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import Case

X = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def case(*samples, layout="HWC", **arguments):
    return Case("transpose", [list(samples or (X,))], arguments, layout=layout)


CASES = [
    case(),
    case(perm=[2, 0, 1]),
    case(perm=[2, 0, 1], layout=""),
    case(perm=[2, 0, 1], transpose_layout=False),
    case(perm=[2, 0, 1], output_layout="ABC"),
    case(perm=[2, 0, 1], output_layout="ABC", layout=""),
    case(perm=[2, 0, 1], output_layout="ABC", transpose_layout=False),
    case(output_layout="CHW"),
    case(X, X[:1].copy(), perm=[1, 0, 2]),
    case(X[0, 0].copy(), layout=""),
    case(np.array(3, np.uint8), layout=""),
    case(np.zeros((0, 3), np.float32), layout="HW"),
    *(
        case(X.astype(d), perm=[1, 0, 2])
        for d in (np.bool_, np.int16, np.uint16, np.uint32, np.int64, np.uint64, np.float16, float)
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


@pytest.mark.parametrize("perm", [[0, 1], [0, 1, 1], [0, 1, 3], [0, 1, -1], []])
def test_what_is_no_permutation_is_refused(perm):
    with pytest.raises(ValueError, match="must be a permutation of the axes 0 to 2"):
        run_operator("transpose", [X], perm=perm)


@pytest.mark.parametrize("layout", ["AB", "ABCD", ""])
def test_a_layout_that_does_not_fit_is_refused(layout):
    with pytest.raises(ValueError, match="needs 3 letters"):
        run_operator("transpose", [X], output_layout=layout)
