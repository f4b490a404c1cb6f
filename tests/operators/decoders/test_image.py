from __future__ import annotations

import io

import cv2
import numpy as np
import pytest
from PIL import Image

from encoded import TURNS, exif, opencv, picture, picture16, pillow
from forebay import types
from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import Call, discover
from forebay.testing import run_operator

from oracle import ARITHMETIC, EXACT, RESAMPLED, Case, Tolerance, run_dali

OP = "decoders.image"
TYPES = tuple(types.DALIImageType)
RGB, BGR, GRAY, YCBCR, ANY = TYPES
COLOURED, GREY = picture(), picture(channels=1)
WITH_ALPHA = picture(channels=4)
ONE_LEVEL = Tolerance(usual=1, worst=1)


def jpeg(subsampling, progressive=False, image=COLOURED):
    names = {"4:4:0": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440, "4:1:1": 0x411111}
    if subsampling in names:
        factor = (cv2.IMWRITE_JPEG_SAMPLING_FACTOR, names[subsampling])
        kind = (cv2.IMWRITE_JPEG_PROGRESSIVE, int(progressive), cv2.IMWRITE_JPEG_QUALITY, 85)
        return opencv(image, ".jpg", *factor, *kind)
    return pillow(image, "JPEG", subsampling=subsampling, progressive=progressive, quality=85)


SUBSAMPLINGS = ("4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1")
JPEG = jpeg("4:2:0")
PNG16 = opencv(picture16(), ".png")


NEARLY_EXACT = Tolerance(worst=1, most=0.999)
"""Halves may be rounded either way."""
FLOAT32_STEPS = Tolerance(usual=512, worst=512, relative=1e-6)
"""DALI computes 32-bit integers with 24 bits."""


def case(*encoded, tolerance=EXACT, **arguments):
    if arguments.get("output_type") == YCBCR and tolerance == EXACT:
        tolerance = NEARLY_EXACT
    return Case(OP, [list(encoded)], arguments, tolerance=tolerance)


JPEGS = [jpeg(s, p) for s in SUBSAMPLINGS for p in (False, True)]
GREY_JPEG = pillow(GREY, "JPEG")
ODD_JPEGS = [
    *(jpeg("4:2:0", image=picture(h, w)) for h, w in ((8, 8), (1, 1), (17, 1), (1, 30), (9, 64))),
    np.append(JPEG, np.frombuffer(b"behind the end", np.uint8)),
    np.concatenate([JPEG[:-2], np.zeros(9, np.uint8), JPEG[-2:]]),
]
PNGS = [
    pillow(GREY, "PNG"),
    pillow(GREY, "PNG", "1"),
    pillow(COLOURED, "PNG"),
    pillow(WITH_ALPHA, "PNG"),
    pillow(COLOURED, "PNG", "P"),
    pillow(COLOURED, "PNG", "P", transparency=3),
    pillow(COLOURED, "PNG", transparency=(1, 2, 3)),
    *(opencv(picture16(c), ".png") for c in (1, 3, 4)),
]
WEBPS = [pillow(i, "WEBP", lossless=b) for i in (COLOURED, WITH_ALPHA) for b in (False, True)]
OTHERS = [
    *(pillow(i, f) for i in (GREY, COLOURED) for f in ("BMP", "TIFF", "PPM", "JPEG2000")),
    pillow(COLOURED, "BMP", "P"),
    pillow(GREY, "BMP", "1"),
    pillow(WITH_ALPHA, "TIFF"),
    pillow(WITH_ALPHA, "JPEG2000"),
    *(pillow(COLOURED, "TIFF", compression=c) for c in ("tiff_lzw", "tiff_deflate", "jpeg")),
    opencv(COLOURED.astype(np.float32) / 255, ".tiff"),
    opencv(GREY.astype(np.float32) / 255, ".tiff"),
    pillow(COLOURED, "JPEG2000", no_jp2=True),
    opencv(COLOURED, ".ppm", cv2.IMWRITE_PXM_BINARY, 0),
    np.frombuffer(b"P1\n# a comment\n4 2\n1 0 1 1\n0 1 0 0\n", np.uint8),
    np.frombuffer(b"P2 3 2 15 0 1 2 3 14 15\n", np.uint8),
]
WIDE = [
    *(opencv(picture16(), e) for e in (".tiff", ".jp2", ".png", ".ppm")),
    *(opencv(picture16(channels=1), e) for e in (".tiff", ".jp2", ".png", ".pgm")),
]
TURNED = {
    "JPEG": [pillow(COLOURED, "JPEG", exif=exif(o)) for o in (*TURNS, 0, 9)],
    "JPEG, big endian": [pillow(COLOURED, "JPEG", exif=exif(o, ">")) for o in TURNS],
    "PNG": [pillow(COLOURED, "PNG", exif=exif(o)[6:]) for o in TURNS],
    "WebP": [pillow(COLOURED, "WEBP", lossless=True, exif=exif(o)) for o in TURNS],
    "TIFF": [pillow(COLOURED, "TIFF", tiffinfo={274: o}) for o in TURNS],
}
CASES = [
    *(case(*JPEGS, *ODD_JPEGS, output_type=t) for t in TYPES),
    *(case(GREY_JPEG, output_type=t) for t in (RGB, BGR, GRAY, YCBCR)),
    *(case(pillow(COLOURED, "JPEG", keep_rgb=True), output_type=t) for t in TYPES),
    case(*JPEGS, GREY_JPEG, use_fast_idct=True),
    case(*JPEGS, jpeg_fancy_upsampling=True),
    *(case(*PNGS, output_type=t) for t in TYPES),
    case(pillow(WITH_ALPHA[..., 2:], "PNG", "LA"), pillow(WITH_ALPHA, "BMP")),
    *(case(*WEBPS, output_type=t) for t in TYPES),
    *(case(*OTHERS, output_type=t) for t in (RGB, BGR, YCBCR, ANY)),
    case(*OTHERS, output_type=GRAY, tolerance=RESAMPLED),
    case(pillow(COLOURED, "TIFF", "P"), tolerance=RESAMPLED),
    *(case(*WIDE, output_type=t, dtype=types.UINT16) for t in (RGB, BGR, ANY)),
    case(*WIDE, output_type=GRAY, dtype=types.UINT16, tolerance=Tolerance(usual=2, worst=2)),
    *(
        case(JPEG, PNG16, output_type=t, dtype=d)
        for t in (RGB, GRAY)
        for d in (types.INT8, types.UINT16, types.INT16)
    ),
    *(
        case(JPEG, PNG16, output_type=YCBCR, dtype=d, tolerance=Tolerance(usual=1, worst=1))
        for d in (types.INT8, types.UINT16, types.INT16)
    ),
    *(
        case(JPEG, PNG16, output_type=t, dtype=d, tolerance=tolerance)
        for t in (RGB, GRAY, YCBCR)
        for d, tolerance in (
            (types.FLOAT, ARITHMETIC),
            (types.INT32, FLOAT32_STEPS),
            (types.UINT32, FLOAT32_STEPS),
        )
    ),
    *(case(*images, adjust_orientation=a) for images in TURNED.values() for a in (True, False)),
    *(case(*TURNED["JPEG"], output_type=t) for t in (GRAY, YCBCR)),
    *(case(*TURNED[f], output_type=ANY) for f in ("PNG", "WebP", "TIFF")),
    case(*TURNED["JPEG"], dtype=types.UINT16),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def decoded(encoded, **arguments):
    return run_operator(OP, [encoded], **arguments)[0].array


@pytest.mark.parametrize(
    "encoded",
    [*JPEGS, pillow(COLOURED, "PNG")],
)
def test_agrees_with_pillow_exactly(encoded):
    expected = np.asarray(Image.open(io.BytesIO(encoded.tobytes())))
    np.testing.assert_array_equal(decoded(encoded), expected)


@pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_formats_give_back_the_picture(format):
    np.testing.assert_array_equal(decoded(pillow(COLOURED, format)), COLOURED)


@pytest.mark.parametrize("orientation", TURNS)
@pytest.mark.parametrize("format", ["PNG", "WebP"])
def test_the_picture_is_turned_as_exif_says(orientation, format):
    block = exif(orientation)
    if format == "PNG":
        encoded = pillow(COLOURED, "PNG", exif=block[6:])
    else:
        encoded = pillow(COLOURED, "WEBP", exif=block, lossless=True)
    np.testing.assert_array_equal(decoded(encoded), TURNS[orientation](COLOURED))


def test_a_grey_jpeg_keeps_its_one_channel_as_any_data():
    # DALI promises that shape, but writes three channels to it and crashes.
    grey = decoded(GREY_JPEG, output_type=ANY)
    np.testing.assert_array_equal(grey, decoded(GREY_JPEG, output_type=GRAY))


def cmyk(transform):
    """A JPEG of four inks; `transform` is that of Adobe's marker: None leaves the marker out."""
    encoded = pillow(Image.fromarray(picture(channels=4), "CMYK"), "JPEG", quality=95).tobytes()
    at = encoded.index(b"Adobe")
    if transform is None:
        encoded = encoded[: at - 4] + encoded[at - 2 + encoded[at - 1] :]
    else:
        encoded = encoded[: at + 11] + bytes([transform]) + encoded[at + 12 :]
    return np.frombuffer(encoded, np.uint8)


INKS = {"CMYK": 0, "YCCK": 2, "CMYK without Adobe": None}


@pytest.mark.dali
@pytest.mark.parametrize("output_type", [RGB, BGR, YCBCR])
@pytest.mark.parametrize("transform", INKS.values(), ids=INKS)
def test_inks_agree_with_dali(transform, output_type):
    case(cmyk(transform), output_type=output_type).check_dali()


@pytest.mark.parametrize("transform", INKS.values(), ids=INKS)
def test_inks_are_multiplied(transform):
    encoded = cmyk(transform)
    stored = 255 - np.asarray(Image.open(io.BytesIO(encoded.tobytes()))).astype(int)
    light = 255 - stored if transform is None else stored
    expected = light[..., :3] * light[..., 3:] // 255
    np.testing.assert_array_equal(decoded(encoded), expected)
    np.testing.assert_array_equal(decoded(encoded, output_type=BGR), expected[..., ::-1])
    grey = expected @ [0.299, 0.587, 0.114]
    assert np.abs(decoded(encoded, output_type=GRAY)[..., 0] - grey).max() <= 1
    np.testing.assert_array_equal(decoded(encoded, output_type=ANY), stored)


def test_grey_with_alpha_keeps_both_as_any_data():
    image = WITH_ALPHA[..., 2:]
    np.testing.assert_array_equal(decoded(pillow(image, "PNG", "LA"), output_type=ANY), image)


def test_the_picture_is_written_into_the_place_that_is_given():
    place = np.zeros((*COLOURED.shape[:2], 3), np.uint8)
    operator = discover()[OP]
    call = Call(operator, {})
    result = call.run([Sample(JPEG)], into=lambda shape, dtype: place)
    assert result.array is place
    np.testing.assert_array_equal(place, decoded(JPEG))


def test_the_source_is_kept():
    assert run_operator(OP, [Sample(JPEG, source="a.jpg")])[0].source == "a.jpg"


def test_the_bytes_are_not_changed():
    for encoded in (JPEG, PNG16, pillow(WITH_ALPHA, "TIFF", tiffinfo={274: 6})):
        before = encoded.copy()
        before.flags.writeable = False
        decoded(before)
        np.testing.assert_array_equal(before, encoded)


WHOLE = {
    "JPEG": JPEG,
    "JPEG ": jpeg("4:2:0", progressive=True),
    "PNG": pillow(COLOURED, "PNG"),
    "BMP": pillow(COLOURED, "BMP"),
    "TIFF": pillow(COLOURED, "TIFF"),
    "WebP": pillow(COLOURED, "WEBP"),
    "PNM": pillow(COLOURED, "PPM"),
    "JPEG 2000": pillow(COLOURED, "JPEG2000"),
}


@pytest.mark.parametrize("format", WHOLE)
@pytest.mark.parametrize("part", [0.05, 0.4, 0.9])
def test_a_cut_off_file_is_refused(format, part):
    encoded = WHOLE[format]
    size = int(len(encoded) * part)
    with pytest.raises(ValueError, match=f"the {format.strip()} image of {size} bytes"):
        decoded(encoded[:size])


@pytest.mark.parametrize("lost", [1, 2, 3, 10])
def test_a_jpeg_without_its_last_bytes_is_refused(lost):
    with pytest.raises(ValueError, match="Premature end"):
        decoded(JPEG[:-lost])


MARKED = jpeg("4:2:0", image=picture(90, 120))
MARKED[len(MARKED) // 2 :][:2] = 0xFF, 0xBD  # a marker that there is not
OVERWRITTEN = jpeg("4:2:0", image=picture(90, 120))
OVERWRITTEN[len(OVERWRITTEN) // 2 :][:60] = np.random.default_rng(6).integers(0, 256, 60)
PROGRESSIVE = jpeg("4:2:0", progressive=True, image=picture(90, 120))
PROGRESSIVE[len(PROGRESSIVE) // 2 :][:2] = 0xFF, 0xBD


@pytest.mark.dali
@pytest.mark.parametrize("encoded", [MARKED, OVERWRITTEN], ids=["marker", "60 bytes"])
@pytest.mark.parametrize("output_type", [RGB, GRAY])
def test_a_damaged_jpeg_is_decoded_as_in_dali(encoded, output_type):
    case(encoded, output_type=output_type).check_dali()


@pytest.mark.dali
def test_a_damaged_jpeg_that_dali_cannot_decode_is_refused():
    with pytest.raises(RuntimeError, match="decode"):
        run_dali(case(PROGRESSIVE))
    with pytest.raises(ValueError, match=r"the JPEG image .* Unsupported marker type 0xbd"):
        decoded(PROGRESSIVE)


def test_a_jpeg_that_is_both_damaged_and_cut_off_is_refused():
    damaged = JPEG.copy()
    damaged[len(JPEG) // 2 :][:4] = 0
    with pytest.raises(ValueError, match="JPEG"):
        decoded(damaged[: int(len(JPEG) * 0.9)])


@pytest.mark.parametrize("lost", [4, 12, 30])
def test_a_png_without_its_last_bytes_is_refused(lost):
    with pytest.raises(ValueError, match="PNG"):
        decoded(WHOLE["PNG"][:-lost])


def test_a_png_with_a_flipped_bit_is_refused():
    damaged = WHOLE["PNG"].copy()
    damaged[len(damaged) // 2] ^= 0xFF
    with pytest.raises(ValueError, match="the PNG image"):
        decoded(damaged)


@pytest.mark.parametrize("format", WHOLE)
def test_the_first_bytes_alone_are_refused(format):
    for length in range(24):
        with pytest.raises(ValueError, match=f"{length} bytes"):
            decoded(WHOLE[format][:length])


def test_random_damage_never_gives_anything_but_an_image_or_a_value_error():
    rng = np.random.default_rng(5)
    for encoded in WHOLE.values():
        for _ in range(20):
            damaged = encoded.copy()
            damaged[rng.integers(0, min(len(damaged), 300), 4)] = rng.integers(0, 256, 4)
            try:
                result = decoded(damaged)
            except ValueError:
                continue
            assert result.ndim == 3


def test_nothing_and_text_are_refused_with_what_came():
    with pytest.raises(ValueError, match=r"0 bytes .* no image"):
        decoded(np.zeros(0, np.uint8))
    with pytest.raises(ValueError, match="11 bytes starting with 68 65 6c"):
        decoded(np.frombuffer(b"hello world", np.uint8))


@pytest.mark.parametrize(
    "array", [np.zeros((4, 5), np.uint8), np.zeros(9, np.int32), np.zeros(9, np.int8)]
)
def test_what_is_not_a_vector_of_bytes_is_refused(array):
    with pytest.raises(ValueError, match="vector of uint8"):
        decoded(array)


def test_channels_that_cannot_be_kept_are_refused():
    with pytest.raises(ValueError, match=r"4 channels .* ANY_DATA"):
        decoded(pillow(WITH_ALPHA, "BMP"), output_type=ANY)


@pytest.mark.parametrize("dtype", [types.INT64, types.FLOAT64, types.BOOL])
def test_element_types_that_dali_does_not_have_are_refused(dtype):
    with pytest.raises(ArgumentError, match="dtype"):
        decoded(JPEG, dtype=dtype)
