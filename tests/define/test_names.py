"""What is said of an operator that is not there."""

from __future__ import annotations

import re

import pytest

from forebay import fn, ops
from forebay.define.names import missing_operators
from forebay.errors import UnknownOperatorError
from forebay.operators._operator import class_name, discover

MISSING = missing_operators()


def lookup(name, root):
    for part in name.split("."):
        root = getattr(root, part)
    return root


@pytest.mark.parametrize("name", MISSING)
def test_what_dali_alone_has_is_said_to_be_missing_rather_than_misspelt(name):
    home, _, _ = name.rpartition(".")
    for root, full in ((fn, name), (ops, f"{home}.{class_name(name)}".lstrip("."))):
        with pytest.raises(UnknownOperatorError, match=r"^DALI has the ") as caught:
            lookup(full, root)
        known = re.search(r"'(.*)', but forebay does not have it yet", str(caught.value))[1]
        assert full == known or full.startswith(f"{known}.")
        assert "`forebay operators` lists all" in str(caught.value)
        assert "did you mean" not in str(caught.value)


@pytest.mark.dali
def test_the_classes_that_dali_alone_has_are_said_to_be_missing():
    from nvidia import dali

    wanted = {f"{name.rpartition('.')[0]}.{class_name(name)}".lower() for name in MISSING}
    homes = {name.rpartition(".")[0] for name in MISSING}
    found = 0
    for home in homes:
        theirs = lookup(home, dali.ops) if home else dali.ops
        for name in [n for n in dir(theirs) if f"{home}.{n}".lower() in wanted]:
            found += 1
            with pytest.raises(UnknownOperatorError, match=r"^DALI has the "):
                lookup(f"{home}.{name}".lstrip("."), ops)
    assert found >= len(MISSING) - 5  # some have no class


@pytest.mark.dali
def test_no_operator_of_dali_is_listed_wrongly():
    from nvidia import dali

    for name in MISSING:
        assert callable(lookup(name, dali.fn))


@pytest.mark.parametrize(
    ("written", "root", "advice"),
    [
        ("decoder.image", fn, "no operator 'decoder'; did you mean the module 'decoders'?"),
        ("reader.file", fn, "no operator 'reader'; did you mean the module 'readers'?"),
        ("decoder.Image", ops, "class 'decoder'; did you mean the module 'decoders'?"),
        ("decoders.imag", fn, "no operator 'decoders.imag'; did you mean 'decoders.image'?"),
        ("resize", ops, "no operator class 'resize'; did you mean 'Resize'?"),
        ("audio_decode", fn, "did you mean 'audio_decoder', which DALI has and forebay does not"),
        ("readers.MXNet", ops, "DALI has the operator class 'readers.MXNet', but"),
        ("transforms.rotation", fn, "DALI has the module 'transforms', but"),
        ("nothing_like_it", fn, "there is no operator 'nothing_like_it'"),
    ],
)
def test_the_nearest_name_is_an_operator_a_module_or_one_of_dalis(written, root, advice):
    with pytest.raises(UnknownOperatorError, match=re.escape(advice)):
        lookup(written, root)


HIDDEN = sorted(name for name, operator in discover().items() if operator.hidden)


@pytest.mark.parametrize("name", HIDDEN)
def test_what_only_syntax_writes_is_never_suggested(name):
    with pytest.raises(UnknownOperatorError) as caught:
        lookup(f"{name}e", fn)
    assert f"'{name}'" not in str(caught.value)
