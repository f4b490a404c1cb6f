"""Conversion between colour spaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._color import Array, apply_table, channels_last, transform
from forebay.operators._convert import saturate_cast
from forebay.operators._operator import operator
from forebay.types import BGR, GRAY, RGB, UINT8, DALIImageType, Into, YCbCr

_LAYOUTS = ("HWC", "FHWC", "DHWC", "FDHWC")


def _rgb_to_ycbcr() -> Array:
    """ITU-R BT.601 for 8 bits: luma in 16 to 235, chroma in 16 to 240."""
    weights = np.array([0.299, 0.587, 0.114])
    blue = (np.array([0.0, 0.0, 1.0]) - weights) / (2 * (1 - weights[2]))
    red = (np.array([1.0, 0.0, 0.0]) - weights) / (2 * (1 - weights[0]))
    rows = np.stack([219 / 255 * weights, 224 / 255 * blue, 224 / 255 * red])
    return np.column_stack([rows, [16.0, 128.0, 128.0]])


def _ycbcr_to_rgb() -> Array:
    forward = _rgb_to_ycbcr()
    inverse = np.linalg.inv(forward[:, :3])
    return np.column_stack([inverse, -inverse @ forward[:, 3]])


def _maps() -> dict[tuple[DALIImageType, DALIImageType], Array]:
    """For each pair of spaces the affine map of a pixel: a row for each output channel.

    Gray is the luma of BT.601 with weights of 15 bits, as OpenCV has it.
    """
    gray = np.array([[9798, 19235, 3735, 0]]) / 2**15
    swap = np.eye(4)[[2, 1, 0]]
    maps = {
        (RGB, BGR): swap,
        (RGB, GRAY): gray,
        (RGB, YCbCr): _rgb_to_ycbcr(),
        (YCbCr, RGB): _ycbcr_to_rgb(),
        (YCbCr, GRAY): np.array([[1.0, 0.0, 0.0, -16.0]]) * (255 / 219),
        (GRAY, RGB): np.array([[1.0, 0.0]] * 3),
        (GRAY, BGR): np.array([[1.0, 0.0]] * 3),
        (GRAY, YCbCr): np.array([[219 / 255, 16.0], [0.0, 128.0], [0.0, 128.0]]),
    }
    order = [2, 1, 0, 3]
    maps[BGR, RGB] = swap
    maps[BGR, GRAY] = gray[:, order]
    maps[BGR, YCbCr] = maps[RGB, YCbCr][:, order]
    maps[YCbCr, BGR] = maps[YCbCr, RGB][[2, 1, 0]]
    return maps


_MAPS = _maps()
_CV2_CODES = {
    (RGB, BGR): cv2.COLOR_RGB2BGR,
    (BGR, RGB): cv2.COLOR_BGR2RGB,
    (RGB, GRAY): cv2.COLOR_RGB2GRAY,
    (BGR, GRAY): cv2.COLOR_BGR2GRAY,
    (GRAY, RGB): cv2.COLOR_GRAY2RGB,
    (GRAY, BGR): cv2.COLOR_GRAY2BGR,
}


def _check(given: Mapping[str, Any]) -> None:
    pair = given.get("image_type"), given.get("output_type")
    if None not in pair and pair not in _MAPS:
        names = " to ".join(DALIImageType(one).name for one in pair if one is not None)
        raise ArgumentError(
            f"there is no conversion from {names}; it takes two different ones of "
            f"RGB, BGR, GRAY and YCbCr"
        )


@operator(check=_check)
def color_space_conversion(
    data: Sample, *, image_type: DALIImageType, output_type: DALIImageType
) -> Sample:
    """Convert an image, video or volume of uint8 from one colour space to another.

    YCbCr is that of ITU-R BT.601 in studio range (luma 16 to 235); gray has the full range.

    Args:
        image_type: the colour space of the input.
        output_type: that of the output, another one.

    Returns:
        The same shape but for the channels (one for GRAY, else three), uint8, the same layout.

    Raises:
        ArgumentError: the two spaces are equal, or one is ANY_DATA.
        ValueError: the data is not uint8, has not its channels last or not as many as the space.
    """
    layout = _layout(data, image_type)
    affine = torch.as_tensor(_MAPS[image_type, output_type], device=data.device)
    pixels = data.tensor.to(torch.float64)
    converted = (pixels.unsqueeze(-2) * affine[:, :-1]).sum(-1) + affine[:, -1]
    return data.like(saturate_cast(converted, UINT8), layout)


@color_space_conversion.kernel("cpu")
def _color_space_conversion_cpu(
    data: Sample, *, image_type: DALIImageType, output_type: DALIImageType, into: Into
) -> Any:
    layout = _layout(data, image_type)
    array, pair = data.array, (image_type, output_type)
    if array.size == 0 or pair == (GRAY, YCbCr):
        return NotImplemented
    affine = _MAPS[pair]
    rows = len(array)
    if pair in _CV2_CODES:
        result: Array = into((*array.shape[:-1], len(affine)), np.uint8)
        flat = array.reshape(rows, -1, array.shape[-1])
        cv2.cvtColor(flat, _CV2_CODES[pair], dst=result.reshape(rows, -1, len(affine)))
        return data.like(result, layout)
    if pair == (YCbCr, GRAY):
        return data.like(apply_table(array[..., :1], _LUMA_TO_GRAY, into), layout)
    return data.like(transform(array, affine.astype(np.float32), UINT8, into), layout)


_LUMA = np.arange(256) * _MAPS[YCbCr, GRAY][0, 0] + _MAPS[YCbCr, GRAY][0, -1]
_LUMA_TO_GRAY = saturate_cast(_LUMA, UINT8)


def _layout(data: Sample, image_type: DALIImageType) -> str:
    layout = channels_last(data, _LAYOUTS, (UINT8,))
    if data.shape[-1] != image_type.channels:
        raise ValueError(
            f"an image of {image_type.name} has {image_type.channels} channels, "
            f"but got {data.shape[-1]}"
        )
    return layout
