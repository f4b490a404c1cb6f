"""What an encoded image says about itself: format, size and orientation, without decoding."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from forebay.batch import Sample
from forebay.types import UINT8


class ImageHeader(NamedTuple):
    """What a file's header says.

    Attributes:
        format: the format's name, e.g. ``"JPEG"``.
        height, width: of the picture as it is stored.
        channels: as many as the file has; 3 for a palette of colours.
        orientation: EXIF's number for how the picture is to be turned; 1 is "not at all".
        adobe: a JPEG that Adobe's marker says to follow Adobe's conventions.
    """

    format: str
    height: int
    width: int
    channels: int
    orientation: int = 1
    adobe: bool = False

    def size(self, *, turned: bool) -> tuple[int, int]:
        """(height, width), of the turned picture if `turned`."""
        if turned and self.orientation >= 5:
            return self.width, self.height
        return self.height, self.width


def read_header(encoded: np.ndarray[Any, Any]) -> ImageHeader:
    """The header of an encoded image.

    Args:
        encoded: the file's bytes, as a vector of uint8.

    Raises:
        ValueError: these are no bytes, the format is not known, or the header is damaged.
    """
    if encoded.ndim != 1 or encoded.dtype != np.uint8:
        raise ValueError(
            f"the bytes of an encoded image are needed, as a vector of uint8, but got "
            f"{encoded.dtype} of shape {list(encoded.shape)}"
        )
    data = np.ascontiguousarray(encoded).data
    start = bytes(data[:12])
    for name, signature, read in _FORMATS:
        if signature.match(start):
            try:
                header = read(data)
            except (IndexError, KeyError, struct.error) as error:
                raise ValueError(undecodable(name, encoded, "it ends too early")) from error
            except ValueError as error:
                raise ValueError(undecodable(name, encoded, str(error))) from None
            if header.height < 1 or header.width < 1:
                raise ValueError(
                    undecodable(name, encoded, f"its size is {header.height} × {header.width}")
                )
            return header
    path = _path(data)
    if path is not None:
        raise ValueError(_is_path(path))
    known = ", ".join(name for name, *_ in _FORMATS)
    came = f"starting with {start.hex(' ')}" if start else "(none)"
    raise ValueError(f"{len(data)} bytes {came} are no image of a known format ({known})")


def undecodable(name: str, encoded: np.ndarray[Any, Any], why: str) -> str:
    """The text of an error about an image of a known format."""
    path = _path(encoded.tobytes())
    if path is not None:  # one of a folder "BM…" looks like a BMP
        return _is_path(path)
    return f"the {name} image of {encoded.size} bytes cannot be decoded: {why}"


def undecoded(data: Sample) -> str:
    """What was given in place of an image's pixels, and what to do: the text of an error.

    It is empty for what is neither an encoded image nor a path.
    """
    if data.ndim != 1 or data.dtype != UINT8:
        return ""
    encoded = data.tensor.cpu().numpy()
    path, name = _path(encoded.tobytes()), image_format(encoded)
    if path is not None:
        return f"{_is_path(path)}, then decode it, with fn.decoders.image"
    if name is not None:
        return (
            f"an image's pixels are needed, but got the encoded bytes of a {name} image: "
            f"decode them first, with fn.decoders.image"
        )
    return ""


def image_format(encoded: np.ndarray[Any, Any]) -> str | None:
    """The format that bytes, a vector of uint8, begin like; None if it is not known."""
    start = encoded[:12].tobytes()
    return next((name for name, signature, _ in _FORMATS if signature.match(start)), None)


def _path(data: bytes | memoryview) -> str | None:
    """The path that bytes seem to be: one that exists, or whose last part has an extension."""
    try:
        text = bytes(data[:4097]).rstrip(b"\0").decode()
    except UnicodeDecodeError:
        return None
    if not text.isprintable() or not 0 < len(text) <= 4096:
        return None
    return text if _HAS_EXTENSION.fullmatch(text) or os.path.exists(text) else None  # noqa: PTH110


_HAS_EXTENSION = re.compile(r"(?:.*[/\\])?[^/\\]+\.\w{2,5}")


def _is_path(path: str) -> str:
    return (
        f"an image is needed, but got the path {path!r}: read the file first, with fn.io.file.read"
    )


def _jpeg(data: memoryview) -> ImageHeader:
    """Walks over the markers up to the first scan (ITU-T T.81, annex B)."""
    at, orientation, adobe = 2, 1, False
    height = width = channels = 0
    while True:
        if data[at] != 0xFF:
            raise ValueError(f"no marker at byte {at}")
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if marker in (0xDA, 0xD9):
            if not channels:
                raise ValueError("it has no frame")
            return ImageHeader("JPEG", height, width, channels, orientation, adobe)
        length = data[at + 2] << 8 | data[at + 3]
        if marker in _FRAMES:
            height, width, channels = struct.unpack_from(">HHB", data, at + 5)
        elif marker == 0xE1 and bytes(data[at + 4 : at + 10]) == b"Exif\0\0":
            orientation = _exif_orientation(data[at + 10 : at + 2 + length])
        elif marker == 0xEE and bytes(data[at + 4 : at + 9]) == b"Adobe":
            adobe = True
        at += 2 + length


_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})


def _png(data: memoryview) -> ImageHeader:
    """Walks over all chunks, so that a cut-off file shows (W3C PNG, section 5)."""
    width, height, _, colour = struct.unpack_from(">IIBB", data, 16)
    at, orientation = 8, 1
    while True:
        (length,) = struct.unpack_from(">I", data, at)
        kind = bytes(data[at + 4 : at + 8])
        if at + 12 + length > len(data):
            raise IndexError
        if kind == b"eXIf":
            orientation = _exif_orientation(data[at + 8 : at + 8 + length])
        if kind == b"IEND":
            return ImageHeader("PNG", height, width, _PNG_CHANNELS[colour], orientation)
        at += 12 + length


_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}


def _bmp(data: memoryview) -> ImageHeader:
    (size,) = struct.unpack_from("<I", data, 14)
    entry, colours = 4, 0
    if size == 12:
        width, height, _, bits = struct.unpack_from("<HHHH", data, 18)
        entry = 3
    else:
        width, height, _, bits = struct.unpack_from("<iiHH", data, 18)
        (colours,) = struct.unpack_from("<I", data, 46)
    channels = 4 if bits == 32 else 3
    if bits <= 8:
        end = 14 + size + entry * (colours or 1 << bits)
        palette = np.frombuffer(data[14 + size : end], np.uint8).reshape(-1, entry)
        if (palette[:, :3] == palette[:, :1]).all():
            channels = 1
    return ImageHeader("BMP", abs(height), width, channels)


def _tiff(data: memoryview) -> ImageHeader:
    _, tags = tiff_tags(data)
    values = {tag: value for tag, (value, _) in tags.items()}
    channels = 3 if values.get(_PHOTOMETRIC) == 3 else values.get(_SAMPLES, 1)
    return ImageHeader(
        "TIFF", values[_HEIGHT], values[_WIDTH], channels, _valid(values.get(ORIENTATION, 1))
    )


_WIDTH, _HEIGHT, _PHOTOMETRIC, ORIENTATION, _SAMPLES, EXTRA_SAMPLES = 256, 257, 262, 274, 277, 338
_TAG_TYPES = {1: "B", 3: "H", 4: "I", 16: "Q"}


def tiff_tags(data: memoryview) -> tuple[str, dict[int, tuple[int, int]]]:
    """The integer tags of the first directory (TIFF 6.0, section 2; EXIF and BigTIFF alike).

    Returns:
        The byte order, as `struct` writes it, and tag → (first value, its position).
    """
    order = {b"II": "<", b"MM": ">"}[bytes(data[:2])]
    big = struct.unpack_from(f"{order}H", data, 2)[0] == 43
    word, counter, first, step = ("Q", "Q", 8, 20) if big else ("I", "H", 4, 12)
    (at,) = struct.unpack_from(order + word, data, first)
    (count,) = struct.unpack_from(order + counter, data, at)
    at += struct.calcsize(order + counter)
    room = struct.calcsize(order + word)
    tags = {}
    for entry in range(at, at + count * step, step):
        tag, kind, values = struct.unpack_from(f"{order}HH{word}", data, entry)
        form = _TAG_TYPES.get(kind)
        if form is None:
            continue
        where = entry + 4 + room
        if struct.calcsize(form) * values > room:
            (where,) = struct.unpack_from(order + word, data, where)
        tags[tag] = (struct.unpack_from(order + form, data, where)[0], where)
    return order, tags


def _exif_orientation(data: memoryview) -> int:
    """The orientation that an EXIF block tells; 1 if it tells none or is damaged."""
    try:
        return _valid(tiff_tags(data)[1][ORIENTATION][0])
    except (KeyError, struct.error):
        return 1


def _valid(orientation: int) -> int:
    return orientation if 1 <= orientation <= 8 else 1


def _webp(data: memoryview) -> ImageHeader:
    """Reads the first frame's header (RFC 9649, section 2)."""
    kind = bytes(data[12:16])
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return ImageHeader("WebP", height & 0x3FFF, width & 0x3FFF, 3)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        channels = 4 if bits >> 28 & 1 else 3
        return ImageHeader("WebP", (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1, channels)
    if kind != b"VP8X":
        raise ValueError(f"its first chunk is {kind!r}")
    flags = data[20]
    width = int.from_bytes(data[24:27], "little") + 1
    height = int.from_bytes(data[27:30], "little") + 1
    orientation = _webp_orientation(data) if flags & 0x08 else 1
    return ImageHeader("WebP", height, width, 4 if flags & 0x10 else 3, orientation)


def _webp_orientation(data: memoryview) -> int:
    at = 12
    while at + 8 <= len(data):
        (length,) = struct.unpack_from("<I", data, at + 4)
        if bytes(data[at : at + 4]) == b"EXIF":
            skipped = 6 if bytes(data[at + 8 : at + 14]) == b"Exif\0\0" else 0
            return _exif_orientation(data[at + 8 + skipped : at + 8 + length])
        at += 8 + length + (length & 1)
    return 1


def _pnm(data: memoryview) -> ImageHeader:
    match = _PNM.match(bytes(data[:4096]))
    if match is None:
        raise ValueError("its header has no size")
    kind, width, height = (int(group) for group in match.groups())
    return ImageHeader("PNM", height, width, 3 if kind in (3, 6) else 1)


_BLANK = rb"(?:\s|#[^\n]*\n)+"
_PNM = re.compile(rb"P([1-6])" + _BLANK + rb"(\d+)" + _BLANK + rb"(\d+)\s")


def _jpeg2000(data: memoryview) -> ImageHeader:
    """Finds the image header box, or reads the size from a bare codestream (ITU-T T.800)."""
    if data[0] == 0xFF:
        right, bottom, left, top = struct.unpack_from(">IIII", data, 8)
        (channels,) = struct.unpack_from(">H", data, 40)
        return ImageHeader("JPEG 2000", bottom - top, right - left, channels)
    at = 0
    while True:
        length, kind = struct.unpack_from(">I4s", data, at)
        body = 8
        if length == 1:
            (length,) = struct.unpack_from(">Q", data, at + 8)
            body = 16
        if kind == b"ihdr":
            return ImageHeader("JPEG 2000", *struct.unpack_from(">IIH", data, at + body))
        if kind != b"jp2h" and length < body:
            raise ValueError("it has no image header")
        at += body if kind == b"jp2h" else length


_FORMATS: list[tuple[str, re.Pattern[bytes], Callable[[memoryview], ImageHeader]]] = [
    ("JPEG", re.compile(rb"\xff\xd8\xff"), _jpeg),
    ("PNG", re.compile(rb"\x89PNG\r\n\x1a\n"), _png),
    ("WebP", re.compile(rb"RIFF....WEBP", re.DOTALL), _webp),
    ("BMP", re.compile(rb"BM"), _bmp),
    ("TIFF", re.compile(rb"II\*\0|MM\0\*|II\+\0|MM\0\+"), _tiff),
    ("PNM", re.compile(rb"P[1-6][\s#]"), _pnm),
    ("JPEG 2000", re.compile(rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51"), _jpeg2000),
]
