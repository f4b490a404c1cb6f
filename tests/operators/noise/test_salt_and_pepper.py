from __future__ import annotations

import numpy as np
import pytest

from draws import check_form, check_frequencies
from forebay.testing import run_operator

from oracle import Case

TYPES = (
    np.uint8,
    np.int8,
    np.uint16,
    np.int16,
    np.uint32,
    np.int32,
    np.uint64,
    np.int64,
    np.float32,
)
IMAGE = np.full((200, 300, 3), 50, np.uint8)
FORMS = [
    *(
        Case("noise.salt_and_pepper", [[np.ones((3, 4, 3), d), np.ones((1, 2, 3), d)]])
        for d in TYPES
    ),
    *(
        Case("noise.salt_and_pepper", [[np.zeros(s, np.float32)]], layout=layout)
        for s, layout in (
            ((3, 4), ""),
            ((3, 4, 5), "CHW"),
            ((2, 3, 4, 3), "FHWC"),
            ((12,), ""),
            ((0, 3), ""),
        )
    ),
]
# All pixels are replaced, by the same value.
CERTAIN = [
    *(
        Case(
            "noise.salt_and_pepper",
            [[np.ones((4, 5, 3), d)]],
            {"prob": 1.0, "salt_vs_pepper": share},
        )
        for d in TYPES
        for share in (0.0, 1.0)
    ),
    *(
        Case(
            "noise.salt_and_pepper",
            [[np.ones((4, 5, 3), np.uint8)]],
            {"prob": 1.0, "salt_vs_pepper": 1.0, "salt_val": value},
        )
        for value in (2.5, 300.0, -10.0)
    ),
    Case("noise.salt_and_pepper", [[np.full((4, 4, 3), 50, np.uint8)]], {"prob": 0.0}),
]


def draw(data=IMAGE, layout="HWC", **arguments):
    [got] = run_operator("noise.salt_and_pepper", [data], layout=layout, **arguments)
    return got.array


def same_along(axis, array):
    return bool((array == array.take([0], axis)).all())


@pytest.mark.dali
@pytest.mark.parametrize("case", FORMS, ids=str)
def test_shape_type_and_layout_are_dalis(case):
    check_form(case)


@pytest.mark.dali
@pytest.mark.parametrize("case", CERTAIN, ids=str)
def test_the_values_of_salt_and_pepper_are_dalis(case):
    case.check_dali()


@pytest.mark.parametrize("case", [*FORMS, *CERTAIN], ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


@pytest.mark.parametrize(("prob", "share"), [(0.05, 0.5), (0.3, 0.8), (1.0, 0.25)])
def test_salt_and_pepper_come_with_their_probability(prob, share):
    expected = {0: prob * (1 - share), 50: 1 - prob, 255: prob * share}
    drawn = draw(prob=prob, salt_vs_pepper=share)
    check_frequencies(drawn[..., 0], expected)
    drawn = draw(prob=prob, salt_vs_pepper=share, per_channel=True)
    check_frequencies(drawn, expected)


@pytest.mark.parametrize(
    ("shape", "layout", "axis"),
    [
        ((20, 30, 3), "HWC", 2),
        ((3, 20, 30), "CHW", 0),
        ((20, 30, 3), "", 2),
        ((2, 20, 30, 3), "FHWC", 3),
        ((20, 30), "", 1),
    ],
)
def test_the_channels_of_a_pixel_are_replaced_together(shape, layout, axis):
    data = np.full(shape, 50, np.uint8)
    drawn = draw(data, layout, prob=0.5)
    assert [same_along(i, drawn) for i in range(len(shape))] == [
        i == axis for i in range(len(shape))
    ]
    assert not same_along(axis, draw(data, layout, prob=0.5, per_channel=True))


def test_data_without_channels_is_replaced_element_by_element():
    drawn = draw(np.full((20, 30), 50, np.uint8), "HW", prob=0.5)
    assert not same_along(0, drawn)
    assert not same_along(1, drawn)


@pytest.mark.parametrize("reference", [True, False])
def test_a_single_number_is_replaced_too(reference):
    assert draw(np.array(5, np.uint8), "", prob=1.0, reference=reference) in (0, 255)


def test_each_sample_has_its_own_values():
    a, b = run_operator(
        "noise.salt_and_pepper",
        [IMAGE[:5, :5]] * 2,
        per_sample={"salt_val": [1.0, 2.0], "pepper_val": [1.0, 2.0]},
        prob=1.0,
    )
    assert (a.array == 1).all()
    assert (b.array == 2).all()


@pytest.mark.parametrize("name", ["prob", "salt_vs_pepper"])
@pytest.mark.parametrize("value", [-0.5, 1.5, float("nan")])
def test_what_is_no_probability_is_refused(name, value):
    with pytest.raises(ValueError, match=f"'{name}' must lie in"):
        draw(**{name: value})


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.bool_])
def test_a_type_that_is_not_supported_is_refused(dtype):
    with pytest.raises(ValueError, match="an integer type is needed"):
        draw(np.zeros((2, 2, 3), dtype))
