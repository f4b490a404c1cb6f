"""The random window of an image: how random crops draw its size and place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.errors import ArgumentError
from forebay.types import Arguments, Floats

Window = tuple[int, int, int, int]
"""(y, x, height, width)."""


@dataclass(frozen=True)
class RandomWindow(Arguments):
    """How large a random window is, and of which shape.

    Attributes:
        num_attempts: how often a window that does not fit is drawn again. After that it is the
            largest one that the ranges allow, at a random place.
        random_area: (smallest, largest) area of the window as a fraction of the image's, or one
            number for both.
        random_aspect_ratio: (smallest, largest) width / height of the window, or one number.
    """

    num_attempts: int = 10
    random_area: Floats = (0.08, 1.0)
    random_aspect_ratio: Floats = (0.75, 1.333333)

    def draw(self, generator: np.random.Generator, height: int, width: int) -> Window:
        """A window of an image of this size, drawn with `generator`."""
        return random_window(
            generator,
            height,
            width,
            area=self.random_area,
            aspect_ratio=self.random_aspect_ratio,
            num_attempts=self.num_attempts,
        )


def check_random_window(given: Mapping[str, Any]) -> None:
    """Raise ArgumentError for a range of area or aspect ratio that holds nothing."""
    for name, positive in (("random_area", False), ("random_aspect_ratio", True)):
        value = given.get(name)
        if value is not None and not (
            1 <= len(value) <= 2 and 0 <= value[0] <= value[-1] > 0 and (value[0] or not positive)
        ):
            raise ArgumentError(
                f"'{name}' takes (smallest, largest), both positive, but got {value}"
            )
    if given.get("num_attempts", 0) < 0:
        raise ArgumentError(f"'num_attempts' cannot be negative, but got {given['num_attempts']}")


def random_window(
    generator: np.random.Generator,
    height: int,
    width: int,
    *,
    area: tuple[float, ...],
    aspect_ratio: tuple[float, ...],
    num_attempts: int,
) -> Window:
    """Draw a window: its area uniformly, its aspect ratio log-uniformly, its place uniformly.

    Extents are rounded; a window that is larger than the image, or whose aspect ratio rounding
    moved out of its range, is drawn again. Where `num_attempts` find none, it is the largest that
    the ranges allow. The scheme is that of Szegedy et al., "Going deeper with convolutions", 2015,
    with DALI's choices in what it leaves open.

    Args:
        generator: where the numbers come from.
        height, width: of the image.
        area: (smallest, largest) fraction of the image's area, or one number for both.
        aspect_ratio: (smallest, largest) width / height, or one number for both.
        num_attempts: how many windows are tried.

    Returns:
        (y, x, height, width) of the window, which lies inside the image.

    Raises:
        ValueError: the image has no pixels.
    """
    if height < 1 or width < 1:
        raise ValueError(f"an image of {height} × {width} pixels has no window")
    low, high = aspect_ratio[0], aspect_ratio[-1]
    log_low, log_span = math.log(low), math.log(high / low)
    pixels = height * width
    smallest, span = pixels * area[0], pixels * (area[-1] - area[0])
    draw = generator.random
    for _ in range(num_attempts):
        wanted = smallest + span * draw()
        ratio = math.exp(log_low + log_span * draw())
        w = int(math.sqrt(wanted * ratio) + 0.5)
        h = int(math.sqrt(wanted / ratio) + 0.5)
        if 0 < w <= width and 0 < h <= height and low <= w / h <= high:
            break
    else:
        h, w = _largest(height, width, area[-1], low, high)
    y = int(draw() * (height - h + 1))
    x = int(draw() * (width - w + 1))
    return y, x, h, w


def _largest(height: int, width: int, area: float, low: float, high: float) -> tuple[int, int]:
    """The largest height and width that fit the image, the area and the aspect ratios."""
    h, w = height, width
    if w > high * h:
        w = max(int(high * h), 1)
    elif w < low * h:
        h = max(int(w / low), 1)
    scale = math.sqrt(area * height * width / (h * w))
    if scale < 1:
        h, w = max(int(h * scale), 1), max(int(w * scale), 1)
    return h, w
