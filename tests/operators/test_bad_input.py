"""What every operator does with what it cannot take: calls, files, and data of a wrong kind."""

from __future__ import annotations

import enum
import json
import re
import traceback
from pathlib import Path

import numpy as np
import pytest

import forebay
from calls import ALL, CALLABLE, NAMES, enough, every, function, inputs
from encoded import picture, pillow
from forebay import Pipeline, fn, ops, pipeline_def, types
from forebay.errors import (
    ArgumentError,
    OperatorError,
    PlacementError,
    UnknownArgumentError,
    UnknownOperatorError,
)
from forebay.testing import run_operator
from kinds import FILE, KINDS, OPERATORS, REFUSED, TAKEN

from oracle import Case

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
        assert device not in ALL[name].where().split()[0]
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


# ── data of a wrong kind ──────────────────────────────────────────────────────────────────────────

TABLE = json.loads(FILE.read_text(encoding="utf-8"))
TAKEN_HERE = {
    "crop": "any type, and any number of axes, can be cut out",
    "crop_mirror_normalize": "it computes in float32 whatever it gets",
    "erase": "any type can be filled",
    "flip": "any type can be moved",
    "noise.salt_and_pepper": "data without channels at the end has noise in every element",
    "normalize": "it computes in float32 whatever it gets",
    "pad": "any type, and any number of axes, can be filled",
    "random_crop_generator": "a shape may be uint64",
    "slice": "any type, and any number of axes, can be cut out",
}
"""What DALI refuses and we take, and why that makes sense."""

REFUSED_HERE = {
    "full": "DALI takes the first of the values that do not fit the shape",
    "grid_mask": "DALI reads past the end of what is no HWC image",
    "reductions.std_dev": "DALI takes the first of the means that do not fit the shape",
    "reductions.variance": "DALI takes the first of the means that do not fit the shape",
}
"""What DALI takes, with a result that is not of this data."""


def test_the_table_of_kinds_has_every_kind_and_operator():
    assert TABLE["kinds"] == [str(kind) for kind in KINDS], "run tests/kinds.py"
    assert set(TABLE["operators"]) == set(OPERATORS), "run tests/kinds.py"


@pytest.mark.parametrize("name", OPERATORS)
def test_data_of_a_kind_that_dali_refuses_is_refused_with_what_came(name):
    for kind, answer in zip(KINDS, TABLE["operators"][name], strict=True):
        for reference in (False, True):
            error = refusal(kind.case(name), reference=reference)
            if answer == TAKEN and name not in REFUSED_HERE:
                assert error is None, f"{kind}: {error}"
            if answer == REFUSED and name not in TAKEN_HERE:
                assert error is not None, f"{kind} is taken"
            if error is not None:
                assert_says_what_came(error, kind, types_matter=name_takes(name, kind))


def refusal(case, *, reference):
    try:
        case.run(reference=reference)
    except (ValueError, TypeError, IndexError, FileNotFoundError) as error:
        return error
    return None


def name_takes(name, kind):
    """Whether the operator takes data of this shape and layout, of another type."""
    if name in REFUSED_HERE:
        return False
    same = [k for k in KINDS if (k.shape, k.layout) == (kind.shape, kind.layout)]
    answers = TABLE["operators"][name]
    return any(answers[KINDS.index(k)] == TAKEN for k in same if k.dtype != kind.dtype)


def assert_says_what_came(error, kind, *, types_matter):
    *_, last = traceback.walk_tb(error.__traceback__)
    package = str(Path(forebay.__file__).parent)
    assert last[0].f_code.co_filename.startswith(package), f"{kind}: a library refused it: {error}"
    text = str(error)
    if types_matter:
        assert kind.dtype in text or types.data_type(np.dtype(kind.dtype)).name in text, text
    else:
        assert re.search("axes|axis|layout|shape|matrix|bytes|No such file|type|FLOAT", text), text


@pytest.mark.parametrize(
    ("name", "wanted", "came"),
    [
        ("resize", "HWC, CHW, FHWC", "'W'"),
        ("brightness", "HWC, FHWC", "'W'"),
        ("decoders.image", "bytes of an encoded image", "float32"),
        ("one_hot", "integers", "BOOL"),
        ("reductions.sum", "fn.cast", "BOOL"),
    ],
)
def test_in_a_pipeline_the_operator_and_the_line_are_named_too(name, wanted, came):
    data = np.ones(3, {"BOOL": np.bool_, "float32": np.float32}.get(came, np.uint8))

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe():
        layout = came.strip("'") if came.startswith("'") else None
        return function(name)(fn.external_source([[data]], layout=layout), **enough(name))

    with pytest.raises(OperatorError, match=rf"^{name}.*, defined at {__file__}:\d+: ") as e:
        pipe().run()
    assert e.value.operator == name
    assert wanted in str(e.value)
    assert came in str(e.value)


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


FORMATS = ["JPEG", "PNG", "WEBP", "BMP", "TIFF", "PPM", "JPEG2000"]
FRACTIONS = [0.002, 0.1, 0.5, 0.99]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("decoder", DECODERS)
def test_no_decoder_gives_a_part_of_a_file_that_is_cut_off(decoder, format):
    whole = pillow(picture(), format)
    window = [[np.float32([0, 0])], [np.float32([0.5, 0.5])]] if decoder.endswith("slice") else []
    assert run_operator(decoder, [whole], *window)[0].array.any()
    for fraction in FRACTIONS:
        for reference in (False, True):
            cut = whole[: int(fraction * len(whole))]
            with pytest.raises(ValueError, match=rf"{len(cut)} bytes"):
                run_operator(decoder, [cut], *window, reference=reference)


@pytest.mark.parametrize("format", FORMATS)
def test_a_look_at_the_shape_of_a_file_that_is_cut_off_gives_the_right_one_or_none(format):
    whole = pillow(picture(61, 83), format)
    for fraction in FRACTIONS:
        cut = whole[: int(fraction * len(whole))]
        error = refusal(Case("peek_image_shape", [[cut]]), reference=False)
        if error is None:
            (shape,) = run_operator("peek_image_shape", [cut])
            assert shape.array.tolist() == [61, 83, 3]
        else:
            assert f"{len(cut)} bytes" in str(error)
    assert error is None or format == "PNG", "the header is there"


@pytest.mark.parametrize("content", ["empty.jpg", "text.jpg", "zeros.png", "only_magic.jpg"])
def test_what_is_no_picture_has_no_shape(content):
    with pytest.raises(ValueError, match="bytes"):
        run_operator("peek_image_shape", [np.frombuffer(BAD[content](), np.uint8)])


def test_a_missing_file_is_named_with_its_row_and_line(tmp_path):
    missing = tmp_path / "missing.jpg"
    pipe = reading(fn.decoders.image)
    with pytest.raises(OperatorError, match=r"missing.jpg") as caught:
        pipe.run(path=path_bytes(missing, missing))
    assert caught.value.operator == "io.file.read"
    assert isinstance(caught.value.__cause__, FileNotFoundError)
