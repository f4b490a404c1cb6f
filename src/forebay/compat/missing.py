"""What DALI has and forebay lacks."""

from __future__ import annotations

from importlib.resources import files

from forebay.operators._operator import discover


def missing_operators() -> list[str]:
    """The operators of DALI 2.4.0 that forebay does not have, by their dotted names."""
    listed = (files("forebay.compat") / "dali_operators.txt").read_text(encoding="utf-8")
    names = [line for line in listed.splitlines() if not line.startswith("#")]
    return [name for name in names if name not in discover()]
