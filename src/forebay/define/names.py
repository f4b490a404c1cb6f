"""The names of operators: which ones DALI alone has, and what is said of one that is not there."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib.resources import files

from forebay.errors import UnknownOperatorError
from forebay.operators._argument import nearest
from forebay.operators._operator import class_name, discover


def missing_operators() -> list[str]:
    """The operators of DALI 2.4.0 that forebay does not have, by their dotted names."""
    known = discover()
    return [name for name in _dali_operators() if name not in known]


@functools.cache
def _dali_operators() -> Sequence[str]:
    listed = (files(__package__) / "dali_operators.txt").read_text(encoding="utf-8")
    return [line for line in listed.splitlines() if not line.startswith("#")]


def unknown_operator(name: str) -> UnknownOperatorError:
    """The error about an operator or a module of `fn` that is not there, by its dotted name."""
    known = [other for other, operator in discover().items() if not operator.hidden]
    return _unknown("operator", name, known, missing_operators())


def unknown_class(name: str) -> UnknownOperatorError:
    """The same of `ops`."""
    known = [
        _beside(other, operator.ops_names[other])
        for other, operator in discover().items()
        if not operator.hidden
    ]
    missing = [_beside(other, class_name(other)) for other in missing_operators()]
    return _unknown("operator class", name, known, missing)


def _beside(name: str, last: str) -> str:
    home, dot, _ = name.rpartition(".")
    return f"{home}{dot}{last}"


def _unknown(
    what: str, name: str, known: Sequence[str], missing: Sequence[str]
) -> UnknownOperatorError:
    modules = _modules(known)
    wanted = name.lower()  # DALI writes some classes in its own way: MXNetReader
    for kind, names in ((what, set(missing)), ("module", _modules(missing) - modules)):
        if wanted in map(str.lower, names):
            return UnknownOperatorError(
                f"DALI has the {kind} '{name}', but forebay does not have it yet; "
                f"`forebay operators` lists all"
            )
    near = nearest(name, [*known, *modules, *missing])
    if near is None:
        return UnknownOperatorError(f"there is no {what} '{name}'")
    shown = f"the module '{near}'" if near in modules else f"'{near}'"
    later = ", which DALI has and forebay does not have yet" if near in missing else ""
    return UnknownOperatorError(f"there is no {what} '{name}'; did you mean {shown}{later}?")


def _modules(names: Sequence[str]) -> set[str]:
    """The modules that operators of these names are in, and those that these are in."""
    parts = [name.split(".") for name in names]
    return {".".join(each[:depth]) for each in parts for depth in range(1, len(each))}
