"""What holds for every operator. The table of arguments is DALI 2.4.0's public contract."""

from __future__ import annotations

import enum
import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import forebay
from encoded import picture, pillow
from forebay import Pipeline, fn, ops, pipeline_def, tfrecord
from forebay.errors import (
    ArgumentError,
    OperatorError,
    PlacementError,
    UnknownArgumentError,
    UnknownOperatorError,
)
from forebay.operators._operator import discover
from forebay.operators._schema import REQUIRED

from oracle import Case

HERE = Path(__file__).parent
ALL = discover()
NAMES = sorted(name for name, op in ALL.items() if name == op.name and not op.hidden)
CALLED = [name for name in NAMES if name != "external_source"]  # it has a function of its own
ALIASES = sorted(name for name, op in ALL.items() if name != op.name)
CONTRACT = json.loads((HERE / "data" / "arguments.json").read_text())
"""operator → argument → [may differ per sample, default]; without a default it is required."""

FOUND_HERE = {("readers.tfrecord", "index_path")}
"""Arguments that DALI needs, and without which we find what they would say."""

every = pytest.mark.parametrize("name", CALLED)


def function(name, root=fn):
    found = root
    for part in name.split("."):
        found = getattr(found, part)
    return found


def inputs(name, count=None):
    count = ALL[name].schema.min_inputs if count is None else count
    with Pipeline(batch_size=1, num_threads=1, device_id=None):
        return [fn.external_source() for _ in range(count)]


# ── what they are ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", sorted({op.name for op in ALL.values()}))
def test_an_operator_is_named_as_its_file_and_says_what_it_does_and_returns(name):
    operator = ALL[name]
    file = Path(sys.modules[operator.body.__module__].__file__)
    assert file == Path(forebay.__file__).parent / "operators" / f"{name.replace('.', '/')}.py"
    doc = operator.schema.doc
    assert doc[0].isupper()
    assert doc.split("\n\n")[0].endswith(".")
    described = len(doc.splitlines()) == 1 or operator.hidden or name == "external_source"
    assert described or "Returns:" in doc, "an operator with arguments says what it returns"


@pytest.mark.parametrize("name", NAMES)
def test_an_operators_arguments_are_dalis(name):
    contract, ours = CONTRACT[name], ALL[name].schema.arguments
    own = {"num_outputs"} if name == "external_source" else set()  # part of its signature in DALI
    assert set(ours) - own == set(contract)


def plain(value):
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return int(value) if isinstance(value, enum.IntEnum) else value


@pytest.mark.parametrize("name", NAMES)
def test_an_arguments_default_is_dalis_or_is_found_from_the_data(name):
    for argument, (per_sample, *default) in CONTRACT[name].items():
        ours = ALL[name].schema.arguments[argument]
        what = f"{name}({argument}=…)"
        assert ours.per_sample == per_sample, f"{what}: whether it may differ per sample"
        required = not default and (name, argument) not in FOUND_HERE
        assert (ours.default is REQUIRED) == required, f"{what}: whether it is required"
        if not default or default[0] is None or plain(ours.default) in (None, [], ""):
            continue
        assert plain(ours.default) == pytest.approx(default[0]), what


@every
def test_an_operator_is_a_function_and_a_class(name):
    operator = ALL[name]
    assert function(name).__doc__ == operator.schema.doc
    home, _, _ = name.rpartition(".")
    cls = getattr(function(home, ops) if home else ops, operator.ops_name)
    assert cls.__doc__ == operator.schema.doc


@pytest.mark.parametrize("alias", [name for name in ALIASES if "reader" not in name])
def test_an_older_name_is_the_same_operator(alias):
    operator = ALL[alias]
    arguments = enough(operator.name)
    node = function(alias)(*inputs(operator.name), **arguments)
    node = node[0] if isinstance(node, list) else node
    assert node.node.operator is operator


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("ImageDecoder", "decoders.image"),
        ("ImageDecoderCrop", "decoders.image_crop"),
        ("ImageDecoderRandomCrop", "decoders.image_random_crop"),
        ("ImageDecoderSlice", "decoders.image_slice"),
        ("CoinFlip", "random.coin_flip"),
        ("Uniform", "random.uniform"),
        ("NormalDistribution", "random.normal"),
    ],
)
def test_the_class_names_of_old_tutorials_are_there(name, operator):
    node = getattr(ops, name)()(*inputs(operator))
    assert node.node.operator is ALL[operator]


@pytest.mark.dali
@pytest.mark.parametrize("name", [*CALLED, *ALIASES])
def test_dali_has_the_name_and_the_class(name):
    from nvidia import dali

    assert callable(function(name, dali.fn))
    home, _, _ = name.rpartition(".")
    ours, theirs = (function(home, root) if home else root for root in (ops, dali.ops))
    classes = [c for c, cls in vars(ours).items() if getattr(cls, "_name", None) == name]
    assert classes
    assert all(hasattr(theirs, c) for c in classes)


# ── how they refuse ───────────────────────────────────────────────────────────────────────────────


ENOUGH = {
    "constant": {"idata": [1]},
    "squeeze": {"axes": [0]},
    "python_function": {"function": lambda *arrays: arrays[0]},
    "readers.tfrecord": {"path": "a", "features": {"a": tfrecord.VarLenFeature(tfrecord.int64)}},
    "readers.webdataset": {"paths": "a", "ext": "jpg"},
    **{name: {"size": [2]} for name in CALLED if "resize" in name and "random" not in name},
}
VALUES = {"key": "layout", "dtype": 0, "output_type": 1, "image_type": 0}
CALLABLE = [name for name in CALLED if not name.startswith("readers.")]  # they look for files


def enough(name):
    """What a call must give besides the inputs."""
    arguments = ALL[name].schema.arguments.values()
    found = {a.name: VALUES.get(a.name, [1] if a.vector else 1) for a in arguments if a.required}
    return {**found, **ENOUGH.get(name, {})}


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


# ── what they leave alone ─────────────────────────────────────────────────────────────────────────

FILES = sorted((HERE / "operators").rglob("test_*.py"))


def cases_of(file):
    """A few of the cases that a file of tests has."""
    spec = importlib.util.spec_from_file_location(f"cases_of_{file.stem}_{file.parent.name}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cases = [case for case in getattr(module, "CASES", []) if isinstance(case, Case)]
    return cases[:: max(1, len(cases) // 8)]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(HERE).as_posix())
def test_inputs_and_arguments_stay_as_they_are(file):
    for case in cases_of(file):
        columns = [*case.inputs, *case.per_sample.values()]
        before = [[np.array(item) for item in column] for column in columns]
        for reference in (False, True):
            case.run(reference=reference)
        for column, copies in zip(columns, before, strict=True):
            for item, copy in zip(column, copies, strict=True):
                np.testing.assert_array_equal(item, copy, err_msg=str(case))


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
