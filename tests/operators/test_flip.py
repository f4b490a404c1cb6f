from __future__ import annotations

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import Case

rng = np.random.default_rng(1)


def image(dtype, *shape):
    return (rng.random(shape) * 200).astype(dtype)


DTYPES = [np.uint8, np.int16, np.uint16, np.float32, np.int64, np.uint32]
CASES = [
    *(Case("flip", [[image(d, 5, 7, 3), image(d, 2, 9, 3)]]) for d in DTYPES),
    *(
        Case("flip", [[image(np.uint8, 5, 6, c)]], {"horizontal": h, "vertical": v})
        for c in (1, 2, 3, 5)
        for h in (0, 1)
        for v in (0, 1)
    ),
    Case("flip", [[image(np.uint8, 3, 5, 7)]], {"vertical": 1}, layout="CHW"),
    Case("flip", [[image(np.uint8, 2, 3, 5, 3)]], {"vertical": 1}, layout="FHWC"),
    Case("flip", [[image(np.float32, 2, 3, 5, 3)]], {"depthwise": 1}, layout="DHWC"),
    Case(
        "flip",
        [[image(np.uint8, 4, 5, 3)] * 3],
        per_sample={"horizontal": [0, 1, 0], "vertical": [1, 1, 0]},
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def test_data_that_is_no_image_is_refused():
    with pytest.raises(ValueError, match="2 axes"):
        run_operator("flip", [np.zeros((4, 5), np.uint8)])
