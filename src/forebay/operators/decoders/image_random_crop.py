"""Decode a random window of images."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._codec import Decoding, decode_window
from forebay.operators._image_header import read_header
from forebay.operators._operator import operator
from forebay.operators._random_window import RandomWindow, check_random_window
from forebay.operators._rng import Rng
from forebay.operators.decoders._hints import NO_HINTS, DecoderHints
from forebay.types import Into


@operator(
    aliases=("image_decoder_random_crop", "experimental.decoders.image_random_crop"),
    devices=("cpu", "mixed"),
    check=check_random_window,
)
def image_random_crop(
    data: Sample,
    *,
    decoding: Decoding,
    window: RandomWindow,
    rng: Rng,
    into: Into,
    hints: DecoderHints = NO_HINTS,
) -> Sample:
    """Decode a random window of an image. The rest is as in `decoders.image`.

    The window's area is drawn uniformly, its aspect ratio log-uniformly and its place uniformly, in
    the picture as it comes out, turned by its orientation.

    Returns:
        Window height × window width × channels, layout "HWC".

    Raises:
        ValueError: these are no bytes of an image, or the file is cut off or damaged.
    """
    header = read_header(data.array)
    height, width = header.size(turned=decoding.adjust_orientation)
    drawn = window.draw(rng.generator(), height, width)
    return data.like(decode_window(data.array, decoding, header, drawn, into), "HWC")
