"""Which of torch's operations change a tensor in place, and what to write instead.

Recorded, such a change would come too late for the tensor that the user holds, or happen for each
row, or as often as the data is asked for, or to data that was handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
_IN_PLACE = {f"__i{name}__": f"__{name}__" for name in OPERATORS.split()}


class Change(NamedTuple):
    """What a call changes in place.

    Attributes:
        target: what would be changed.
        what: changes it, in words.
        instead: what to do, in words.
    """

    target: Any
    what: str
    instead: str


def change(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Change | None:
    """What a call of one of torch's functions changes in place; None if nothing."""
    name = getattr(function, "__name__", "")
    if kwargs.get("out") is not None:
        return Change(kwargs["out"], "out=", f"take what {name} returns")
    target = next(iter([*args, *kwargs.values()]), None)
    if kwargs.get("inplace"):
        return Change(target, "inplace=True", f"leave it out, and take what {name} returns")
    if name == "__setitem__":
        instead = "use torch.where, or ref.map(function) with a function that sets the items"
        return Change(target, "item assignment", instead)
    if name in _IN_PLACE or (name.endswith("_") and not name.endswith("__")):
        return Change(target, name, _instead(_IN_PLACE.get(name, name[:-1])))
    return None


def _instead(name: str) -> str:
    """What to use in the place of an in-place operation; `name` is that of the one that is not."""
    if name in _IN_PLACE.values():
        return "use the operator that returns a new tensor: x = x + ref, and not x += ref"
    if callable(getattr(torch.Tensor, name, None)):
        return f"use the one that returns a new tensor: ref.{name}(...), or x = x.{name}(...)"
    return "use ref.map(function) with a function that does it"
