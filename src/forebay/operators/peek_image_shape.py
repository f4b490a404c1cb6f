"""The shape of encoded images, from their headers."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from forebay.batch import Sample
from forebay.operators._image_header import read_header
from forebay.operators._operator import operator
from forebay.types import (
    FLOAT,
    FLOAT64,
    INT32,
    INT64,
    RGB,
    UINT32,
    UINT64,
    DALIDataType,
    DALIImageType,
    OneOf,
)


@operator(aliases=("experimental.peek_image_shape",), devices=("cpu",))
def peek_image_shape(
    data: Sample,
    *,
    adjust_orientation: bool = True,
    dtype: Annotated[DALIDataType, OneOf((INT32, UINT32, INT64, UINT64, FLOAT, FLOAT64))] = INT64,
    image_type: DALIImageType = RGB,
) -> Sample:
    """The shape that `decoders.image` will give, without decoding.

    Args:
        adjust_orientation: the shape after the image is turned as its EXIF data says.
        dtype: the element type of the result.
        image_type: the colour space that it will be decoded to.

    Returns:
        (height, width, channels).

    Raises:
        ValueError: these are no bytes of an image, or its header is damaged.
    """
    header = read_header(data.array)
    channels = image_type.channels or header.channels
    height, width = header.size(turned=adjust_orientation)
    return data.like(np.array([height, width, channels], dtype.numpy), "")
