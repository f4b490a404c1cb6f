"""What every operator does with what it cannot take: calls, files, and data of a wrong kind."""

from __future__ import annotations

import enum
import re

import numpy as np
import pytest

from calls import ALL, CALLABLE, NAMES, enough, every, function, inputs
from encoded import picture, pillow
from forebay import Pipeline, fn, ops, pipeline_def
from forebay.errors import (
    ArgumentError,
    OperatorError,
    PlacementError,
    UnknownArgumentError,
    UnknownOperatorError,
)

# ── how they refuse ───────────────────────────────────────────────────────────────────────────────


@every
def test_an_unknown_argument_is_refused_with_the_nearest_name(name):
    known = next((a for a in ALL[name].schema.arguments if len(a) > 3), "preserve")
    with pytest.raises(UnknownArgumentError, match=rf"'{known}x'") as caught:
        function(name)(*inputs(name), **{f"{known}x": 1})
    assert f"did you mean '{known}'?" in str(caught.value)
    home, _, _ = name.rpartition(".")
    cls = getattr(function(home, ops) if home else ops, ALL[name].ops_name)
    with pytest.raises(KeyError, match=f"{known}x"):
        cls(**{f"{known}x": 1})


@every
def test_an_argument_of_a_wrong_type_is_refused_by_name(name):
    given = inputs(name)
    for argument in ALL[name].schema.arguments.values():
        if argument.type not in (int, float, bool, str) and not (
            isinstance(argument.type, type) and issubclass(argument.type, enum.Enum)
        ):
            continue
        for wrong in (object(), "nonsense" if argument.type is not str else 3, [object()]):
            with pytest.raises(ArgumentError, match=f"'{argument.name}'") as caught:
                function(name)(*given, **{argument.name: wrong})
            assert f"fn.{name}" in str(caught.value)


@every
def test_an_argument_that_is_a_constant_in_dali_refuses_a_node(name):
    for argument in ALL[name].schema.arguments.values():
        if not argument.per_sample:
            with pytest.raises(ArgumentError, match=f"'{argument.name}' must be a constant"):
                function(name)(*inputs(name), **{argument.name: inputs(name, 1)[0]})


@every
def test_a_wrong_number_of_inputs_is_refused_with_the_right_one(name):
    schema = ALL[name].schema
    wrong = [n for n in (schema.min_inputs - 1, schema.max_inputs + 1) if 0 <= n < 100]
    for count in wrong:
        with pytest.raises(ArgumentError, match=rf"fn.{name}: takes .* inputs, but got {count}"):
            function(name)(*inputs(name, count), **enough(name))


@every
def test_a_missing_argument_is_refused_by_name(name):
    for argument in (a for a in ALL[name].schema.arguments.values() if a.required):
        given = {k: v for k, v in enough(name).items() if k != argument.name}
        with pytest.raises(ArgumentError, match=f"needs the argument '{argument.name}'"):
            function(name)(*inputs(name), **given)


@pytest.mark.parametrize("name", CALLABLE)
def test_an_input_that_is_no_data_is_refused_with_what_came(name):
    for index in range(ALL[name].schema.min_inputs):
        given = inputs(name)
        given[index] = "nonsense"
        with pytest.raises(ArgumentError, match="'nonsense'"):
            function(name)(*given, **enough(name))


@pytest.mark.parametrize("name", CALLABLE)
def test_the_gpu_is_refused_at_build_with_the_line_and_the_change(name):
    device = next((d for d in ("gpu", "mixed") if d in ALL[name].devices), None)
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        given = [fn.external_source() for _ in range(ALL[name].schema.min_inputs)]
        if device is None:
            with pytest.raises(PlacementError, match=rf"fn.{name} runs on cpu"):
                function(name)(*given, device="gpu", **enough(name))
            return
        node = function(name)(*given, device=device, **enough(name))
        pipe.set_outputs(node[0] if isinstance(node, list) else node)
    with pytest.raises(PlacementError, match=rf"fn.{name}\(device='{device}'\) at .*{__name__}"):
        pipe.build()


@pytest.mark.parametrize("name", NAMES)
def test_a_misspelt_operator_is_refused_with_the_nearest_name(name):
    home, _, last = name.rpartition(".")
    wrong = last[:2] + last[3:] if len(last) > 5 else last + "e"
    if f"{home}.{wrong}".strip(".") in ALL:
        return
    with pytest.raises(UnknownOperatorError, match=rf"no operator '.*{wrong}'; did you mean '"):
        getattr(function(home) if home else fn, wrong)
    with pytest.raises(AttributeError):
        getattr(function(home, ops) if home else ops, ALL[name].ops_name + "e")


def test_namespaces_and_functions_can_be_looked_at():
    assert not hasattr(fn, "__nonsense__")
    assert not hasattr(fn.decoders, "__nonsense__")
    assert "image" in dir(fn.decoders)
    assert "Image" in dir(ops.decoders)
    with pytest.raises(AttributeError, match="no operator"):
        fn.nonsense_that_is_near_nothing  # noqa: B018 - looking it up is the test


# ── bad files ─────────────────────────────────────────────────────────────────────────────────────

BAD = {
    "truncated.jpg": lambda: pillow(picture(), "JPEG").tobytes()[:900],
    "cut_header.jpg": lambda: pillow(picture(), "JPEG").tobytes()[:10],
    "truncated.png": lambda: pillow(picture(), "PNG").tobytes()[:2000],
    "truncated.webp": lambda: pillow(picture(), "WEBP").tobytes()[:60],
    "empty.jpg": lambda: b"",
    "text.jpg": lambda: b"This is no picture at all. " * 9,
    "zeros.png": lambda: bytes(500),
    "only_magic.jpg": lambda: b"\xff\xd8\xff",
}
DECODERS = [name for name in NAMES if name.startswith("decoders.image")]


def reading(decode):
    @pipeline_def(batch_size=2, num_threads=2, device_id=None)
    def pipe():
        return decode(fn.io.file.read(fn.external_source(name="path")))

    return pipe()


def path_bytes(*paths):
    return [np.frombuffer(str(path).encode(), np.uint8) for path in paths]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("decoder", DECODERS)
def test_a_file_that_cannot_be_decoded_is_named_with_its_row_and_line(decoder, bad, tmp_path):
    good, file = tmp_path / "good.jpg", tmp_path / bad
    good.write_bytes(pillow(picture(), "JPEG").tobytes())
    file.write_bytes(BAD[bad]())
    window = [np.float32([0, 0]), np.float32([0.5, 0.5])] if decoder.endswith("slice") else []
    pipe = reading(lambda data: function(decoder)(data, *window))
    with pytest.raises(OperatorError) as caught:
        pipe.run(path=path_bytes(good, file))
    error = caught.value
    assert error.operator in (decoder, "io.file.read")
    assert error.sample == 1
    assert error.source == str(file)
    assert re.search(rf"{__name__}.py:\d+$", error.line)
    assert error.__cause__ is not None
    assert pipe.run(path=path_bytes(good, good))


def test_a_missing_file_is_named_with_its_row_and_line(tmp_path):
    missing = tmp_path / "missing.jpg"
    pipe = reading(fn.decoders.image)
    with pytest.raises(OperatorError, match=r"missing.jpg") as caught:
        pipe.run(path=path_bytes(missing, missing))
    assert caught.value.operator == "io.file.read"
    assert isinstance(caught.value.__cause__, FileNotFoundError)
