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


wide, narrow, flat = data(2, 3), data(2, 1, start=50), data(1, 3, start=90)
CASES = [
    *(Case("cat", [[data(2, 3, dtype=d)], [data(1, 3, dtype=d, start=7)]]) for d in DTYPES),
    *(Case("cat", [[wide], [narrow], [wide]], {"axis": axis}, layout="HW") for axis in (1, -1)),
    Case("cat", [[wide], [flat]], {"axis": -2}, layout="HW"),
    Case("cat", [[wide], [narrow]], {"axis_name": "W"}, layout="HW"),
    Case("cat", [[wide], [flat]], {"axis_name": "H"}, layout="HW"),
    Case("cat", [[wide]]),
    Case("cat", [[data(0)], [data(3)]]),
    Case("cat", [[data(2), data(3)], [data(1), data(4)]]),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


@pytest.mark.dali
@pytest.mark.parametrize("layouts", [("HW", "AB"), ("", "HW"), ("HW", "")])
def test_the_first_layout_counts_as_in_dali(layouts):
    from nvidia.dali import Pipeline, fn

    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        inputs = [fn.external_source(lambda: [wide], layout=layout or None) for layout in layouts]
        pipe.set_outputs(fn.cat(*inputs))
    (expected,) = pipe.run()
    (got,) = run_operator("cat", *([Sample(wide, layout)] for layout in layouts))
    assert got.layout == expected.layout() == layouts[0]


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    ("first", "other", "arguments", "message"),
    [
        (wide, data(2, 4), {}, "differ along more than axis 0"),
        (wide, data(3), {}, "same element type and number of axes"),
        (wide, data(2, 3, dtype=np.int32), {}, "same element type and number of axes"),
        (wide, wide, {"axis": 2}, "axis 2 is out of range"),
        (wide, wide, {"axis": -3}, "axis -3 is out of range"),
        (wide, wide, {"axis_name": "C"}, "has no 'C'"),
        (data(), data(), {}, "axis 0 is out of range for 0 axes"),
    ],
)
def test_inputs_that_cannot_be_joined_are_refused(first, other, arguments, message, reference):
    with pytest.raises(ValueError, match=message):
        run_operator("cat", [first], [other], reference=reference, **arguments)


@pytest.mark.parametrize("name", ["", "HW"])
def test_an_axis_name_is_one_letter(name):
    with pytest.raises(ArgumentError, match="single letter"):
        run_operator("cat", [wide], [wide], axis_name=name)


def test_an_axis_is_given_once():
    with pytest.raises(ArgumentError, match="either 'axis' or 'axis_name'"):
        run_operator("cat", [wide], [wide], axis=0, axis_name="H")
