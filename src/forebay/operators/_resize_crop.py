"""Resize, crop and mirror in one step: only what the crop shows is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay.operators._resample import Span
from forebay.operators._sizing import Sizing, check_sizing
from forebay.operators._window import CropWindow, check_crop_window

_MIRROR_BITS = {"W": 1, "H": 2, "D": 4}


def check_resize_crop(given: Mapping[str, Any]) -> None:
    """Raise ArgumentError for arguments of Sizing or CropWindow that do not go together."""
    check_sizing(given)
    check_crop_window(given)


def cropped_spans(
    sizing: Sizing, window: CropWindow, mirror: int, extents: Mapping[str, int]
) -> dict[str, Span]:
    """The part of the input that a crop of the resized picture shows, along each axis.

    Args:
        sizing: how the picture is resized.
        window: the crop of the resized picture. It may reach outside, where the edge is repeated.
        mirror: which axes are mirrored at last: the sum of 1 (W), 2 (H) and 4 (D).
        extents: axis letter → the picture's extent.

    Raises:
        ValueError: an extent is zero, but the crop's is not.
    """
    spans = sizing.resolve(extents)
    cropped = window.resolve({letter: span.size for letter, span in spans.items()})
    result = {}
    for letter, span in spans.items():
        offset, size = cropped[letter]
        if span.size == 0:
            if size:
                raise ValueError(
                    f"a picture without extent along {letter} has no crop of size {size}"
                )
            result[letter] = span
            continue
        start = span.start + offset * span.scale
        end = start + size * span.scale
        if mirror & _MIRROR_BITS[letter]:
            start, end = end, start
        result[letter] = Span(size, start, end)
    return result
