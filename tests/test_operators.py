"""What holds for every operator. The table of arguments is DALI 2.4.0's public contract."""

from __future__ import annotations

import enum
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import forebay
from calls import ALL, CALLED, DALIS, NAMES, OURS, enough, every, function, inputs
from forebay import ops
from forebay.operators._argument import REQUIRED

from oracle import Case

HERE = Path(__file__).parent
ALIASES = sorted(name for name, op in ALL.items() if name != op.name)
CONTRACT = json.loads((HERE / "data" / "arguments.json").read_text())
"""operator → argument → [may differ per sample, default]; without a default it is required."""

FOUND_HERE = {("readers.tfrecord", "index_path")}
"""Arguments that DALI needs, and without which we find what they would say."""

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


def test_what_is_said_to_be_ours_is_there_and_not_dalis():
    assert set(OURS) <= set(NAMES)
    assert not set(OURS) & set(CONTRACT)


@pytest.mark.parametrize("name", DALIS)
def test_an_operators_arguments_are_dalis(name):
    assert name in CONTRACT, "DALI lacks it: say so in OURS of tests/calls.py"
    contract, ours = CONTRACT[name], ALL[name].schema.arguments
    own = {"num_outputs"} if name == "external_source" else set()  # part of its signature in DALI
    assert set(ours) - own == set(contract)


def plain(value):
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return int(value) if isinstance(value, enum.IntEnum) else value


@pytest.mark.parametrize("name", DALIS)
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
    first_line = operator.schema.doc.splitlines()[0]
    assert function(name).__doc__.splitlines()[0] == first_line
    home, _, _ = name.rpartition(".")
    cls = getattr(function(home, ops) if home else ops, operator.ops_name)
    assert cls.__doc__ == function(name).__doc__


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
@pytest.mark.parametrize("name", [n for n in (*CALLED, *ALIASES) if ALL[n].name not in OURS])
def test_dali_has_the_name_and_the_class(name):
    from nvidia import dali

    assert callable(function(name, dali.fn))
    home, _, _ = name.rpartition(".")
    ours, theirs = (function(home, root) if home else root for root in (ops, dali.ops))
    classes = [c for c, cls in vars(ours).items() if getattr(cls, "_name", None) == name]
    assert classes
    assert all(hasattr(theirs, c) for c in classes)


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
