"""A random part of a picture, resized."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._fast_resize import fast_resize
from forebay.operators._interpolation import Interpolation
from forebay.operators._layout import image_layout
from forebay.operators._operator import operator
from forebay.operators._random_window import RandomWindow, check_random_window
from forebay.operators._resample import Span, resample_image, resampled_type
from forebay.operators._rng import Rng
from forebay.operators._sizing import NO_RESAMPLE_HINTS, ResampleHints
from forebay.types import DALIDataType, Into, Ints


def _check(given: Mapping[str, Any]) -> None:
    check_random_window(given)
    size = given.get("size", (1,))
    if not 1 <= len(size) <= 2 or min(size) < 0:
        raise ArgumentError(f"'size' takes (height, width) or one number, but got {size}")


@operator(check=_check)
def random_resized_crop(
    data: Sample,
    *,
    window: RandomWindow,
    interpolation: Interpolation,
    rng: Rng,
    size: Ints,
    hints: ResampleHints = NO_RESAMPLE_HINTS,
    dtype: DALIDataType | None = None,
) -> Sample:
    """Resize a random part of a picture, or the same part of all frames of a video.

    Pixels just outside the part take part in the interpolation at its border, as in DALI and unlike
    in a crop that is followed by a resize.

    Args:
        size: (height, width) of the result; one number serves both.
        dtype: the element type of the result: the input's (the default) or FLOAT.

    Returns:
        The part in the same layout (one assumed by the number of axes if there was none).

    Raises:
        ValueError: the data is no picture, has no pixels, or is not uint8, int16, uint16 or
            float32.
        ArgumentError: a range of areas or aspect ratios holds nothing, or `num_attempts` is
            negative.
    """
    layout = image_layout(data)
    result_type = resampled_type(data.dtype, dtype)
    spans = _draw(data, layout, window, rng, size)
    return resample_image(data, layout, spans, interpolation, result_type)


@random_resized_crop.kernel("cpu")
def _random_resized_crop_cpu(
    data: Sample,
    *,
    window: RandomWindow,
    interpolation: Interpolation,
    rng: Rng,
    size: Ints,
    dtype: DALIDataType | None,
    into: Into,
) -> Any:
    layout = image_layout(data)
    spans = _draw(data, layout, window, rng, size)
    return fast_resize(data, layout, spans, interpolation, dtype, into)


def _draw(data: Sample, layout: str, window: RandomWindow, rng: Rng, size: Ints) -> dict[str, Span]:
    if "D" in layout:
        raise ValueError(f"a random part of a volume cannot be drawn; the layout is {layout!r}")
    shape = data.shape
    height, width = shape[layout.index("H")], shape[layout.index("W")]
    y, x, h, w = window.draw(rng.generator(), height, width)
    return {
        "H": Span(size[0], float(y), float(y + h)),
        "W": Span(size[-1], float(x), float(x + w)),
    }
