"""Cut out, mirror, subtract the mean, divide by the deviation and permute, in one go."""

from __future__ import annotations

import functools
import math
import threading
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch

from forebay.batch import Sample, as_tensor
from forebay.operators._convert import saturate_cast
from forebay.operators._operator import operator
from forebay.operators._region import (
    NO_HINT,
    ImageTypeHint,
    OutOfBounds,
    fill_array,
    filled,
    inside,
)
from forebay.operators._window import CropWindow, check_crop_window, crop_layout, crop_region
from forebay.types import FLOAT, FLOAT16, DALIDataType, Floats, Into, Layout, PerSample


@operator(check=check_crop_window)
def crop_mirror_normalize(
    data: Sample,
    *,
    window: CropWindow,
    bounds: OutOfBounds,
    dtype: DALIDataType = FLOAT,
    output_dtype: DALIDataType | None = None,
    output_layout: Layout = "CHW",
    pad_output: bool = False,
    mirror: PerSample[int] = 0,
    mean: PerSample[Floats] = (0.0,),
    std: PerSample[Floats] = (1.0,),
    scale: float = 1.0,
    shift: float = 0.0,
    hints: ImageTypeHint = NO_HINT,
) -> Sample:
    """Crop, mirror and normalise an image, video or volume, and permute its axes.

    Every element becomes ``(x − mean) / std · scale + shift``, computed in float32. The crop is
    taken first and then mirrored.

    Args:
        dtype: the output's element type. Integers are rounded half away from zero and clamped.
        output_dtype: an old name of `dtype`.
        output_layout: the order of the output's axes, a permutation of the input's; empty keeps it.
        pad_output: pads the channels to the next power of two: with 0, or with `fill_values` if
            `out_of_bounds_policy` is "pad".
        mirror: non-zero mirrors the W axis.
        mean, std: one value, or one a channel.
        scale: the factor of the normalised values.
        shift: what is added to them last.

    Returns:
        The crop in `output_layout`. Fill values stand in it as they are, not normalised.

    Raises:
        ValueError: the data is no image, `output_layout` is no permutation of its layout, the
            window reaches outside against `out_of_bounds_policy`, or a list has neither one value
            nor as many as there are channels.
    """
    place = _place(data, window, bounds, output_layout, mirror=mirror, pad=pad_output)
    target_type = dtype if output_dtype is None else output_dtype
    source = data.tensor[place.source]
    if mirror:
        source = source.flip(place.layout.index("W"))
    values = source.permute(place.order).to(torch.float32, copy=True)
    _normalise(values, place, mean, std, scale, shift)
    values = saturate_cast(values, target_type)
    if place.target is not None:
        content, values = values, filled(values, place.shape, _fill(place, bounds, target_type))
        values[place.target] = content
    return data.like(values, place.out_layout)


_SPLITTABLE = {np.dtype(d) for d in (np.uint8, np.uint16, np.int16, np.int32, np.float32)}


class _Scratch(threading.local):
    """Memory for the planes of a frame, one a thread: fresh memory costs more than the work."""

    memory = np.empty(0, np.uint8)

    def get(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        size = math.prod(shape) * dtype.itemsize
        if self.memory.size < size:
            self.memory = np.empty(size, np.uint8)
        return self.memory[:size].view(dtype).reshape(shape)


_scratch = _Scratch()


@crop_mirror_normalize.kernel("cpu")
def _crop_mirror_normalize_cpu(
    data: Sample,
    *,
    window: CropWindow,
    bounds: OutOfBounds,
    dtype: DALIDataType,
    output_dtype: DALIDataType | None,
    output_layout: str,
    pad_output: bool,
    mirror: int,
    mean: Floats,
    std: Floats,
    scale: float,
    shift: float,
    into: Into,
) -> Any:
    target_type = dtype if output_dtype is None else output_dtype
    place = _place(data, window, bounds, output_layout, mirror=mirror, pad=pad_output)
    source = data.array[place.source]
    if not _is_simple(place, source, target_type):
        return NotImplemented
    result = into(place.shape, target_type.numpy)
    whole = place.target is None
    if not whole:
        result[...] = _fill(place, bounds, target_type)
    final = torch.from_numpy(result if whole else result[place.target])
    values = final if target_type == FLOAT else torch.empty(final.shape, dtype=torch.float32)
    if len(place.layout) == 3:
        values.copy_(as_tensor(_frame(source, place, mirror)))
    else:
        for frame, out in zip(source, values, strict=True):
            out.copy_(as_tensor(_frame(frame, place, mirror)))
    _normalise(values, place, mean, std, scale, shift)
    if values is not final:
        final.copy_(values)
    return data.like(result, place.out_layout)


_ROUTES = {
    "HWC": ("CHW", "HWC"),
    "FHWC": ("FCHW", "FHWC"),
    "DHWC": ("DCHW", "DHWC"),
}


def _is_simple(place: _Place, source: np.ndarray[Any, Any], dtype: DALIDataType) -> bool:
    """Whether the frames are HWC, go to HWC or CHW, and OpenCV can take their channels apart."""
    return (
        dtype in (FLOAT, FLOAT16)
        and source.dtype in _SPLITTABLE
        and place.out_layout in _ROUTES.get(place.layout, ())
        and source.size > 0
        and source.shape[-1] <= 4
    )


def _frame(frame: np.ndarray[Any, Any], place: _Place, mirror: int) -> np.ndarray[Any, Any]:
    """One frame mirrored and permuted, in its own small elements: that is cheapest."""
    height, width, channels = frame.shape
    if mirror:
        frame = cv2.flip(frame, 1).reshape(height, width, channels)
    if place.out_layout[-1] == "C":
        return frame
    planes = _scratch.get((channels, height, width), frame.dtype)
    cv2.split(frame, list(planes))
    return planes


class _Place(NamedTuple):
    """Where data is taken from and where it goes.

    Attributes:
        layout, out_layout: of the input and of the output.
        order: the input's axes in the order of the output.
        source: the part of the input that is read.
        shape: the output's.
        target: the part of the output that it goes to; None for all of it.
    """

    layout: str
    out_layout: str
    order: tuple[int, ...]
    source: tuple[slice, ...]
    shape: tuple[int, ...]
    target: tuple[slice, ...] | None


def _place(
    data: Sample,
    window: CropWindow,
    bounds: OutOfBounds,
    output_layout: str,
    *,
    mirror: int,
    pad: bool,
) -> _Place:
    layout, extents = crop_layout(data), data.shape
    out_layout = output_layout or layout
    order = _order(layout, out_layout)
    region = bounds.apply(crop_region(window, layout, extents), extents)
    source, target = inside(region, extents)
    shape = [size for _, size in region]
    part = [cut.stop - cut.start for cut in source]
    if mirror:
        axis = layout.index("W")
        goes = target[axis]
        reflected = slice(shape[axis] - goes.stop, shape[axis] - goes.start)
        target = (*target[:axis], reflected, *target[axis + 1 :])
    if pad:
        channel = layout.index("C")
        shape[channel] = 1 << max(shape[channel] - 1, 0).bit_length()
    return _Place(
        layout,
        out_layout,
        order,
        source,
        tuple(shape[axis] for axis in order),
        None if shape == part else tuple(target[axis] for axis in order),
    )


@functools.cache
def _order(layout: str, out_layout: str) -> tuple[int, ...]:
    if sorted(layout) != sorted(out_layout):
        raise ValueError(
            f"output_layout must be a permutation of the input's layout {layout!r}, "
            f"but got {out_layout!r}"
        )
    return tuple(layout.index(letter) for letter in out_layout)


def _fill(place: _Place, bounds: OutOfBounds, dtype: DALIDataType) -> np.ndarray[Any, Any]:
    values = bounds.fill_values if bounds.out_of_bounds_policy == "pad" else (0.0,)
    return fill_array(values, dtype, place.shape, place.out_layout.index("C"))


def _normalise(
    values: torch.Tensor,
    place: _Place,
    mean: Floats,
    std: Floats,
    scale: float,
    shift: float,
) -> None:
    """Normalise in place."""
    axis = place.out_layout.index("C")
    width = values.shape[-2] if axis == values.ndim - 1 else 1
    offset, factor = _constants(
        mean, std, scale, values.shape[axis], values.ndim - axis, width, values.device
    )
    if offset is not None:
        values.sub_(offset)
    if factor is not None:
        values.mul_(factor)
    if shift:
        values.add_(shift)


@functools.lru_cache(maxsize=256)
def _constants(
    mean: Floats,
    std: Floats,
    scale: float,
    channels: int,
    axes_from_channel: int,
    width: int,
    device: torch.device,
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """What to subtract and what to multiply by, as tensors that broadcast; None changes nothing.

    Where the channels are the last axis, the values are repeated for a whole row: torch adds rows
    about ten times as fast as it adds three numbers many times.
    """
    for name, given in (("mean", mean), ("std", std)):
        if len(given) not in (1, channels):
            raise ValueError(
                f"'{name}' takes one value or one a channel, but got {len(given)} for {channels} "
                f"channels"
            )

    def ready(values: torch.Tensor) -> torch.Tensor:
        values = values.expand(channels)
        if axes_from_channel == 1:
            return values.expand(width, channels).contiguous().to(device)
        return values.reshape(channels, *[1] * (axes_from_channel - 1)).to(device)

    offset = torch.tensor(mean, dtype=torch.float32)
    factor = torch.tensor(scale, dtype=torch.float32) / torch.tensor(std, dtype=torch.float32)
    return (
        ready(offset) if any(mean) else None,
        ready(factor) if bool((factor != 1).any()) else None,
    )
