from __future__ import annotations

import numpy as np
import pytest

from encoded import TURNS, exif, opencv, picture, picture16, pillow
from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case

OP = "peek_image_shape"
COLOURED, GREY, WITH_ALPHA = picture(), picture(channels=1), picture(channels=4)
FILES = [
    *(pillow(i, f) for i in (GREY, COLOURED) for f in ("JPEG", "PNG", "BMP", "TIFF", "PPM")),
    pillow(COLOURED, "JPEG", progressive=True),
    pillow(COLOURED, "JPEG2000"),
    pillow(COLOURED, "JPEG2000", no_jp2=True),
    *(pillow(i, "WEBP", lossless=b) for i in (COLOURED, WITH_ALPHA) for b in (False, True)),
    *(pillow(WITH_ALPHA, f) for f in ("PNG", "BMP", "TIFF", "JPEG2000")),
    pillow(WITH_ALPHA[..., 2:], "PNG", "LA"),
    *(pillow(COLOURED, f, "P") for f in ("PNG", "BMP", "TIFF")),
    *(opencv(picture16(), e) for e in (".png", ".tiff", ".ppm", ".jp2")),
]
TURNED = [pillow(COLOURED, "JPEG", exif=exif(o)) for o in TURNS]
CASES = [
    *(Case(OP, [FILES], {"image_type": t}) for t in types.DALIImageType),
    *(
        Case(OP, [FILES[:1]], {"dtype": d})
        for d in (types.INT32, types.UINT32, types.INT64, types.UINT64, types.FLOAT, types.FLOAT64)
    ),
    *(
        Case(
            OP, [[pillow(COLOURED, "JPEG", exif=exif(o)) for o in TURNS]], {"adjust_orientation": a}
        )
        for a in (True, False)
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def test_the_shape_is_that_of_the_decoded_image():
    for image_type in (types.RGB, types.GRAY):
        shapes = run_operator(OP, FILES, image_type=image_type)
        images = run_operator("decoders.image", FILES, output_type=image_type)
        for shape, image in zip(shapes, images, strict=True):
            assert shape.array.tolist() == list(image.shape)


def test_the_header_alone_is_enough():
    encoded = pillow(COLOURED, "JPEG")
    assert run_operator(OP, [encoded[: len(encoded) * 3 // 4]])[0].array.tolist() == [61, 83, 3]


def test_no_image_is_refused():
    with pytest.raises(ValueError, match="no image of a known format"):
        run_operator(OP, [np.frombuffer(b"hello world", np.uint8)])


def test_a_header_without_size_is_refused():
    with pytest.raises(ValueError, match="0 × 83"):
        run_operator(OP, [np.frombuffer(b"P5 83 0 255\n", np.uint8)])


def test_element_types_too_narrow_for_a_size_are_refused():
    with pytest.raises(ArgumentError, match="dtype"):
        run_operator(OP, FILES[:1], dtype=types.UINT8)
