"""Leaves are replaced wherever they are; nothing else is touched."""

from __future__ import annotations

import collections
import dataclasses
import types
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.deliver.proxy.structure import replace


class Leaf:
    def __init__(self, number: int = 0) -> None:
        self.number = number


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Record:
    a: Any
    b: Any = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    a: Any
    b: Any = None


class Plain:
    def __init__(self, a: Any, b: Any = None) -> None:
        self.a = a
        self.b = b


class Slots:
    __slots__ = ("__private", "a")

    def __init__(self, a: Any, b: Any = None) -> None:
        self.a = a
        self.__private = b

    @property
    def b(self) -> Any:
        return self.__private


class MyList(list):
    note = None


class MyTuple(tuple):
    __slots__ = ()


def value(leaf: Leaf) -> str:
    return f"leaf {leaf.number}"


def swap(obj: Any) -> Any:
    return replace(obj, Leaf, value)


BUILDERS = [
    lambda x, y: {"a": x, "b": y},
    lambda x, y: [x, y],
    lambda x, y: (x, y),
    lambda x, y: collections.OrderedDict(a=x, b=y),
    lambda x, y: collections.defaultdict(list, {"a": x, "b": y}),
    lambda x, y: collections.UserDict({"a": x, "b": y}),
    lambda x, y: MyList([x, y]),
    lambda x, y: MyTuple([x, y]),
    lambda x, y: types.MappingProxyType({"a": x, "b": y}),
    lambda x, y: types.SimpleNamespace(a=x, b=y),
    Pair,
    Record,
    Frozen,
    Slotted,
    Plain,
    Slots,
]


def parts(item: Any) -> list[Any]:
    if isinstance(item, collections.abc.Mapping):
        return [item["a"], item["b"]]
    if isinstance(item, list | tuple):
        return list(item)
    return [item.a, item.b]


@pytest.mark.parametrize("build", BUILDERS)
def test_every_container_keeps_its_type_and_is_not_changed(build):
    leaf, other = Leaf(1), object()
    item = build(leaf, other)
    result = swap(item)
    assert type(result) is type(item)
    assert result is not item
    assert parts(result)[0] == "leaf 1"
    assert parts(result)[1] is other
    assert parts(item)[0] is leaf
    assert parts(item)[1] is other


@pytest.mark.parametrize("build", BUILDERS)
def test_what_leads_to_no_leaf_is_the_same_object(build):
    item = build([1], {"x": (2,)})
    assert swap(item) is item
    outer = swap([Leaf(), item])
    assert outer[1] is item


def test_a_defaultdict_keeps_its_factory():
    result = swap(collections.defaultdict(list, a=Leaf(3)))
    assert result["new"] == []
    assert result["a"] == "leaf 3"


def test_keys_stay_in_their_order():
    result = swap(collections.OrderedDict([("z", Leaf()), ("a", 1), ("m", Leaf())]))
    assert list(result) == ["z", "a", "m"]


def test_attributes_of_derived_containers_are_looked_through():
    item = MyList([1])
    item.note = Leaf(5)
    result = swap(item)
    assert result == [1]
    assert result.note == "leaf 5"
    assert isinstance(item.note, Leaf)


@pytest.mark.parametrize(
    "item",
    [None, 3, 2.5, "text", b"bytes", np.zeros(3), torch.zeros(3), object(), {1, 2}, print, Leaf],
)
def test_other_data_is_the_same_object(item):
    assert swap(item) is item
    assert swap({"x": item, "y": Leaf()})["x"] is item


def test_a_leaf_alone_is_replaced():
    assert swap(Leaf(9)) == "leaf 9"


def test_what_was_shared_stays_shared():
    shared = [Leaf(1)]
    result = swap([shared, {"x": shared}])
    assert result[0] is result[1]["x"]
    assert result[0] is not shared


def test_cycles_stay_cycles():
    item: list[Any] = [Leaf(1)]
    item.append(item)
    result = swap(item)
    assert result[0] == "leaf 1"
    assert result[1] is result
    assert item[1] is item


def test_a_cycle_through_an_object_and_a_tuple_stays_one():
    plain = Plain(Leaf(2))
    plain.b = (plain, 7)
    result = swap(plain)
    assert result.a == "leaf 2"
    assert result.b[0] is result
    assert plain.b[0] is plain
    cycle: list[Any] = []
    root = (cycle, Leaf(3))
    cycle.append(root)
    result = swap(root)
    assert result[0][0] is result


def test_a_cycle_without_a_leaf_is_the_same_object():
    item: list[Any] = []
    item.append({"back": item})
    assert swap(item) is item


def nested(leaf):
    """Containers of containers, with leaves among other things."""
    return st.recursive(
        leaf | st.integers() | st.text(max_size=3) | st.none(),
        lambda inner: st.tuples(st.sampled_from(BUILDERS), inner, inner).map(
            lambda made: made[0](made[1], made[2])
        ),
        max_leaves=12,
    )


def flat(item: Any) -> list[Any]:
    if isinstance(item, Leaf | str | int | None):
        return [item]
    return [type(item), *(x for part in parts(item) for x in flat(part))]


@settings(max_examples=60, deadline=None)
@given(nested(st.integers(0, 9).map(Leaf)))
def test_any_nesting_is_replaced_and_left_as_it_was(item):
    before = flat(item)
    result = flat(swap(item))
    assert result == [value(x) if isinstance(x, Leaf) else x for x in before]
    after = flat(item)
    assert all(a is b or a == b for a, b in zip(after, before, strict=True))
