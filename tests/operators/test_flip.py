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
    *(
        Case(
            "flip",
            [[image(np.uint8, *(5, 2, 3, 7, 4)[-len(layout) :])]],
            {"horizontal": h, "vertical": v, "depthwise": d},
            layout=layout,
        )
        for layout in ("CHW", "FHWC", "FCHW", "DHWC", "CDHW", "FDHWC", "FCDHW")
        for h, v, d in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1))
    ),
    Case("flip", [[image(np.uint8, 2, 3, 5, 3)]]),
    Case("flip", [[image(np.uint8, 2, 3, 4, 5, 3)]], {"depthwise": 1}),
    Case("flip", [[image(np.float32, 3, 5, 1)]], layout="HWC"),
    Case("flip", [[np.zeros((0, 5, 3), np.uint8)]]),
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


@pytest.mark.parametrize("layout", ["HW", "ABC", "HCX"])
def test_a_layout_that_is_no_images_is_refused(layout):
    with pytest.raises(ValueError, match="an image of layout"):
        run_operator("flip", [np.zeros((4, 5, 3)[: len(layout)], np.uint8)], layout=layout)


@pytest.mark.parametrize("reference", [False, True])
def test_the_input_stays_as_it_is(reference):
    x = image(np.uint8, 3, 4, 3)
    before = x.copy()
    run_operator("flip", [x], vertical=1, reference=reference)
    np.testing.assert_array_equal(x, before)


def test_types_that_dali_refuses_are_taken():
    for dtype in (np.bool_, np.float16):
        x = image(dtype, 3, 4, 3)
        (got,) = run_operator("flip", [x])
        np.testing.assert_array_equal(got.tensor.numpy(), x[:, ::-1])
