from __future__ import annotations

import numpy as np
import pytest

from draws import check_distribution, check_form, check_frequencies
from forebay import types
from forebay.operators._operator import discover
from forebay.testing import run_operator

from oracle import Case

INTEGERS = [t for t in types.DALIDataType if types.UINT8 <= t <= types.INT64]
MANY = 200_000


def draw(shape=(MANY,), **arguments):
    [sample] = run_operator("random.uniform", batch_size=1, shape=shape, **arguments)
    return sample.array


FORMS = [
    *(
        Case("random.uniform", [], {"dtype": t, "range": [0, 4]}, batch_size=3)
        for t in (*INTEGERS, types.FLOAT, types.FLOAT64)
    ),
    *(
        Case("random.uniform", [], {"shape": shape}, batch_size=2)
        for shape in ([], [0], [2, 0], [2, 3], 4, [1])
    ),
    Case("random.uniform", [], {"values": [1.5, 2.5], "dtype": types.INT16}, batch_size=2),
    Case("random.uniform", [], {"values": 3.0, "shape": [2]}, batch_size=2),
    Case("random.uniform", [[np.zeros((2, 3), np.uint8), np.zeros((1, 4), np.uint8)]], layout="HW"),
    Case("random.uniform", [[np.uint8(3), np.uint8(4)]]),
    Case("random.uniform", [], per_sample={"shape": [np.int32([2, 3]), np.int32([4, 1])]}),
    Case("random.uniform", [], per_sample={"range": [np.float32([0, 1]), np.float32([5, 6])]}),
    Case("random.uniform", [], per_sample={"values": [np.float32([0]), np.float32([5, 6, 7])]}),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", FORMS, ids=str)
def test_shape_type_and_layout_are_dalis(case):
    check_form(case)


@pytest.mark.parametrize("dtype", [types.FLOAT, types.FLOAT64])
def test_all_numbers_of_a_range_are_equally_likely(dtype):
    drawn = draw(range=[-3, 5], dtype=dtype)
    assert drawn.min() >= -3
    assert drawn.max() < 5
    check_distribution(drawn, lambda x: (x + 3) / 8)


def test_the_range_is_from_minus_one_to_one_by_default():
    check_distribution(draw(), lambda x: (x + 1) / 2)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_real_number_is_rounded_to_an_integer(dtype):
    drawn = draw(range=[0, 4], dtype=dtype)
    check_frequencies(drawn, {0: 1 / 8, 1: 1 / 4, 2: 1 / 4, 3: 1 / 4, 4: 1 / 8})


def test_single_numbers_follow_the_same_rule():
    samples = run_operator("random.uniform", batch_size=20_000, range=[-2, 2], dtype=types.INT32)
    drawn = np.array([sample.array for sample in samples])
    check_frequencies(drawn, {-2: 1 / 8, -1: 1 / 4, 0: 1 / 4, 1: 1 / 4, 2: 1 / 8})
    samples = run_operator("random.uniform", batch_size=20_000, range=[2, 3])
    check_distribution(np.array([sample.array for sample in samples]), lambda x: x - 2)


def test_the_values_of_a_list_are_equally_likely():
    check_frequencies(draw(values=[1.5, 2, 7, 7]), {1.5: 1 / 4, 2: 1 / 4, 7: 1 / 2})
    samples = run_operator("random.uniform", batch_size=20_000, values=[1, 9])
    check_frequencies(np.array([sample.array for sample in samples]), {1: 1 / 2, 9: 1 / 2})


def test_the_values_of_a_list_are_rounded_and_clamped_to_the_type():
    drawn = draw(values=[-1.5, 2.5, 300], dtype=types.UINT8)
    check_frequencies(drawn, {0: 1 / 3, 3: 1 / 3, 255: 1 / 3})


def test_the_upper_end_is_not_drawn_even_where_rounding_would_reach_it():
    high = float(np.nextafter(np.float32(1), np.float32(2)))
    assert (draw(range=[1, high], shape=(1000,)) == 1).all()


def test_each_sample_has_its_own_range_and_shape():
    a, b = run_operator(
        "random.uniform",
        per_sample={
            "range": [np.float32([0, 1]), np.float32([5, 6])],
            "shape": [np.int32([2]), np.int32([3])],
        },
    )
    assert a.shape == (2,)
    assert b.shape == (3,)
    assert (a.array < 1).all()
    assert (b.array >= 5).all()


@pytest.mark.parametrize(
    "bounds", [[3, 3], [4, 3], [3], 3.0, [1, 2, 3], [0, np.nan], [0, np.inf], []]
)
def test_an_empty_range_is_refused(bounds):
    with pytest.raises(ValueError, match="'range' takes two finite numbers"):
        draw(range=bounds)


def test_an_empty_range_of_one_sample_is_refused():
    with pytest.raises(ValueError, match="'range' takes two finite numbers"):
        run_operator("random.uniform", per_sample={"range": [np.float32([1, 1])]})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": types.UINT8}, "beyond UINT8, which holds 0 to 255"),
        ({"dtype": types.UINT8, "range": [0, 1000]}, "beyond UINT8"),
        ({"dtype": types.INT32, "range": [0, 2.0**40]}, "beyond INT32"),
        ({"dtype": types.FLOAT16}, "'dtype' must be one of"),
        ({"dtype": types.BOOL}, "'dtype' must be one of"),
        ({"values": []}, "at least one number"),
        ({"shape": [2, -1]}, "negative"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        run_operator("random.uniform", batch_size=1, **arguments)


def test_the_values_of_one_sample_cannot_be_none():
    with pytest.raises(ValueError, match="at least one number"):
        run_operator("random.uniform", per_sample={"values": [np.float32([])]})


def test_the_whole_range_of_an_integer_type_can_be_drawn():
    drawn = draw(range=[0, 2**31 - 1], dtype=types.INT32, shape=(1000,))
    assert drawn.min() >= 0
    assert drawn.max() > 2**30


def test_a_shape_and_an_input_exclude_each_other():
    with pytest.raises(ValueError, match="not both"):
        run_operator("random.uniform", [np.zeros(3)], shape=[3])


def test_the_old_name_is_the_same_operator():
    assert discover()["uniform"] is discover()["random.uniform"]
