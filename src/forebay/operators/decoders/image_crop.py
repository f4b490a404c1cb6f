"""Decode a window of given size of images."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._codec import Decoding, decode_window
from forebay.operators._image_header import read_header
from forebay.operators._operator import operator
from forebay.operators._window import CropWindow
from forebay.operators.decoders._hints import NO_HINTS, DecoderHints
from forebay.types import Into


@operator(
    aliases=("image_decoder_crop", "experimental.decoders.image_crop"), devices=("cpu", "mixed")
)
def image_crop(
    data: Sample,
    *,
    decoding: Decoding,
    window: CropWindow,
    hints: DecoderHints = NO_HINTS,
    into: Into,
) -> Sample:
    """Decode a window of an image. The rest is as in `decoders.image`.

    The window lies in the picture as it comes out, turned by its orientation.

    Returns:
        Crop height × crop width × channels, layout "HWC".

    Raises:
        ValueError: the window reaches outside the image, these are no bytes of an image, or the
            file is cut off or damaged.
    """
    header = read_header(data.array)
    height, width = header.size(turned=decoding.adjust_orientation)
    found = window.resolve({"H": height, "W": width})
    (y, h), (x, w) = found["H"], found["W"]
    return data.like(decode_window(data.array, decoding, header, (y, x, h, w), into), "HWC")
