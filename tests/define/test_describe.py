"""What `help` shows of an operator."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from pathlib import Path

import pytest

import forebay.operators
from calls import ALL, CALLED, DALIS, every, function
from forebay import fn, ops
from forebay.define.describe import describe

CONTRACT = json.loads((Path(__file__).parents[1] / "data" / "arguments.json").read_text())
OWN = sorted({op.name for op in ALL.values()})


def entries(text: str) -> dict[str, tuple[str, str]]:
    """Name → (what stands in brackets, description), of the section of arguments."""
    section = re.split(r"^(?:Args|Returns|Raises):\n", inspect.cleandoc(text), flags=re.MULTILINE)[
        1
    ]
    found = {}
    for paragraph in re.split(r"\n    (?=\S)", "\n" + section.rstrip())[1:]:
        names, summary, described = re.fullmatch(
            r"(\w+(?:, \w+)*)(?: \(([^()]*)\))?: *(.*)", " ".join(paragraph.split())
        ).groups()
        for name in names.split(", "):
            assert name not in found
            found[name] = (summary or "", described)
    return found


@pytest.mark.parametrize("name", OWN)
def test_every_argument_of_an_operator_is_described(name):
    found = entries(describe(ALL[name]))
    for argument in ALL[name].schema.arguments:
        assert found[argument][1], f"{name} says nothing of {argument}"


@every
def test_help_describes_what_the_signature_takes_and_nothing_else(name):
    for shown in (function(name), ops_class(name)):
        found = entries(shown.__doc__)
        taken = inspect.signature(shown).parameters
        keywords = {p.name for p in taken.values() if p.kind is p.KEYWORD_ONLY}
        assert all(found[keyword][1] for keyword in keywords)
        assert set(found) <= set(taken)


def ops_class(name):
    home, _, _ = name.rpartition(".")
    return getattr(function(home, ops) if home else ops, ALL[name].ops_name)


@pytest.mark.parametrize("name", [name for name in CALLED if name in DALIS])
def test_help_says_what_may_differ_per_sample_and_what_is_required(name):
    found = entries(function(name).__doc__)
    for argument, (per_sample, *default) in CONTRACT[name].items():
        summary = found[argument][0].split("; ")
        assert ("may differ per sample" in summary) == per_sample
        if default:
            assert "required" not in summary


@pytest.mark.parametrize(
    ("name", "argument", "summary"),
    [
        ("resize", "size", "list of floats; may differ per sample; optional"),
        (
            "resize",
            "mode",
            "one of 'default', 'stretch', 'not_larger', 'not_smaller'; default 'default'",
        ),
        ("crop", "crop_pos_x", "float from 0 to 1; may differ per sample; default 0.5"),
        (
            "rotate",
            "interp_type",
            "one of types.INTERP_NN, types.INTERP_LINEAR; default types.INTERP_LINEAR",
        ),
        ("rotate", "angle", "float; may differ per sample; required"),
        ("readers.file", "num_shards", "int from 1; default 1"),
        ("crop_mirror_normalize", "mean", "list of floats; may differ per sample; default [0.0]"),
        ("crop_mirror_normalize", "dtype", "types.DALIDataType value; default types.FLOAT"),
    ],
)
def test_an_argument_is_shown_with_type_limits_and_default(name, argument, summary):
    assert entries(function(name).__doc__)[argument][0] == summary


def private_names() -> set[str]:
    """What the files of operators that begin with an underscore define."""
    names = set()
    for module in pkgutil.walk_packages(forebay.operators.__path__, "forebay.operators."):
        if module.name.rpartition(".")[2].startswith("_"):
            inside = vars(importlib.import_module(module.name)).items()
            names |= {n for n, v in inside if getattr(v, "__module__", None) == module.name}
    return names


PRIVATE = private_names() - {"crc32c"}  # which is a package's name too


@pytest.mark.parametrize("name", OWN)
def test_help_speaks_of_nothing_that_users_cannot_reach(name):
    text = describe(ALL[name])
    assert "Sizing" in PRIVATE
    spoken_of = set(re.findall(r"(?<!`)`(\w[\w.]*)`(?!`)|[Ss]ee (\w+)", text))
    words = {word for pair in spoken_of for word in pair} - {*entries(text), *ALL}
    assert not words & PRIVATE
    assert not re.search(r"\b_[a-z]", text), "a name that begins with an underscore"


def test_what_does_nothing_comes_last_and_says_so():
    found = list(entries(fn.resize.__doc__))
    assert found.index("minibatch_size") > found.index("min_filter")
    assert entries(fn.resize.__doc__)["minibatch_size"][1].startswith("no effect")


@every
def test_help_names_the_devices_that_an_operator_runs_on_in_this_version(name):
    runs_on = entries(function(name).__doc__)["device"][1]
    assert re.fullmatch(r"where the operator runs: cpu( \(in DALI also (gpu|mixed)\))?\.", runs_on)


def test_a_seed_is_an_argument_of_random_operators_alone():
    assert "seed" in entries(fn.random.uniform.__doc__)
    assert "seed" not in entries(fn.resize.__doc__)


def test_external_source_describes_its_arguments_in_both_forms():
    for text in (fn.external_source.__doc__, ops.ExternalSource.__doc__):
        found = entries(text)
        for name in inspect.signature(fn.external_source).parameters:
            assert found[name][1]
