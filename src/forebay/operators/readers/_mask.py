"""Masks of COCO annotations, pixel for pixel as the COCO API draws them.

The format and the rules are those of the COCO API (Lin et al., cocodataset.org): a mask is a list
of run lengths down the columns, beginning with a run outside; a polygon is drawn on a grid that is
five times finer, and its boundary there decides where runs begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_FINER = 5.0


def polygon_mask(vertices: Array, height: int, width: int) -> Array:
    """Which pixels lie in a polygon of (x, y) vertices: bool, of shape (height, width)."""
    points = np.trunc(_FINER * vertices.astype(np.float64) + 0.5).astype(np.int64)
    edges = [_edge(a, b) for a, b in zip(points, np.roll(points, -1, axis=0), strict=True)]
    x, y = np.concatenate(edges, axis=1)
    steps = x[1:] != x[:-1]
    column = (np.minimum(x[1:], x[:-1])[steps] + 0.5) / _FINER - 0.5
    row = (np.minimum(y[1:], y[:-1])[steps] + 0.5) / _FINER - 0.5
    used = (np.floor(column) == column) & (column >= 0) & (column <= width - 1)
    begins = column[used] * height + np.ceil(np.clip(row[used], 0, height))
    # Each place is where a run of the other kind begins.
    flips = np.bincount(begins.astype(np.int64), minlength=height * width + 1)[: height * width]
    inside: Array = np.cumsum(flips) % 2 == 1
    return inside.reshape(width, height).T


def _edge(begin: Array, end: Array) -> Array:
    """The points of a line on the fine grid, in order: (x, y) in two rows."""
    lengths = np.abs(end - begin)
    main = 0 if lengths[0] >= lengths[1] else 1
    backwards = begin[main] > end[main]
    low, high = (end, begin) if backwards else (begin, end)
    length = int(lengths[main])
    slope = (high[1 - main] - low[1 - main]) / length if length else 0.0
    along = np.arange(length + 1)
    points = np.empty((2, length + 1), np.int64)
    points[main] = low[main] + along
    points[1 - main] = np.trunc(low[1 - main] + slope * along + 0.5)
    return points[:, ::-1] if backwards else points


def run_length_mask(counts: Sequence[int] | str, height: int, width: int) -> Array:
    """Which pixels run lengths mark: bool, of shape (height, width).

    Raises:
        ValueError: the runs are longer than the picture, or no run lengths at all.
    """
    runs = np.array(_decode(counts) if isinstance(counts, str) else counts, np.int64)
    if runs.ndim != 1 or (runs < 0).any() or runs.sum() > height * width:
        raise ValueError(f"the run lengths of a mask do not fit a picture of {width} × {height}")
    mask = np.zeros(height * width, np.bool_)
    inside = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    mask[: len(inside)] = inside
    return mask.reshape(width, height).T


def _decode(text: str) -> list[int]:
    """Run lengths from their compressed form.

    Six bits a character, from "0" on: five of the number, lowest first, and whether it goes on. The
    numbers have a sign, and from the fourth on they are relative to the one before the last.
    """
    runs: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - 48
        if not 0 <= bits < 64:
            raise ValueError(f"the run lengths of a mask have the character {character!r}")
        value |= (bits & 0x1F) << shift
        shift += 5
        if not bits & 0x20:
            if bits & 0x10:
                value -= 1 << shift
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = shift = 0
    if shift:
        raise ValueError("the run lengths of a mask end within a number")
    return runs
