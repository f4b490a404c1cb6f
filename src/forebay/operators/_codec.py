"""The one seam for decoding images: encoded bytes in, an array of pixels out.

JPEG is decoded by libjpeg-turbo (simplejpeg), everything else by OpenCV. Another codec takes the
place of one of these two behind `decode`; nothing else knows which library decodes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any

import cv2
import numpy as np
import simplejpeg

from forebay.operators._color import apply_table
from forebay.operators._convert import saturate_cast
from forebay.operators._image_header import (
    EXTRA_SAMPLES,
    ORIENTATION,
    ImageHeader,
    read_header,
    tiff_tags,
    undecodable,
)
from forebay.operators._random_window import Window
from forebay.types import (
    FLOAT,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    Arguments,
    DALIDataType,
    DALIImageType,
    Into,
    OneOf,
)

Array = np.ndarray[Any, Any]
RGB, BGR, GRAY, YCBCR, ANY = DALIImageType


@dataclass(frozen=True)
class Decoding(Arguments):
    """What the pixels of a decoded image look like.

    Attributes:
        output_type: the colour space. ANY_DATA keeps the file's channels, alpha among them.
        dtype: the type of the values; they are scaled to its range, floats to 0 … 1.
        adjust_orientation: turn the image as its EXIF data says.
        use_fast_idct: decode JPEGs a little faster and less exactly.
    """

    output_type: DALIImageType = RGB
    dtype: Annotated[DALIDataType, OneOf((UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT))] = (
        UINT8
    )
    adjust_orientation: bool = True
    use_fast_idct: bool = False


def decode(
    encoded: Array,
    decoding: Decoding,
    *,
    header: ImageHeader | None = None,
    window: Window | None = None,
    into: Into = np.empty,
) -> Array:
    """Decode an image, or a window of it.

    Args:
        encoded: the file's bytes.
        decoding: what is wanted.
        header: what `read_header` gave for these bytes, if it was asked.
        window: the part that is wanted, of the picture as it comes out (turned). It lies inside.
        into: where the result may be written.

    Returns:
        Height × width × channels.

    Raises:
        ValueError: these are no bytes of an image, or they are damaged, or their kind of pixels
            cannot be decoded as wanted.
    """
    if header is None:
        header = read_header(encoded)
    turn = header.orientation if decoding.adjust_orientation else 1
    if window is not None and turn != 1:
        window = _stored_window(window, header, turn)
    if header.format == "JPEG":
        last = window is None and turn == 1 and decoding.dtype == UINT8
        pixels = _decode_jpeg(encoded, header, decoding, window, into if last else np.empty)
    else:
        pixels = _decode_other(encoded, header, decoding.output_type, window)
    if turn != 1:
        pixels = _turn(pixels, turn)
    if decoding.output_type == YCBCR:
        return _to_ycbcr(pixels, decoding.dtype)
    if decoding.dtype.numpy != pixels.dtype:
        return _rescale(pixels, decoding.dtype, into)
    return pixels


def decode_window(
    encoded: Array, decoding: Decoding, header: ImageHeader, window: Window, into: Into
) -> Array:
    """`decode` of a window. Raises ValueError if it is empty or reaches outside the image."""
    height, width = header.size(turned=decoding.adjust_orientation)
    y, x, h, w = window
    if y < 0 or x < 0 or h < 1 or w < 1 or y + h > height or x + w > width:
        raise ValueError(
            f"the window of rows {y} … {y + h} and columns {x} … {x + w} does not lie in the image "
            f"of {height} × {width} pixels"
        )
    return decode(encoded, decoding, header=header, window=window, into=into)


def _cut(pixels: Array, window: Window | None) -> Array:
    if window is None:
        return pixels
    y, x, h, w = window
    return pixels[y : y + h, x : x + w]


# ── codecs ────────────────────────────────────────────────────────────────────────────────────────


def _decode_jpeg(
    encoded: Array, header: ImageHeader, decoding: Decoding, window: Window | None, into: Into
) -> Array:
    kind = decoding.output_type
    if header.channels == 4:
        raw = _libjpeg(encoded, header, "CMYK", 4, decoding.use_fast_idct, np.empty)
        return _from_cmyk(_cut(raw, window), kind, inverted=header.adobe)
    if kind == GRAY or (kind == ANY and header.channels == 1):
        colours, channels = "GRAY", 1
    else:
        colours, channels = "BGR" if kind == BGR else "RGB", 3
    if kind == YCBCR:
        into = np.empty
    return _cut(_libjpeg(encoded, header, colours, channels, decoding.use_fast_idct, into), window)


def _libjpeg(
    encoded: Array, header: ImageHeader, colours: str, channels: int, fast: bool, into: Into
) -> Array:
    """All pixels. Damage is passed over where decoding gets to the end nevertheless, as in DALI.

    libjpeg makes up what is missing after an early end, but OpenCV, as DALI, gives up there.
    """
    data = np.ascontiguousarray(encoded)
    pixels = into((header.height, header.width, channels), np.uint8)
    options = {"fastdct": fast, "fastupsample": False, "buffer": pixels}
    try:
        found = simplejpeg.decode_jpeg(data, colours, **options)
    except ValueError as error:
        if _opencv(data, cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION) is None:
            raise ValueError(undecodable("JPEG", encoded, str(error))) from error
        found = simplejpeg.decode_jpeg(data, colours, strict=False, **options)
    if found.shape != pixels.shape:
        raise ValueError(undecodable("JPEG", encoded, "it has two sizes"))
    return pixels


def _from_cmyk(pixels: Array, kind: DALIImageType, *, inverted: bool) -> Array:
    """Colours of inks as colours of light. Adobe's files have 255 for no ink."""
    if kind == ANY:
        return pixels
    inks = pixels if inverted else 255 - pixels
    rgb = (inks[..., :3].astype(np.uint16) * inks[..., 3:] // 255).astype(np.uint8)
    if kind == GRAY:
        return cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)[..., None]
    return rgb[..., ::-1] if kind == BGR else rgb


def _decode_other(
    encoded: Array, header: ImageHeader, kind: DALIImageType, window: Window | None
) -> Array:
    data = np.ascontiguousarray(encoded)
    if header.format == "TIFF":
        data = _plain_tiff(data)
    flags = {ANY: cv2.IMREAD_UNCHANGED, GRAY: cv2.IMREAD_GRAYSCALE}.get(kind, cv2.IMREAD_COLOR)
    if kind != ANY:
        flags |= cv2.IMREAD_ANYDEPTH | cv2.IMREAD_IGNORE_ORIENTATION
    pixels = _opencv(data, flags)
    if pixels is None and header.format == "TIFF":
        pixels = _float_tiff(data, kind)
    if pixels is None:
        raise ValueError(undecodable(header.format, encoded, "it is damaged or of a rare kind"))
    if pixels.dtype.name not in ("uint8", "uint16", "float32"):
        raise ValueError(f"a {header.format} image with {pixels.dtype} pixels is not supported")
    if pixels.shape[:2] != (header.height, header.width):
        raise ValueError(undecodable(header.format, encoded, "its size differs from its header's"))
    pixels = _cut(pixels.reshape(*pixels.shape[:2], -1), window)
    channels = pixels.shape[2]
    if kind == ANY and channels != header.channels:
        pixels = _drop_channels(pixels, header)
    elif kind not in (BGR, GRAY) and channels >= 3:
        swap = cv2.COLOR_BGR2RGB if channels == 3 else cv2.COLOR_BGRA2RGBA
        pixels = cv2.cvtColor(pixels, swap)
    return pixels


def _drop_channels(pixels: Array, header: ImageHeader) -> Array:
    """The file's own channels, where OpenCV gave it four (BGRA)."""
    keep = {2: [0, 3], 3: [2, 1, 0]}.get(header.channels)
    if pixels.shape[2] != 4 or keep is None:
        raise ValueError(
            f"a {header.format} image of {header.channels} channels cannot be decoded as ANY_DATA; "
            f"ask for output_type=types.RGB or types.GRAY"
        )
    return np.ascontiguousarray(pixels[..., keep])


def _opencv(data: Array, flags: int) -> Array | None:
    try:
        return cv2.imdecode(data, flags)
    except cv2.error:  # it refuses some sizes thus, where it gives None for everything else
        return None


def _float_tiff(data: Array, kind: DALIImageType) -> Array | None:
    """A TIFF of floats, which OpenCV decodes only to as many channels as it has."""
    pixels = _opencv(data, cv2.IMREAD_UNCHANGED)
    if pixels is None or pixels.dtype != np.float32:
        return None
    grey = pixels.ndim == 2
    if grey != (kind == GRAY):
        pixels = cv2.cvtColor(pixels, cv2.COLOR_GRAY2BGR if grey else cv2.COLOR_BGR2GRAY)
    return pixels


def _plain_tiff(data: Array) -> Array:
    """The file without what makes libtiff turn it or multiply its colours by alpha."""
    order, tags = tiff_tags(data.data)
    changes = [tags[tag][1] for tag in (ORIENTATION, EXTRA_SAMPLES) if tags.get(tag, (1,))[0] != 1]
    if changes:
        data = data.copy()
    for where in changes:
        data[where : where + 2] = (1, 0) if order == "<" else (0, 1)
    return data


# ── orientation ───────────────────────────────────────────────────────────────────────────────────

_FLIPS = {2: 1, 3: -1, 4: 0, 6: 0, 7: -1, 8: 1}
"""EXIF orientation → how OpenCV is to flip the stored picture, before it is transposed from 5 on.
(CIPA DC-008, table of the tag Orientation.)"""


def _turn(pixels: Array, orientation: int) -> Array:
    shape = pixels.shape
    turned: Array = pixels
    if orientation in _FLIPS:
        turned = cv2.flip(turned, _FLIPS[orientation])
    if orientation >= 5:
        turned = cv2.transpose(turned)
        shape = (shape[1], shape[0], shape[2])
    return turned.reshape(shape)


def _stored_window(window: Window, header: ImageHeader, orientation: int) -> Window:
    """The window of the stored picture that is this one after turning."""
    y, x, h, w = window
    if orientation >= 5:
        y, x, h, w = x, y, w, h
    flip = _FLIPS.get(orientation)
    if flip in (0, -1):
        y = header.height - h - y
    if flip in (1, -1):
        x = header.width - w - x
    return y, x, h, w


# ── values ────────────────────────────────────────────────────────────────────────────────────────


def _top(dtype: np.dtype[Any]) -> int:
    """The value that means "full": the largest integer, or 1."""
    return 1 if dtype.kind == "f" else int(np.iinfo(dtype).max)


def _rescale(pixels: Array, dtype: DALIDataType, into: Into) -> Array:
    """The same brightness in another type."""
    if pixels.dtype.kind == "f":
        return saturate_cast(pixels * np.float64(_top(dtype.numpy)), dtype)
    table = _rescaled(pixels.dtype, dtype)
    if pixels.dtype == np.uint8:
        return apply_table(pixels, table, into)
    return np.take(table, pixels, out=into(pixels.shape, table.dtype), mode="clip")


@functools.cache
def _rescaled(source: np.dtype[Any], dtype: DALIDataType) -> Array:
    """For every value of `source` the value of type `dtype`."""
    values = np.arange(_top(source) + 1, dtype=np.float64)
    return saturate_cast(values * _top(dtype.numpy) / _top(source), dtype)


_YCBCR = np.array(
    [
        [0.25678824, 0.50412941, 0.09790588],
        [-0.14822290, -0.29099279, 0.43921569],
        [0.43921569, -0.36778831, -0.07142737],
    ]
)
"""RGB → YCbCr of ITU-R BT.601 with 16 … 235 for the luma of 8 bits."""


def _to_ycbcr(pixels: Array, dtype: DALIDataType) -> Array:
    """YCbCr of RGB. The offsets are (16, 128, 128) of 256 steps, however many bits there are."""
    top = _top(dtype.numpy)
    steps = 1.0 if dtype.is_float else top + 1.0
    offset = np.array([[16.0], [128.0], [128.0]]) * (steps / 256)
    matrix = np.hstack([_YCBCR * (top / _top(pixels.dtype)), offset])
    wide: Array = pixels.astype(np.float64 if top > 65535 else np.float32)
    return saturate_cast(cv2.transform(wide, matrix.astype(wide.dtype)), dtype)
