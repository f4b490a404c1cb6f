"""Decode images."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._codec import Decoding, decode
from forebay.operators._operator import operator
from forebay.operators.decoders._hints import NO_CACHE, NO_HINTS, CacheHints, DecoderHints
from forebay.types import Into


@operator(aliases=("image_decoder", "experimental.decoders.image"), devices=("cpu", "mixed"))
def image(
    data: Sample,
    *,
    decoding: Decoding,
    hints: DecoderHints = NO_HINTS,
    cache: CacheHints = NO_CACHE,
    into: Into,
) -> Sample:
    """Decode an image: JPEG, PNG, WebP, BMP, TIFF, PNM or JPEG 2000.

    The input is the file's bytes, a vector of uint8. A grey image becomes three equal channels for
    RGB and BGR. Values are scaled to the range of `dtype`: a full 255 is 65535 in UINT16 and 1.0 in
    FLOAT. YCbCr is ITU-R BT.601's, with luma 16 … 235. Alpha is dropped, except for ANY_DATA.

    Returns:
        Height × width × channels, layout "HWC".

    Raises:
        ValueError: these are no bytes of an image, or the file is cut off or damaged.
    """
    return data.like(decode(data.array, decoding, into=into), "HWC")
