"""Draw random windows for images of given sizes."""

from __future__ import annotations

import numpy as np

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.operators._random_window import RandomWindow, check_random_window
from forebay.operators._rng import Rng


@operator(devices=("cpu",), check=check_random_window)
def random_crop_generator(
    shape: Sample, *, window: RandomWindow, rng: Rng
) -> tuple[Sample, Sample]:
    """Draw a window of an image, as random resized crops do, from the image's shape.

    The input is (height, width) or (height, width, channels). The window's area is drawn uniformly,
    its aspect ratio log-uniformly and its place uniformly.

    Returns:
        The window's start (y, x) and its size (height, width), both int32 of shape (2,).

    Raises:
        ValueError: the input is not a vector of two or three integers, or one is negative.
    """
    data = shape.data
    kind = shape.dtype
    extents = data.tolist()
    if (
        data.ndim != 1
        or not 2 <= len(extents) <= 3
        or kind.numpy.kind not in "iu"
        or min(extents) < 0
    ):
        raise ValueError(
            f"an image's shape is (height, width) or (height, width, channels), but got "
            f"{extents if data.ndim < 2 and len(extents) < 9 else shape} of type {kind.name}"
        )
    height, width = extents[:2]
    y, x, h, w = window.draw(rng.generator(), height, width)
    return shape.like(np.array([y, x], np.int32), ""), shape.like(np.array([h, w], np.int32), "")
