"""Separable resampling: every axis is a weighted sum of a few samples for each output position."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._convert import saturate_cast
from forebay.operators._interpolation import Interpolation, filter_taps
from forebay.types import (
    FLOAT,
    INT16,
    INTERP_GAUSSIAN,
    INTERP_NN,
    UINT8,
    UINT16,
    DALIDataType,
    DALIInterpType,
)


class Span(NamedTuple):
    """`size` output pixels that cover the input from `start` to `end`, in pixels.

    Pixel i reaches from i to i + 1. A span may lie outside the picture, where its edge is repeated,
    and is mirrored if it ends before its start.
    """

    size: int
    start: float
    end: float

    @property
    def scale(self) -> float:
        """Input pixels per output pixel, negative if mirrored."""
        return (self.end - self.start) / self.size

    def covers(self, extent: int) -> bool:
        """Whether it is the whole axis, pixel by pixel."""
        return self.size == extent == self.end and self.start == 0


class Taps(NamedTuple):
    """For each output position the input positions that it is made of, and their weights."""

    indices: np.ndarray[Any, Any]
    weights: np.ndarray[Any, Any]


@functools.lru_cache(maxsize=1024)
def axis_taps(span: Span, extent: int, kind: DALIInterpType, antialias: bool) -> Taps:
    """How to resample an axis of `extent` pixels. Indices are clamped to it: edges repeat."""
    scale = span.scale
    if kind == INTERP_NN:  # in float32, as DALI does: it decides which neighbour wins a tie
        centres = np.arange(span.size, dtype=np.float32) + np.float32(0.5)
        positions = np.float32(span.start) + centres * np.float32(scale)
        indices = np.floor(positions).astype(np.int64)[:, None]
        weights = np.ones(indices.shape)
    else:
        widening = max(1.0, abs(scale)) if antialias else 1.0
        samples = span.size, span.start + scale / 2 - 0.5, scale
        indices, weights = filter_taps(kind, samples, widening)
    return Taps(np.clip(indices, 0, extent - 1), weights.astype(np.float32))


def weighted_sum(data: torch.Tensor, axis: int, taps: Taps) -> torch.Tensor:
    """Replace an axis of floating-point data by weighted sums of its elements."""
    rows = data.movedim(axis, 0)
    result = torch.nn.functional.embedding_bag(
        torch.from_numpy(taps.indices).to(data.device),
        rows.reshape(rows.shape[0], -1),
        mode="sum",
        per_sample_weights=torch.from_numpy(taps.weights).to(data.device, data.dtype),
    )
    return result.view(-1, *rows.shape[1:]).movedim(0, axis)


def resample(
    data: torch.Tensor, spans: Mapping[int, Span], interpolation: Interpolation
) -> torch.Tensor:
    """`data` with each of the axes in `spans` resampled.

    Returns:
        float32; or the type of `data` where nothing but nearest neighbours is asked for.
    """
    shape = [spans[i].size if i in spans else n for i, n in enumerate(data.shape)]
    if 0 in shape:
        return data.new_empty(shape)
    # What shrinks comes first, and of that the outer axes, whose rows are contiguous.
    order = sorted(spans, key=lambda axis: (spans[axis].size > data.shape[axis], axis))
    steps = []
    for axis in order:
        span, extent = spans[axis], data.shape[axis]
        kind = interpolation.filter(span.scale)
        if span.covers(extent) and kind != INTERP_GAUSSIAN:
            continue
        taps = axis_taps(span, extent, kind, interpolation.antialias)
        if kind == INTERP_NN:
            data = _pick(data, axis, taps)
        else:
            steps.append((axis, taps))
    if not steps:
        return data
    data = data.to(torch.float32)
    for axis, taps in steps:
        data = weighted_sum(data, axis, taps)
    return data


def _pick(data: torch.Tensor, axis: int, taps: Taps) -> torch.Tensor:
    indices = torch.from_numpy(taps.indices[:, 0]).to(data.device)
    if data.dtype == torch.uint16:  # torch can hardly compute with it, and only bits are moved
        return data.view(torch.int16).index_select(axis, indices).view(torch.uint16)
    return data.index_select(axis, indices)


def resampled_type(source: DALIDataType, dtype: DALIDataType | None) -> DALIDataType:
    """The element type of a resampled picture.

    Raises:
        ValueError: the picture's type is not supported, or `dtype` is neither that nor FLOAT.
    """
    if source not in (UINT8, INT16, UINT16, FLOAT):
        raise ValueError(
            f"a picture of uint8, int16, uint16 or float32 can be resized, but got {source.name}; "
            "convert it with fn.cast"
        )
    if dtype not in (None, source, FLOAT):
        raise ValueError(
            f"'dtype' can be the input's type, {source.name}, or FLOAT, but got {dtype.name}"
        )
    return source if dtype is None else dtype


def resample_image(
    data: Sample,
    layout: str,
    spans: Mapping[str, Span],
    interpolation: Interpolation,
    dtype: DALIDataType,
) -> Sample:
    """A picture resampled along the axes that `spans` names by their letters."""
    axes = {layout.index(letter): span for letter, span in spans.items()}
    return data.like(saturate_cast(resample(data.tensor, axes, interpolation), dtype), layout)
