"""The resizes that training does most, by OpenCV and torch: those of 8-bit HWC pictures."""

from __future__ import annotations

import functools
import math
from typing import Any

import cv2
import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._interpolation import BILINEAR, Interpolation
from forebay.operators._resample import Span, axis_taps, weighted_sum
from forebay.types import INTERP_NN, UINT8, DALIDataType, Into

Array = np.ndarray[Any, Any]

_FLOAT_WARP = int(cv2.__version__.partition(".")[0]) >= 5
_MAX_WARP = 32767


def warps_exactly(shape: tuple[int, ...], size: tuple[int, ...]) -> bool:
    """Whether OpenCV's warpAffine can make a picture of `size` of an HWC one, computing in floats.

    Before OpenCV 5, and still with two channels, it rounds positions to 1/32 pixel.
    """
    return _FLOAT_WARP and shape[2] in (1, 3, 4) and max(*shape, *size) <= _MAX_WARP


def fast_resize(
    data: Sample,
    layout: str,
    spans: dict[str, Span],
    interpolation: Interpolation,
    dtype: DALIDataType | None,
    into: Into,
) -> Any:
    """The resized picture, or NotImplemented where no fast way gives the defined result."""
    if layout != "HWC" or data.dtype != UINT8 or dtype not in (None, UINT8):
        return NotImplemented
    y, x = spans["H"], spans["W"]
    channels = data.shape[2]
    if not 1 <= channels <= 4 or 0 in data.shape or 0 in (y.size, x.size):
        return NotImplemented
    kinds = {interpolation.filter(span.scale) for span in (y, x)}
    bilinear = kinds <= set(BILINEAR)
    widened = interpolation.antialias and max(abs(y.scale), abs(x.scale)) > 1
    whole = _is_whole(y, data.shape[0]) and _is_whole(x, data.shape[1])
    nearest = kinds == {INTERP_NN} and whole and _picks_alike(y, x, data.shape)
    if INTERP_NN in kinds and not nearest:
        return NotImplemented
    result = into((y.size, x.size, channels), np.uint8)
    if nearest:
        _nearest(data, y, x, result)
    elif bilinear and widened and whole:
        _antialiased(data, y, x, result)
    elif bilinear and not widened and whole and _needs_no_neighbours(y, x, data.shape):
        _bilinear(data, y, x, result)
    elif bilinear and not widened and warps_exactly(data.shape, (y.size, x.size)):
        _warped(data, y, x, result)
    else:
        _separable(data, y, x, interpolation, result)
    return data.like(result, layout)


def _is_whole(span: Span, extent: int) -> bool:
    """Whether it is a range of whole pixels of the picture. It may be mirrored."""
    low, high = _ordered(span)
    return 0 <= low < high <= extent and low.is_integer() and high.is_integer()


def _needs_no_neighbours(y: Span, x: Span, shape: tuple[int, ...]) -> bool:
    """Whether no output pixel depends on pixels outside the region that are in the picture."""
    return all(
        abs(span.scale) >= 1 or _ordered(span) == (0, extent)
        for span, extent in zip((y, x), shape, strict=False)
    )


def _ordered(span: Span) -> tuple[float, float]:
    return min(span.start, span.end), max(span.start, span.end)


def _region(data: Sample, y: Span, x: Span) -> Array:
    (top, bottom), (left, right) = _ordered(y), _ordered(x)
    return data.array[int(top) : int(bottom), int(left) : int(right)]


def _mirror(result: Array, y: Span, x: Span) -> None:
    vertical, horizontal = y.end < y.start, x.end < x.start
    if vertical or horizontal:
        code = (-1 if horizontal else 0) if vertical else 1
        picture = flat(result)
        picture[...] = cv2.flip(picture, code)


def flat(picture: Array) -> Array:
    """A view without the axis of a single channel, which OpenCV does not know."""
    return picture[..., 0] if picture.shape[-1] == 1 else picture


def _bilinear(data: Sample, y: Span, x: Span, result: Array) -> None:
    cv2.resize(_region(data, y, x), (x.size, y.size), dst=flat(result))
    _mirror(result, y, x)


def _nearest(data: Sample, y: Span, x: Span, result: Array) -> None:
    size = (x.size, y.size)
    cv2.resize(_region(data, y, x), size, dst=flat(result), interpolation=cv2.INTER_NEAREST_EXACT)
    _mirror(result, y, x)


def _picks_alike(y: Span, x: Span, shape: tuple[int, ...]) -> bool:
    return all(_picks_defined(span, n) for span, n in zip((y, x), shape, strict=False))


@functools.lru_cache(maxsize=1024)
def _picks_defined(span: Span, extent: int) -> bool:
    """Whether OpenCV picks the defined neighbours. It does unless two of them are equally near."""
    positions = np.arange(*_ordered(span))[None]
    found = cv2.resize(positions, (span.size, 1), interpolation=cv2.INTER_NEAREST_EXACT)[0]
    defined = axis_taps(span, extent, INTERP_NN, antialias=False).indices[:, 0]
    return np.array_equal(found[::-1] if span.end < span.start else found, defined)


def _warped(data: Sample, y: Span, x: Span, result: Array) -> None:
    matrix = np.array(
        [[x.scale, 0.0, x.start + x.scale / 2 - 0.5], [0.0, y.scale, y.start + y.scale / 2 - 0.5]]
    )
    cv2.warpAffine(
        flat(data.array),
        matrix,
        (x.size, y.size),
        dst=flat(result),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )


def _separable(data: Sample, y: Span, x: Span, interpolation: Interpolation, result: Array) -> None:
    """As the definition does it, with OpenCV's faster transposition and conversion."""
    height, width, channels = data.shape
    taps = [
        axis_taps(span, extent, interpolation.filter(span.scale), interpolation.antialias)
        for span, extent in ((y, height), (x, width))
    ]
    rows = weighted_sum(data.tensor.to(torch.float32), 0, taps[0])
    turned = cv2.transpose(flat(rows.numpy())).reshape(width, y.size, channels)
    columns = weighted_sum(torch.from_numpy(turned), 0, taps[1]).clamp_(min=0)
    rounded = cv2.convertScaleAbs(flat(columns.numpy()))  # saturates
    cv2.transpose(rounded, dst=flat(result))


def _antialiased(data: Sample, y: Span, x: Span, result: Array) -> None:
    """By torch's kernel, which sees a region as a picture of its own.

    At the region's border it leaves out what lies beyond, where the definition takes the
    neighbours, or repeats the edge; so the outermost rows and columns are computed anew.
    """
    (top, bottom), (left, right) = _ordered(y), _ordered(x)
    region = data.tensor[int(top) : int(bottom), int(left) : int(right)]
    _shrink(region, torch.from_numpy(result))
    picture = data.array
    upright = [Span(y.size, top, bottom), Span(x.size, left, right)]
    _mend(result, picture, *upright)
    _mend(result.transpose(1, 0, 2), picture.transpose(1, 0, 2), *reversed(upright))
    _mirror(result, y, x)


def _shrink(picture: torch.Tensor, result: torch.Tensor) -> None:
    """Fill `result` with the whole picture, both HWC, by a triangle filter."""
    torch.ops.aten._upsample_bilinear2d_aa.out(  # noqa: SLF001 - the public one has no `out`
        picture.permute(2, 0, 1)[None],
        result.shape[:2],
        align_corners=False,
        out=result.permute(2, 0, 1)[None],
    )


def _mend(result: Array, picture: Array, first: Span, second: Span) -> None:
    """Compute anew those lines along the first axis that depend on pixels out of the region."""
    rows, indices, weights = _border(first, picture.shape[0])
    if not rows:
        return
    strips = _weighted(weights, picture[indices])
    lines = np.empty((len(rows), second.size, picture.shape[2]), np.uint8)
    inside = strips[:, int(second.start) : int(second.end)]
    _shrink(torch.from_numpy(inside), torch.from_numpy(lines))
    columns, indices, weights = _border(second, picture.shape[1])
    if columns:
        lines[:, columns] = _weighted(weights, strips[:, indices].transpose(1, 2, 0, 3)).transpose(
            1, 0, 2
        )
    result[rows] = lines


def _weighted(weights: Array, pixels: Array) -> Array:
    """The sum over the second axis of `pixels`, (n, k, …), with `weights`, (n, k)."""
    sums: Array = np.einsum("nk,nk...->n...", weights, pixels) + np.float32(0.5)
    return sums.astype(np.uint8)


@functools.lru_cache(maxsize=1024)
def _border(span: Span, extent: int) -> tuple[list[int], Array, Array]:
    """The positions at both ends of `span` that depend on pixels out of it, and their taps.

    There are few, so plain Python is faster than numpy.
    """
    scale, size = span.scale, span.size
    reach = max(1.0, scale)
    count = min(size, math.ceil((reach - 0.5) / scale - 0.5))
    rows = [*range(count), *range(size - count, size)]
    indices, weights = [], []
    for row in rows:
        position = span.start + (row + 0.5) * scale - 0.5
        first = math.floor(position - reach) + 1
        taps = range(first, first + math.ceil(2 * reach))
        found = [max(0.0, 1 - abs(tap - position) / reach) for tap in taps]
        total = sum(found)
        weights.append([weight / total for weight in found])
        indices.append([min(max(tap, 0), extent - 1) for tap in taps])
    return rows, np.array(indices), np.array(weights, np.float32)
