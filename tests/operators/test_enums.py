"""A wrong value of an argument that takes constants of `types` names them."""

from __future__ import annotations

import enum
import re

import numpy as np
import pytest

from calls import ALL, CALLED, enough, function, inputs
from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

ENUMS = [
    (name, argument.name)
    for name in CALLED
    for argument in ALL[name].schema.arguments.values()
    if isinstance(argument.type, type) and issubclass(argument.type, enum.Enum)
]


@pytest.mark.parametrize("value", ["linear", 99, -5, 1.5])
@pytest.mark.parametrize(("name", "argument"), ENUMS)
def test_a_wrong_constant_is_refused_with_those_that_there_are(name, argument, value):
    with pytest.raises(ArgumentError) as caught:
        function(name)(*inputs(name), **{**enough(name), argument: value})
    text = str(caught.value)
    assert repr(value) in text
    listed = [getattr(types, word) for word in re.findall(r"types\.(\w+)", text)]
    assert len(listed) > 1
    assert {type(one) for one in listed} == {ALL[name].schema.arguments[argument].type}


def test_all_ways_to_interpolate_are_named():
    with pytest.raises(ArgumentError, match="'interp_type'") as caught:
        function("resize")(*inputs("resize"), size=[2], interp_type="linear")
    for name in ("NN", "LINEAR", "CUBIC", "LANCZOS3", "TRIANGULAR", "GAUSSIAN"):
        assert f"types.INTERP_{name}" in str(caught.value)


def test_a_constant_that_the_operator_does_not_take_is_shown_as_it_is_written():
    with pytest.raises(
        ArgumentError,
        match=r"one of types.INTERP_NN, types.INTERP_LINEAR, but got types.INTERP_CUBIC",
    ):
        function("rotate")(*inputs("rotate"), angle=3.0, interp_type=types.INTERP_CUBIC)


def test_a_wrong_number_in_the_data_is_refused_with_those_that_there_are():
    image = np.zeros((4, 4, 3), np.uint8)
    with pytest.raises(ArgumentError, match=r"one of types.INTERP_NN, .* but got 77"):
        run_operator("resize", [image], size=[2], per_sample={"interp_type": [np.int32(77)]})
