from __future__ import annotations

import numpy as np
import pytest

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case

DTYPES = ["bool", "uint8", "uint16", "uint64", "int32", "float16", "float64"]


def data(*shape, dtype=np.uint8, start=0):
    return (np.arange(np.prod(shape, dtype=int)) + start).reshape(shape).astype(dtype)


a, b = data(2, 3), data(2, 3, start=50)
CASES = [
    *(Case("stack", [[data(2, 3, dtype=d)], [data(2, 3, dtype=d, start=7)]]) for d in DTYPES),
    *(Case("stack", [[a], [b]], {"axis": axis}, layout="HW") for axis in (0, 1, 2, -1, -2)),
    *(
        Case("stack", [[a], [b], [a]], {"axis": axis, "axis_name": "C"}, layout="HW")
        for axis in (0, 1, 2, -1)
    ),
    Case("stack", [[a]]),
    Case("stack", [[data()], [data(start=1)]], {"axis_name": "C"}),
    Case("stack", [[data(2), data(3)], [data(2), data(3, start=5)]], {"axis": 1}),
    Case("stack", [[data(0, 3)], [data(0, 3)]]),
    Case("stack", [[a], [b]], {"axis": 1, "axis_name": "H"}, layout="HW"),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    ("other", "arguments", "message"),
    [
        (data(2, 4), {}, "only equal shapes"),
        (data(3), {}, "same element type and number of axes"),
        (data(2, 3, dtype=np.int32), {}, "same element type and number of axes"),
        (b, {"axis": 3}, "axis 3 is out of range"),
        (b, {"axis": -4}, "axis -4 is out of range"),
        (b, {"axis_name": "C"}, "the first input has none"),
    ],
)
def test_inputs_that_cannot_be_stacked_are_refused(other, arguments, message, reference):
    with pytest.raises(ValueError, match=message):
        run_operator("stack", [a], [other], reference=reference, **arguments)


def test_the_first_layout_counts():
    inputs = [Sample(a, "HW", "a.jpg")], [Sample(b, "AB")]
    (got,) = run_operator("stack", *inputs, axis_name="C")
    assert got.layout == "CHW"
    assert got.source == "a.jpg"


@pytest.mark.parametrize("name", ["", "CD"])
def test_an_axis_name_is_one_letter(name):
    with pytest.raises(ArgumentError, match="single letter"):
        run_operator("stack", [a], [b], axis_name=name)
