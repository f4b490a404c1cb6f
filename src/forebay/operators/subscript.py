"""Indexing: what ``x[1, 2:5]`` writes."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.types import Strings

Subscript = int | slice | None
_BOUNDS = ("start", "stop", "step")


@functools.cache
def _bounds_of(entry: str) -> tuple[str, ...]:
    """The names of the bounds that an entry of a pattern takes, in order."""
    if entry in ("...", "newaxis"):
        return ()
    if entry == "index":
        return ("index",)
    parts = entry.split(":")
    if len(parts) != 3 or any(p not in ("", n) for p, n in zip(parts, _BOUNDS, strict=True)):
        raise ArgumentError(
            f"an entry of 'pattern' is 'index', '...', 'newaxis' or 'start:stop:step' with any of "
            f"the three left out, but got {entry!r}"
        )
    return tuple(part for part in parts if part)


def _check(given: Mapping[str, Any]) -> None:
    for entry in given["pattern"]:
        _bounds_of(entry)
    if given["pattern"].count("...") > 1:
        raise ArgumentError("an index can have a single ellipsis ('...')")


@operator(hidden=True, check=_check)
def subscript(data: Sample, *bounds: Sample, pattern: Strings) -> Sample:
    """A part of the data, as numpy's basic indexing takes it.

    ``x[1, ..., a:, ::-1]`` is ``subscript(x, 1, a, -1, pattern=("index", "...", "start::",
    "::step"))``. Axes that the pattern does not reach are taken whole.

    Args:
        bounds: the numbers of all entries of `pattern` from left to right, each an integer scalar.
        pattern: an entry for each subscript. ``"index"`` takes one bound and removes the axis.
            ``"start:stop:step"`` is a range that takes three; any of the three names can be left
            out (``"::"`` is the whole axis, ``":stop:"`` takes one bound). ``"..."`` stands for as
            many whole axes as there are left, ``"newaxis"`` for a new axis of extent 1.

    Returns:
        The same element type; where possible a view. An index removes its letter from the layout,
        a range keeps it. New axes have no letter: with them the layout is empty, or stays as it
        is if the number of axes does.

    Raises:
        IndexError: an index is out of range, or there are more subscripts than axes. Ranges are
            clamped instead.
        TypeError: a bound is not an integer scalar.
        ValueError: a step is 0.
    """
    subscripts = _resolve(data, bounds, pattern)
    turned: list[int] = []
    items = list(subscripts)
    for place, (axis, item) in enumerate(_by_axis(subscripts)):
        if isinstance(item, slice) and (item.step or 1) < 0:  # torch has no negative steps
            turned.append(axis)
            last = data.shape[axis] - 1
            start, stop, step = item.indices(last + 1)
            items[place] = slice(last - start, last - stop, -step)
    return data.like(data.tensor.flip(turned)[tuple(items)], _layout(data.layout, subscripts))


@subscript.kernel("cpu")
def _subscript_cpu(data: Sample, *bounds: Sample, pattern: Strings) -> Any:
    subscripts = _resolve(data, bounds, pattern)
    array = data.array[(*subscripts, ...)]  # with an ellipsis numpy gives an array, never a scalar
    return data.like(array, _layout(data.layout, subscripts))


def _resolve(
    data: Sample, bounds: Sequence[Sample], pattern: Sequence[str]
) -> tuple[Subscript, ...]:
    """The subscripts with the ellipsis spelt out and the indices checked."""
    extents = data.shape
    reach = len(pattern) - pattern.count("...") - pattern.count("newaxis")
    if reach > len(extents):
        raise IndexError(f"{reach} subscripts are too many for data of shape {list(extents)}")
    numbers = iter(bounds)
    found: list[Subscript] = []
    axis = 0
    for entry in pattern:
        if entry == "...":
            found += [slice(None)] * (len(extents) - reach)
            axis += len(extents) - reach
        elif entry == "newaxis":
            found.append(None)
        else:
            values = {name: _integer(next(numbers), name) for name in _bounds_of(entry)}
            found.append(_one(values, axis, extents))
            axis += 1
    return tuple(found)


def _integer(bound: Sample, name: str) -> int:
    if bound.ndim or bound.dtype.numpy.kind not in "iu":
        raise TypeError(
            f"a subscript's {name} must be an integer scalar, but got {bound.dtype.name} of shape "
            f"{list(bound.shape)}"
        )
    return int(bound.data)


def _one(values: dict[str, int], axis: int, extents: Sequence[int]) -> Subscript:
    if "index" not in values:
        if values.get("step") == 0:
            raise ValueError(f"the step of the range over axis {axis} is 0")
        return slice(values.get("start"), values.get("stop"), values.get("step"))
    index = values["index"]
    if not -extents[axis] <= index < extents[axis]:
        raise IndexError(
            f"index {index} is out of range for axis {axis} of extent {extents[axis]} "
            f"(shape {list(extents)})"
        )
    return index


def _by_axis(subscripts: Sequence[Subscript]) -> Iterator[tuple[int, Subscript]]:
    """Each subscript with its axis in the data. A new axis has the number of the axis after it."""
    axis = 0
    for item in subscripts:
        yield axis, item
        axis += item is not None


def _layout(layout: str, subscripts: Sequence[Subscript]) -> str:
    removed = {axis for axis, item in _by_axis(subscripts) if isinstance(item, int)}
    added = subscripts.count(None)
    if added:
        return layout if added == len(removed) else ""
    return "".join(letter for axis, letter in enumerate(layout) if axis not in removed)
