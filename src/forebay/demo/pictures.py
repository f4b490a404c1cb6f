"""The pictures of the demo: JPEG files of patterns, one folder a class, drawn once and kept.

They cost what photographs cost: 300 to 600 pixels a side, noisy, 50 to 100 kB. Each is a function
of the seed and its number, so the set is the same on every machine.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np

Array = np.ndarray[Any, Any]

VERSION = 1
"""Part of the folder's name: a change of what is drawn draws it anew."""


def cache_folder() -> Path:
    """Where this system's programs keep what they can make again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "forebay"


def _wave(x: Array) -> Array:
    """A soft square wave of period 1, between 0 and 1."""
    wave: Array = 0.5 + 0.5 * np.tanh(4 * np.sin(2 * np.pi * x))
    return wave


def _from_centre(u: Array, v: Array) -> Array:
    """The distance to the centre of the cell of the unit grid."""
    distance: Array = np.hypot(u - np.floor(u) - 0.5, v - np.floor(v) - 0.5)
    return distance


def _inside(distance: Array) -> Array:
    """1 where the distance to an edge is negative, 0 where it is positive, soft between."""
    soft: Array = 0.5 - 0.5 * np.tanh(20 * distance)
    return soft


def _bricks(u: Array, v: Array) -> Array:
    row = np.floor(2 * v)
    along = u + 0.5 * (row % 2)
    joint = np.minimum(np.abs(along - np.round(along)), np.abs(2 * v - np.round(2 * v)) / 2)
    return _inside(0.07 - joint)


def _crosses(u: Array, v: Array) -> Array:
    x, y = np.abs(u - np.floor(u) - 0.5), np.abs(v - np.floor(v) - 0.5)
    return _inside(np.maximum(np.minimum(x, y) - 0.11, np.maximum(x, y) - 0.4))


PATTERNS: dict[str, Callable[[Array, Array], Array]] = {
    "bricks": _bricks,
    "checks": lambda u, v: np.abs(_wave(u) - _wave(v)),
    "crosses": _crosses,
    "dots": lambda u, v: _inside(_from_centre(u, v) - 0.3),
    "rings": lambda u, v: _inside(np.abs(_from_centre(u, v) - 0.32) - 0.09),
    "stripes": lambda u, _: _wave(u),
    "waves": lambda u, v: _wave(u + 0.35 * np.sin(2 * np.pi * v)),
    "weave": lambda u, v: np.where((np.floor(u) + np.floor(v)) % 2, _wave(2 * u), _wave(2 * v)),
}
"""Class → how dark the pattern is at (u, v), in units of its period."""


def draw(name: str, rng: np.random.Generator) -> bytes:
    """One picture of a class, as a JPEG file."""
    height, width = (int(n) for n in rng.integers(300, 601, 2))
    angle = rng.uniform(-0.5, 0.5)
    period = rng.uniform(40, 90)
    y = np.arange(height, dtype=np.float32)[:, None]
    x = np.arange(width, dtype=np.float32)
    along, across = math.cos(angle) / period, math.sin(angle) / period
    u = along * x + across * y + rng.random(dtype=np.float32)
    v = along * y - across * x + rng.random(dtype=np.float32)
    dark = PATTERNS[name](u, v)[..., None].astype(np.float32)

    light = rng.uniform(130, 240, 3).astype(np.float32)
    ink = light * rng.uniform(0.15, 0.6, 3).astype(np.float32)
    shade = 1 + rng.uniform(-0.3, 0.3) * (x / width) + rng.uniform(-0.3, 0.3) * (y / height)
    stains = cv2.resize(rng.normal(0, 12, (6, 6, 3)).astype(np.float32), (width, height))
    grain = rng.standard_normal((height, width, 1), np.float32) * np.float32(rng.uniform(8, 12))
    picture = (light + (ink - light) * dark) * shade[..., None] + stains + grain
    pixels = np.clip(picture, 0, 255).astype(np.uint8)
    return bytes(cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 88])[1])


def drawn_pictures(
    count: int, seed: int, cache: Path, advance: Callable[[], object] = lambda: None
) -> Path:
    """The class folders with `count` pictures in all; drawn if they are not in the cache.

    Args:
        count: how many, shared out evenly.
        seed: of the drawing.
        cache: the folder to keep them in.
        advance: called once for each picture that was drawn.
    """
    folder = cache / f"pictures-{VERSION}-{count}-{seed}"
    if folder.is_dir():
        return folder
    names = list(PATTERNS)
    with _all_or_nothing(folder) as new:
        for name in names:
            (new / name).mkdir()

        def one(index: int) -> None:
            name = names[index % len(names)]
            content = draw(name, np.random.default_rng((seed, index)))
            (new / name / f"{index:05}.jpg").write_bytes(content)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                for _ in pool.map(one, range(count)):
                    advance()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return folder


@contextmanager
def _all_or_nothing(folder: Path) -> Iterator[Path]:
    """A folder that gets its name only when it is complete, so a half-drawn set is never used."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix="drawing-", dir=folder.parent))
    try:
        yield new
        try:
            new.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster, with the same pictures
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
