"""Decode a region of images."""

from __future__ import annotations

import numpy as np

from forebay.batch import Sample
from forebay.operators._codec import Decoding, decode_window
from forebay.operators._image_header import read_header
from forebay.operators._operator import operator
from forebay.operators.decoders._hints import NO_HINTS, DecoderHints
from forebay.operators.slice import Bounds, _axes, _check, _window
from forebay.types import Into, Ints, Layout, PerSample

_PIXEL = np.zeros((), np.uint8)


@operator(
    aliases=("image_decoder_slice", "experimental.decoders.image_slice"),
    devices=("cpu", "mixed"),
    check=_check,
)
def image_slice(
    data: Sample,
    anchor: Sample | None = None,
    size: Sample | None = None,
    *,
    decoding: Decoding,
    region: Bounds,
    axes: PerSample[Ints] | None = None,
    axis_names: Layout | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    into: Into,
    hints: DecoderHints = NO_HINTS,
) -> Sample:
    """Decode a region of an image. The bounds are as in `slice`, the rest as in `decoders.image`.

    The region lies in the picture as it comes out, turned by its orientation.

    Args:
        axes: the axes that the bounds are for, 0 for the height and 1 for the width. By default
            the width comes first.
        axis_names: the same by letters, "H" and "W".
        normalized_anchor, normalized_shape: float inputs are relative to the extents.

    Returns:
        Region height × region width × channels, layout "HWC".

    Raises:
        ValueError: the region is empty or reaches outside the image, its bounds are missing or
            given in two ways, these are no bytes of an image, or the file is cut off or damaged.
    """
    header = read_header(data.array)
    extents = header.size(turned=decoding.adjust_orientation)
    plane = Sample(np.broadcast_to(_PIXEL, extents), "HW")
    relative = (normalized_anchor, normalized_shape)
    parts = _window(plane, anchor, size, region, _axes(plane, axes, axis_names), relative)
    (y, h), (x, w) = parts
    return data.like(decode_window(data.array, decoding, header, (y, x, h, w), into), "HWC")
