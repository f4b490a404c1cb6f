"""Resize pictures, videos and volumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from forebay.batch import Sample
from forebay.operators._fast_resize import fast_resize
from forebay.operators._interpolation import Interpolation
from forebay.operators._layout import image_layout
from forebay.operators._operator import operator
from forebay.operators._resample import resample_image, resampled_type
from forebay.operators._sizing import ResampleHints, Sizing, check_sizing, spatial_extents
from forebay.types import DALIDataType, DALIImageType, Into


@dataclass(frozen=True)
class ResizeHints(ResampleHints):
    """Arguments without effect.

    Attributes:
        image_type: no effect: the number of channels is the input's.
    """

    image_type: DALIImageType | None = None


NO_HINTS = ResizeHints()


def _output_count(given: Mapping[str, Any]) -> int:
    return 2 if given.get("save_attrs") else 1


@operator(check=check_sizing, outputs=_output_count)
def resize(
    data: Sample,
    *,
    sizing: Sizing,
    interpolation: Interpolation,
    hints: ResizeHints = NO_HINTS,
    dtype: DALIDataType | None = None,
    save_attrs: bool = False,
) -> tuple[Sample, ...]:
    """Resize a picture, the frames of a video, or a volume.

    Pixel i covers the interval from i to i + 1, and the edge is repeated outside the picture.

    Args:
        dtype: the element type of the result: the input's (the default) or FLOAT, which is not
            rounded.
        save_attrs: give the input's extents as a second output.

    Returns:
        The resized data in the same layout (one assumed by the number of axes if there was none).
        With `save_attrs`, also int32 (height, width) or (depth, height, width) of the input.

    Raises:
        ValueError: the data is no picture by layout, or its element type is not uint8, int16,
            uint16 or float32.
        ArgumentError: the size is given in no way or in several, or a vector has not one number an
            axis.
    """
    layout = image_layout(data)
    result_type = resampled_type(data.dtype, dtype)
    extents = spatial_extents(layout, data.shape)
    spans = sizing.resolve(extents)
    resized = resample_image(data, layout, spans, interpolation, result_type)
    if not save_attrs:
        return (resized,)
    attributes = torch.tensor(list(extents.values()), dtype=torch.int32, device=data.device)
    return resized, data.like(attributes, "")


@resize.kernel("cpu")
def _resize_cpu(
    data: Sample,
    *,
    sizing: Sizing,
    interpolation: Interpolation,
    dtype: DALIDataType | None,
    save_attrs: bool,
    into: Into,
) -> Any:
    layout = image_layout(data)
    if layout != "HWC" or save_attrs:
        return NotImplemented
    height, width, _ = data.shape
    spans = sizing.resolve({"H": height, "W": width})
    return fast_resize(data, layout, spans, interpolation, dtype, into)
