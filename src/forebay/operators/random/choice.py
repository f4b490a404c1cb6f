"""Entries drawn from a range or a list."""

from __future__ import annotations

import numpy as np

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.operators._rng import Rng
from forebay.operators.random._draw import draw_shape
from forebay.types import Floats, Ints, PerSample

_TOTAL = 1e-4
"""How far the sum of the probabilities may be from 1."""


@operator(devices=("cpu",))
def choice(
    a: Sample,
    like: Sample | None = None,
    *,
    p: PerSample[Floats] | None = None,
    shape: PerSample[Ints] | None = None,
    rng: Rng,
) -> Sample:
    """Draw entries, each time from all of them.

    Args:
        a: an integer n (0-D), for numbers from 0 to n − 1; or a tensor, for its entries along the
            first axis.
        like: only its shape matters: as many entries are drawn.
        p: the probability of each entry; together 1. All the same by default.
        shape: how many entries are drawn. Without it, and without an input, one is.

    Returns:
        `shape`, followed by the shape of one entry; the element type of `a`. For one entry the
        layout is that of `a` without its first letter, for a list of entries that of `a`.

    Raises:
        ValueError: `a` holds no entries or is no integer.
        ArgumentError: `p` are not probabilities, one an entry.
    """
    entries = a.array
    if entries.ndim == 0 and entries.dtype.kind not in "iu":
        raise ValueError(
            f"the number of entries to choose from must be an integer, but got {a.dtype.name}"
        )
    count = int(entries) if entries.ndim == 0 else len(entries)
    if count < 1:
        raise ValueError(f"there must be at least one entry to choose from, but got {count}")
    size = draw_shape(like, shape)
    index = _draw(rng.generator().random(size), count, p)
    if entries.ndim == 0:
        return Sample(index.astype(entries.dtype), source=a.source)
    depth = 0 if size is None else len(size)
    layout = a.layout if depth == 1 else a.layout[1:] if depth == 0 else ""
    return a.like(np.asarray(entries[index]), layout)


def _draw(
    uniform: float | np.ndarray[tuple[int, ...], np.dtype[np.float64]], count: int, p: Floats | None
) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Turn numbers in [0, 1) to entries: by scaling, or by the inverse of the distribution."""
    if p is None:
        return np.asarray(np.multiply(uniform, count)).astype(np.intp)
    if len(p) != count:
        raise ArgumentError(f"'p' needs one probability an entry, {count}, but got {len(p)}")
    if not all(0 <= one <= 1 for one in p) or abs(sum(p) - 1) >= _TOTAL:
        raise ArgumentError(
            f"'p' must be probabilities that add up to 1, but got {list(p)}, which add up to "
            f"{sum(p):g}"
        )
    bounds = np.cumsum(p)
    return np.asarray(np.searchsorted(bounds / bounds[-1], uniform, side="right"))
