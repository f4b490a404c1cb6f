from __future__ import annotations

import numpy as np
import pytest

from draws import check_form, check_frequencies
from forebay.testing import run_operator

from oracle import Case

MANY = 100_000
TABLE = np.arange(12).reshape(4, 3).astype(np.uint8)
VIDEO = np.arange(48).reshape(4, 2, 2, 3).astype(np.uint8)
LIKE = [np.zeros((2, 5), np.uint8)] * 2


def draw(a, **arguments):
    [sample] = run_operator("random.choice", [np.asarray(a)], **arguments)
    return sample.array


INTEGERS = (np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64)
FORMS = [
    *(Case("random.choice", [[np.array(5, d)] * 2]) for d in INTEGERS),
    *(
        Case("random.choice", [[np.array([1, 0], d)] * 2])
        for d in (*INTEGERS, np.float16, np.float32, np.float64, np.bool_)
    ),
    *(Case("random.choice", [[np.array(5)] * 2], {"shape": s}) for s in ([], [0], [2, 3], 4)),
    *(
        Case("random.choice", [[TABLE] * 2], {"shape": s} if s is not None else {}, layout=layout)
        for s in (None, [], [1], [5], [5, 2], 5)
        for layout in ("", "AB")
    ),
    *(
        Case("random.choice", [[VIDEO] * 2], {"shape": s} if s else {}, layout="FHWC")
        for s in (None, [2], [2, 2])
    ),
    Case("random.choice", [[np.arange(4)] * 2], {"shape": [3, 1]}, layout="A"),
    Case("random.choice", [[TABLE] * 2, LIKE]),
    Case("random.choice", [[np.array(5)] * 2, LIKE]),
    Case("random.choice", [[np.array(5)] * 2, [np.float32(3)] * 2]),
    Case(
        "random.choice", [[np.array(5)] * 2], per_sample={"shape": [np.int32([2]), np.int32([4])]}
    ),
    Case("random.choice", [[TABLE, TABLE[:2]]]),
]
CERTAIN = [
    Case("random.choice", [[np.array(3)]], {"shape": [5], "p": [0.0, 0.0, 1.0]}),
    Case("random.choice", [[np.array(1)]], {"shape": [5], "p": 1.0}),
    Case(
        "random.choice",
        [[np.array(2), np.array(3)]],
        per_sample={"p": [np.float32([0, 1]), np.float32([0, 0, 1])]},
    ),
    Case("random.choice", [[TABLE]], {"p": [0.0, 1.0, 0.0, 0.0]}, layout="AB"),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", FORMS, ids=str)
def test_shape_type_and_layout_are_dalis(case):
    check_form(case)


@pytest.mark.dali
@pytest.mark.parametrize("case", CERTAIN, ids=str)
def test_what_is_certain_is_as_in_dali(case):
    case.check_dali()


def test_all_numbers_below_the_count_are_equally_likely():
    check_frequencies(draw(4, shape=(MANY,)), dict.fromkeys(range(4), 0.25))
    samples = run_operator("random.choice", [np.array(4)] * 20_000)
    drawn = np.array([sample.array for sample in samples])
    check_frequencies(drawn, dict.fromkeys(range(4), 0.25))


def test_entries_come_with_their_probability():
    drawn = draw([10, 20, 30, 40], shape=(MANY,), p=[0.1, 0.2, 0.3, 0.4])
    check_frequencies(drawn, {10: 0.1, 20: 0.2, 30: 0.3, 40: 0.4})
    drawn = draw(3, shape=(MANY,), p=[0.5, 0.5, 0.0])
    check_frequencies(drawn, {0: 0.5, 1: 0.5})


def test_an_entry_of_a_table_is_a_whole_row():
    drawn = draw(TABLE, shape=(1000,))
    assert (np.diff(drawn.astype(int), axis=1) == 1).all()
    check_frequencies(drawn[:, 0], dict.fromkeys((0, 3, 6, 9), 0.25))


@pytest.mark.parametrize("count", [0, -1])
def test_there_must_be_something_to_choose_from(count):
    with pytest.raises(ValueError, match=f"at least one entry.* got {count}"):
        draw(count)


def test_an_empty_list_is_refused():
    with pytest.raises(ValueError, match="at least one entry"):
        draw(np.zeros((0, 3)))


@pytest.mark.parametrize("a", [np.float32(5), np.float64(5), np.zeros((), np.bool_)])
def test_a_count_must_be_an_integer(a):
    with pytest.raises(ValueError, match="must be an integer"):
        draw(a)


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([0, 1.0], "one probability an entry, 3, but got 2"),
        ([0, 0, 0.5], "add up to 1"),
        ([0, 0, 0.0], "add up to 1"),
        ([-1, 1, 1.0], "add up to 1"),
        ([1.5, -0.5, 0.0], "add up to 1"),
        ([float("nan"), 0.5, 0.5], "add up to 1"),
        ([0.333, 0.333, 0.333], "add up to 1"),
    ],
)
def test_what_are_no_probabilities_is_refused(p, message):
    with pytest.raises(ValueError, match=message):
        draw(3, p=p)


def test_probabilities_may_be_rounded():
    assert draw(3, p=[0.33333, 0.33333, 0.33333]) in (0, 1, 2)


def test_a_shape_and_an_input_exclude_each_other():
    with pytest.raises(ValueError, match="not both"):
        run_operator("random.choice", [np.array(3)], [np.zeros(3)], shape=[3])
