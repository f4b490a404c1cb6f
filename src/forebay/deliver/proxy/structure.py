"""Replace leaves in nested Python data, without a change to the data itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch

from forebay.deliver.proxy.recorded import Reference

_LEAVES = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    torch.Tensor,
    np.ndarray,
    np.generic,
    type,
    ModuleType,
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    torch.nn.Module,
    Reference,
)


Leaf = type | tuple[type, ...] | Callable[[Any], bool]
"""What counts as a leaf: objects of a type, or whatever a function says."""


def find(obj: Any, leaf: Leaf) -> list[Any]:
    """The leaves that `replace` would replace, in the order of its walk; each occurrence."""
    found: list[Any] = []
    replace(obj, leaf, found.append)
    return found


def replace(obj: Any, leaf: Leaf, value: Callable[[Any], Any]) -> Any:
    """`obj` with `value(leaf)` in the place of every leaf.

    Lists, tuples, dicts (and classes derived from them), named tuples, dataclasses and objects with
    attributes are looked through. Those that lead to such a leaf are copied, with their type; all
    else is the same object as before. Cycles stay cycles.
    """
    is_leaf = _test(leaf)
    if is_leaf(obj):
        return value(obj)
    leading = _leading(obj, is_leaf)
    if id(obj) not in leading:
        return obj
    return _Copier(is_leaf, value, leading).copy(obj)


def _test(leaf: Leaf) -> Callable[[Any], bool]:
    if isinstance(leaf, type | tuple):
        return lambda item: isinstance(item, leaf)
    return leaf


def _leading(root: Any, is_leaf: Callable[[Any], bool]) -> set[int]:
    """The ids of all containers from which a leaf can be reached."""
    parents: dict[int, list[int]] = {}
    seen: dict[int, Any] = {}
    found: list[int] = []
    waiting = [root]
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen[id(item)] = item
        for child in _children(item):
            if is_leaf(child):
                found.append(id(item))
            elif not isinstance(child, _LEAVES):
                parents.setdefault(id(child), []).append(id(item))
                waiting.append(child)
    leading: set[int] = set()
    while found:
        number = found.pop()
        if number not in leading:
            leading.add(number)
            found += parents.get(number, [])
    return leading


def _children(item: Any) -> Iterator[Any]:
    if isinstance(item, Mapping):
        yield from item.values()
    elif isinstance(item, list | tuple):
        yield from item
    yield from _attributes(item).values()


def _attributes(item: Any) -> dict[str, Any]:
    found = dict(getattr(item, "__dict__", ()))
    for cls in type(item).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            private = slot.startswith("__") and not slot.endswith("__")
            name = f"_{cls.__name__.lstrip('_')}{slot}" if private else slot
            if name not in ("__dict__", "__weakref__") and hasattr(item, name):
                found[name] = getattr(item, name)
    return found


class _Copier:
    def __init__(
        self, is_leaf: Callable[[Any], bool], value: Callable[[Any], Any], leading: set[int]
    ) -> None:
        self._is_leaf = is_leaf
        self._value = value
        self._leading = leading
        self._copies: dict[int, Any] = {}

    def copy(self, item: Any) -> Any:
        if self._is_leaf(item):
            return self._value(item)
        if id(item) not in self._leading or isinstance(item, _LEAVES):
            return item
        if id(item) not in self._copies:
            if isinstance(item, tuple):
                made = self._copy_tuple(item)  # which may have come by here again, in a cycle
                self._copies.setdefault(id(item), made)
            elif isinstance(item, Mapping) and not isinstance(item, MutableMapping):
                made = type(item)(dict(zip(item, map(self.copy, item.values()), strict=True)))  # type: ignore[call-arg]  # as torch does
                self._copies.setdefault(id(item), made)
            else:
                clone = self._copies[id(item)] = copy.copy(item)
                self._fill(clone, item)
        return self._copies[id(item)]

    def _copy_tuple(self, item: tuple[Any, ...]) -> Any:
        members = list(map(self.copy, item))
        if hasattr(item, "_fields"):
            return type(item)(*members)
        return type(item)(members)

    def _fill(self, clone: Any, item: Any) -> None:
        if isinstance(item, Mapping):
            for key, member in item.items():
                clone[key] = self.copy(member)
        elif isinstance(item, list):
            clone[:] = map(self.copy, item)
        for name, member in _attributes(item).items():
            copied = self.copy(member)
            if copied is not member:
                object.__setattr__(clone, name, copied)  # frozen dataclasses too
