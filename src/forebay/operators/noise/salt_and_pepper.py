"""Salt-and-pepper noise."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._convert import truncate_cast
from forebay.operators._operator import operator
from forebay.operators._rng import Rng
from forebay.operators.noise._noisy import check_type, on_device
from forebay.types import Between, Into, PerSample

Array = np.ndarray[Any, Any]
Share = PerSample[Annotated[float, Between(0.0, 1.0)]]


@operator
def salt_and_pepper(
    data: Sample,
    *,
    pepper_val: PerSample[float] | None = None,
    per_channel: bool = False,
    prob: Share = 0.05,
    salt_val: PerSample[float] | None = None,
    salt_vs_pepper: Share = 0.5,
    rng: Rng,
) -> Sample:
    """Replace some pixels by salt (the largest value) or pepper (the smallest).

    Args:
        pepper_val: the value of pepper; by default the smallest of the type, −1 for floats. It is
            cut off and wrapped around where the type cannot hold it.
        per_channel: draw for every element instead of for all channels of a pixel at once.
        prob: how probable it is that a pixel is replaced.
        salt_val: the value of salt; by default the largest of the type, 1 for floats.
        salt_vs_pepper: the share of salt among the replaced pixels.

    Returns:
        The same shape, element type and layout. Data without layout has its channels last.

    Raises:
        ValueError: the data is float16, float64 or bool.
    """
    check_type(data)
    axis, drawn = _draw(data, per_channel, rng)
    drawn = drawn if axis is None else np.expand_dims(drawn, axis)
    salt_value, pepper_value = _values(data, salt_val, pepper_val)
    signed = data.tensor.view(_SIGNED.get(data.tensor.dtype, data.tensor.dtype))
    values = torch.from_numpy(np.array([pepper_value, salt_value], data.dtype.numpy))
    pepper_fill, salt_fill = values.to(data.device).view(signed.dtype)
    grains = torch.where(on_device(drawn < prob * salt_vs_pepper, data), salt_fill, pepper_fill)
    result = torch.where(on_device(drawn < prob, data), grains, signed)
    return data.like(result.view(data.tensor.dtype))


@salt_and_pepper.kernel("cpu")
def _salt_and_pepper_cpu(
    data: Sample,
    *,
    pepper_val: float | None,
    per_channel: bool,
    prob: float,
    salt_val: float | None,
    salt_vs_pepper: float,
    rng: Rng,
    into: Into,
) -> Any:
    check_type(data)
    axis, drawn = _draw(data, per_channel, rng)
    salt_value, pepper_value = _values(data, salt_val, pepper_val)
    result: Array = into(data.shape, data.dtype.numpy)
    result[...] = data.array
    pixels = result if axis is None else np.moveaxis(result, axis, -1)
    pixels[drawn < prob] = pepper_value
    pixels[drawn < prob * salt_vs_pepper] = salt_value
    return data.like(result)


# Torch moves unsigned integers wider than a byte only as signed ones of the same width.
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def _draw(data: Sample, per_channel: bool, rng: Rng) -> tuple[int | None, Array]:
    """The axis of the channels if they share a number, and a number for each place, in [0, 1).

    What is below prob · salt_vs_pepper becomes salt, what else is below prob becomes pepper.
    """
    shape = list(data.shape)
    axis = data.layout.find("C") if data.layout else len(shape) - 1
    shared = axis if axis >= 0 and not per_channel else None
    if shared is not None:
        del shape[shared]
    return shared, np.asarray(rng.generator().random(shape, dtype=np.float32))


def _values(
    data: Sample, salt_val: float | None, pepper_val: float | None
) -> tuple[int | float, int | float]:
    dtype = data.dtype
    if dtype.is_float:
        high, low = 1.0, -1.0
    else:
        high, low = np.iinfo(dtype.numpy).max, np.iinfo(dtype.numpy).min
    return (
        high if salt_val is None else truncate_cast(salt_val, dtype),
        low if pepper_val is None else truncate_cast(pepper_val, dtype),
    )
