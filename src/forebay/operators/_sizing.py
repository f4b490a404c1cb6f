"""The size of a resized picture, and which part of the input it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from forebay.errors import ArgumentError
from forebay.operators._resample import Span
from forebay.types import Arguments, Floats, Hints, OneOf, PerSample

_BY_AXIS = {"W": "resize_x", "H": "resize_y", "D": "resize_z"}
_WAYS = ("size", "resize_shorter", "resize_longer")


@dataclass(frozen=True)
class Sizing(Arguments):
    """The size of the result, given in exactly one of several ways.

    Attributes:
        size: the extents in the order of the layout, e.g. (height, width); one number serves all
            axes. Zero counts as not given; a negative number mirrors the axis.
        resize_x, resize_y, resize_z: width, height and depth one by one, likewise.
        resize_shorter: the extent of the shortest axis; the others follow in proportion.
        resize_longer: the extent of the longest axis; the others follow in proportion.
        mode: what extents that are not given, or that contradict the picture's proportions, mean.
            "default": missing ones follow in proportion. "stretch": missing ones stay. "not_larger"
            and "not_smaller": the proportions are kept, and no extent is larger (smaller) than was
            asked for.
        max_size: the largest extents; where proportions are kept, all are reduced together.
        roi_start, roi_end: the corners of the region that is shown, in the order of the layout. It
            may reach outside the picture, whose edge is repeated there; an end before its start
            mirrors.
        roi_relative: the corners are fractions of the picture's extents.
        subpixel_scale: keep the scale exact, by showing a region that is a little larger or smaller
            than asked for, where the size is not a whole number of pixels.
    """

    max_size: Floats | None = None
    mode: Annotated[str, OneOf(("default", "stretch", "not_larger", "not_smaller"))] = "default"
    resize_longer: PerSample[float] = 0.0
    resize_shorter: PerSample[float] = 0.0
    resize_x: PerSample[float] = 0.0
    resize_y: PerSample[float] = 0.0
    resize_z: PerSample[float] = 0.0
    roi_end: PerSample[Floats] | None = None
    roi_relative: bool = False
    roi_start: PerSample[Floats] | None = None
    size: PerSample[Floats] | None = None
    subpixel_scale: bool = True

    def resolve(self, extents: Mapping[str, int]) -> dict[str, Span]:
        """Size and region along each axis.

        Args:
            extents: axis letter ("D", "H", "W") → the picture's extent, in the layout's order.

        Raises:
            ArgumentError: a vector has not as many numbers as there are axes, a number is not
                finite, or the proportions of a region without extent are asked for.
        """
        count = len(extents)
        region = self._region(list(extents.values()))
        wanted, mode = self._wanted(list(extents))
        given = [w != 0 and n > 0 for w, n in zip(wanted, extents.values(), strict=True)]
        lengths = [
            abs(end - start) if n else 1.0  # an empty axis has no say in the scale of the others
            for (start, end), n in zip(region, extents.values(), strict=True)
        ]
        limits = [
            limit if limit > 0 else math.inf
            for limit in _vector("max_size", self.max_size or (0.0,), count)
        ]
        sizes = _sizes([abs(w) for w in wanted], given, lengths, limits, mode)
        keeps_direction = any(given) and mode in ("not_larger", "not_smaller")
        spans = {}
        for i, (letter, extent) in enumerate(extents.items()):
            start, end = region[i]
            if extent == 0:
                spans[letter] = Span(0, 0.0, 0.0)
                continue
            if not given[i] and not keeps_direction:
                start, end = min(start, end), max(start, end)
            if wanted[i] < 0:
                start, end = end, start
            spans[letter] = self._span(sizes[i], start, end)
        return spans

    def _span(self, size: float, start: float, end: float) -> Span:
        whole = max(1, math.floor(size + 0.5))
        if self.subpixel_scale and size not in (whole, 0):
            centre, half = (start + end) / 2, (end - start) / 2 * (whole / size)
            start, end = centre - half, centre + half
        return Span(whole, start, end)

    def _region(self, extents: list[int]) -> list[tuple[float, float]]:
        if self.roi_start is None or self.roi_end is None:
            return [(0.0, float(n)) for n in extents]
        starts = _vector("roi_start", self.roi_start, len(extents))
        ends = _vector("roi_end", self.roi_end, len(extents))
        if self.roi_relative:
            starts = [a * n for a, n in zip(starts, extents, strict=True)]
            ends = [b * n for b, n in zip(ends, extents, strict=True)]
        return list(zip(starts, ends, strict=True))

    def _wanted(self, letters: list[str]) -> tuple[list[float], str]:
        """The extents asked for (0 if not given), and how proportions are treated."""
        if self.size is not None:
            return _vector("size", self.size, len(letters)), self.mode
        if self.resize_shorter:
            return _vector("resize_shorter", (self.resize_shorter,), len(letters)), "not_smaller"
        if self.resize_longer:
            return _vector("resize_longer", (self.resize_longer,), len(letters)), "not_larger"
        by_axis = {"W": self.resize_x, "H": self.resize_y, "D": self.resize_z}
        wanted = tuple(by_axis[letter] for letter in letters)
        return _vector("resize_x, resize_y, resize_z", wanted, len(letters)), self.mode


def spatial_extents(layout: str, shape: Sequence[int]) -> dict[str, int]:
    """Axis letter → extent of the axes that have a place in space, in the layout's order."""
    return {
        letter: extent
        for letter, extent in zip(layout, shape, strict=True)
        if letter in ("D", "H", "W")
    }


def _vector(name: str, values: Sequence[float], count: int) -> list[float]:
    """`values` as a list of `count` finite numbers; a single one is repeated."""
    if len(values) not in (1, count) or not all(map(math.isfinite, values)):
        raise ArgumentError(
            f"'{name}' takes one finite number or {count} (one an axis), but got {list(values)}"
        )
    return list(values) if len(values) == count else list(values) * count


def _sizes(
    wanted: list[float],
    given: list[bool],
    lengths: list[float],
    limits: list[float],
    mode: str,
) -> list[float]:
    """The size of each axis, as a fraction. See `Sizing` for the rules.

    Where mode "default" fills in a missing extent and several are given, it takes the geometric
    mean of their scales. `max_size` limits nothing if no extent is given.
    """
    if not any(given):
        return lengths
    if mode == "stretch" or (mode == "default" and all(given)):
        sizes = [w if g else n for w, g, n in zip(wanted, given, lengths, strict=True)]
        return [min(pair) for pair in zip(sizes, limits, strict=True)]
    if 0 in lengths:
        raise ArgumentError("a region of interest without extent has no proportions to keep")
    scales = [w / n for w, g, n in zip(wanted, given, lengths, strict=True) if g]
    if mode == "default":
        scale = math.prod(scales) ** (1 / len(scales))
        sizes = [w if g else scale * n for w, g, n in zip(wanted, given, lengths, strict=True)]
        return [min(pair) for pair in zip(sizes, limits, strict=True)]
    scale = min(scales) if mode == "not_larger" else max(scales)
    scale = min(scale, *(limit / n for limit, n in zip(limits, lengths, strict=True)))
    return [scale * n for n in lengths]


def check_sizing(given: Mapping[str, Any]) -> None:
    """Raise ArgumentError unless the size is given in exactly one way, and both ends of a region.

    `given` has the arguments that were given, constant or per sample.
    """
    ways = [name for name in _WAYS if name in given]
    if any(name in given for name in _BY_AXIS.values()):
        ways.append("resize_x, resize_y, resize_z")
    if len(ways) != 1:
        raise ArgumentError(
            "the size must be given in exactly one way: by 'size', 'resize_shorter', "
            f"'resize_longer', or 'resize_x', 'resize_y', 'resize_z'; but got {ways or 'none'}"
        )
    if ways[0] in ("resize_shorter", "resize_longer") and given.get("mode", "default") != "default":
        raise ArgumentError(f"'{ways[0]}' already says how proportions are kept; leave out 'mode'")
    if ("roi_start" in given) != ("roi_end" in given):
        raise ArgumentError("give both 'roi_start' and 'roi_end', or neither")


@dataclass(frozen=True)
class ResampleHints(Hints):
    """Arguments that tune DALI's memory. They change nothing here.

    Attributes:
        minibatch_size: no effect: samples are resized one by one.
        temp_buffer_hint: no effect: temporary memory is taken as it is needed.
    """

    minibatch_size: int = 32
    temp_buffer_hint: int = 0


NO_RESAMPLE_HINTS = ResampleHints()
