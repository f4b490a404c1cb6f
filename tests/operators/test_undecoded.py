"""Steps that were forgotten before an operator: to read a file, or to decode an image."""

from __future__ import annotations

import re

import cv2
import numpy as np
import pytest

from calls import ALL, CALLED, enough
from forebay.testing import run_operator

PIXELS = np.random.default_rng(3).integers(0, 256, (80, 90, 3), np.uint8)
FORMATS = {
    "JPEG": ".jpg",
    "PNG": ".png",
    "WebP": ".webp",
    "BMP": ".bmp",
    "TIFF": ".tiff",
    "PNM": ".ppm",
    "JPEG 2000": ".jp2",
}
ENCODED = {name: cv2.imencode(ending, PIXELS)[1].ravel() for name, ending in FORMATS.items()}


def text_bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def refusal(name: str, data: np.ndarray) -> str:
    try:
        run_operator(name, [data], given=enough(name))
    except ValueError as error:
        return str(error)
    return ""


WITH_ONE_INPUT = [
    name
    for name in CALLED
    if ALL[name].schema.level != "source" and ALL[name].schema.min_inputs == 1
]
OF_IMAGES = [n for n in WITH_ONE_INPUT if "image of layout" in refusal(n, np.zeros(9, np.uint8))]
OF_FILES = [n for n in WITH_ONE_INPUT if "no image of a known" in refusal(n, np.zeros(9, np.uint8))]


def test_the_operators_meant_here_are_found():
    assert {"resize", "crop", "flip", "brightness", "rotate", "equalize"} <= set(OF_IMAGES)
    assert {"decoders.image", "decoders.image_random_crop", "peek_image_shape"} <= set(OF_FILES)


@pytest.mark.parametrize("name", OF_IMAGES)
def test_encoded_bytes_where_pixels_are_needed_are_called_so(name):
    for kind, data in ENCODED.items():
        text = refusal(name, data)
        assert f"got the encoded bytes of a {kind} image: decode them first" in text
        assert "fn.decoders.image" in text


@pytest.mark.parametrize("name", [*OF_IMAGES, *OF_FILES])
def test_a_path_where_an_image_is_needed_is_called_so(name):
    text = refusal(name, text_bytes("no/such folder/größe 1.jpeg"))
    assert "got the path 'no/such folder/größe 1.jpeg': read the file first" in text
    assert "fn.io.file.read" in text
    assert ("fn.decoders.image" in text) == (name in OF_IMAGES)


@pytest.mark.parametrize(
    "path", ["a.jpg", "BM/1.png", "P5 #/x.pgm", "s3://bucket/a.JPG", "C:\\cats\\1.bmp", "a.jpg\0\0"]
)
def test_a_path_is_known_by_its_extension(path):
    shown = repr(path.rstrip("\0"))
    assert f"got the path {shown}: " in refusal("decoders.image", text_bytes(path))


def test_a_path_without_extension_is_known_if_it_exists(tmp_path):
    (tmp_path / "picture").write_bytes(b"")
    assert f"path '{tmp_path}/picture': " in refusal(
        "decoders.image", text_bytes(f"{tmp_path}/picture")
    )
    assert "no image of a known format" in refusal(
        "decoders.image", text_bytes(f"{tmp_path}/other")
    )


@pytest.mark.parametrize("text", ["hello world", "Two lines.\nof text.txt", "x" * 5000 + ".jpg"])
def test_other_text_is_not_taken_for_a_path(text):
    assert "no image of a known format" in refusal("decoders.image", text_bytes(text))


def test_a_damaged_image_is_not_taken_for_a_path():
    for kind, data in ENCODED.items():
        assert f"the {kind} image of 12 bytes" in refusal("decoders.image", data[:12])


def test_encoded_bytes_where_a_path_is_needed_are_called_so():
    for kind in ("JPEG", "PNG"):
        assert re.search(
            rf"path is needed, but got the encoded bytes of a {kind} image",
            refusal("io.file.read", ENCODED[kind]),
        )
    assert "bytes that are not UTF-8" in refusal("io.file.read", np.full(5, 255, np.uint8))


def test_the_error_about_a_shape_stays_short():
    assert len(refusal("random_crop_generator", np.zeros(10_000, np.uint8))) < 200
