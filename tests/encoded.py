"""Encoded pictures for tests of decoders: drawn, then written by Pillow or OpenCV."""

from __future__ import annotations

import io
import struct
from typing import Any

import cv2
import numpy as np
from PIL import Image


def picture(height: int = 61, width: int = 83, channels: int = 3, seed: int = 1) -> np.ndarray:
    """Smooth blobs of colour and a few hard edges."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (6, 7, channels)).astype(np.float32)
    fine = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    drawn = fine.reshape(height, width, channels).clip(0, 255).astype(np.uint8)
    drawn[height // 4 : height // 2, width // 3 : width // 2] ^= 0x7F
    return drawn


def picture16(channels: int = 3, seed: int = 1) -> np.ndarray:
    """The same with 16 bits."""
    rng = np.random.default_rng(seed)
    drawn = picture(channels=channels, seed=seed).astype(np.int32) * 257
    return (drawn + rng.integers(-120, 120, drawn.shape)).clip(0, 65535).astype(np.uint16)


def pillow(image: np.ndarray | Image.Image, format: str, mode: str = "", **options: Any) -> Any:
    """The bytes of a file, as a vector. `mode` is Pillow's colour mode of the file."""
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
    if mode:
        image = image.quantize(32) if mode == "P" else image.convert(mode)
    file = io.BytesIO()
    image.save(file, format, **options)
    return np.frombuffer(file.getvalue(), np.uint8).copy()


def opencv(image: np.ndarray, extension: str, *parameters: int) -> np.ndarray:
    """The bytes of a file of an image of RGB, RGBA or grey."""
    if image.ndim == 3 and image.shape[2] >= 3:
        image = image[..., [2, 1, 0, 3][: image.shape[2]]]
    done, encoded = cv2.imencode(extension, np.ascontiguousarray(image), list(parameters))
    assert done
    return encoded.reshape(-1)


def exif(orientation: int, order: str = "<") -> bytes:
    """An EXIF block that says an orientation and nothing else."""
    tag = struct.pack(f"{order}HIHHHIHHI", 42, 8, 1, 0x0112, 3, 1, orientation, 0, 0)
    return b"Exif\0\0" + (b"II" if order == "<" else b"MM") + tag


TURNS = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
    8: np.rot90,
}
"""EXIF orientation → what it asks to be done to the stored picture."""
