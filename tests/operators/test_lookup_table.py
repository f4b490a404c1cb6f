from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case

INPUTS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
OUTPUTS = [
    *[types.UINT8, types.UINT16, types.UINT32, types.UINT64, types.INT8, types.INT16],
    *[types.INT32, types.INT64, types.FLOAT16, types.FLOAT, types.FLOAT64, types.BOOL],
]
TABLE = {"keys": [1, 2, 3], "values": [0.5, 70000.5, -2.5], "default_value": 2.5}
ZERO = {"keys": [0, 5], "values": [10.0, 20.0]}
CASES = [
    *(Case("lookup_table", [[np.array([[0, 1], [2, 3]], d)]], TABLE, layout="HW") for d in INPUTS),
    *(
        Case("lookup_table", [[np.arange(5, dtype=np.int32)]], {**TABLE, "dtype": d})
        for d in OUTPUTS
    ),
    *(
        Case("lookup_table", [[np.array([np.iinfo(d).max, np.iinfo(d).min, 2], d)]], TABLE)
        for d in INPUTS
    ),
    *(  # key 0 must not be taken for the default
        Case(
            "lookup_table", [[np.array([-3, -128, 0, 5, 127], d)]], {**ZERO, "default_value": -1.0}
        )
        for d in INPUTS
        if d.startswith("int")
    ),
    Case("lookup_table", [[np.int64([2**32 + 1, 65536, 1])]], TABLE),
    Case("lookup_table", [[np.uint16([65535])]], {"keys": [65535], "values": [3.0]}),
    Case("lookup_table", [[np.uint8([1])]], {"keys": [1, 1], "values": [3.0, 4.0]}),
    Case("lookup_table", [[np.array(1, np.uint8)]], TABLE),
    Case("lookup_table", [[np.zeros((0, 3), np.uint8)]], TABLE),
    Case("lookup_table", [[np.arange(3), np.arange(6)]], {"default_value": 7}),
    Case("lookup_table", [[np.uint8([1])]], {**TABLE, "output_dtype": types.UINT8}),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "float64"])
def test_elements_that_are_no_integers_are_refused(dtype, reference):
    with pytest.raises(ValueError, match="must be integers"):
        run_operator("lookup_table", [np.ones(2, dtype)], reference=reference, **TABLE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keys": [1, 2], "values": [3.0]}, "2 'keys' need as many 'values', but got 1"),
        ({"values": [3.0]}, "0 'keys'"),
        ({"keys": [-1], "values": [3.0]}, r"\[0, 65535\]"),
        ({"keys": [65536], "values": [3.0]}, r"\[0, 65535\]"),
        ({"dtype": types.UINT8, "output_dtype": types.UINT8}, "old name"),
    ],
)
def test_arguments_that_make_no_table_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        run_operator("lookup_table", [np.ones(2, np.uint8)], **arguments)
