"""What JPEG compression leaves of an image."""

from __future__ import annotations

import cv2
import numpy as np
import torch

from forebay.batch import Sample
from forebay.operators._color import Array, channels_last
from forebay.operators._operator import operator
from forebay.types import UINT8, PerSample


@operator
def jpeg_compression_distortion(data: Sample, *, quality: PerSample[int] = 50) -> Sample:
    """Compress an RGB image, or each frame of a video, as JPEG and decode it again.

    The colour is compressed at half the resolution (4:2:0), as OpenCV does it by default. It runs
    on the CPU, also for data on another device.

    Args:
        quality: from 1 (worst) to 100; what is beyond is clamped.

    Returns:
        The same shape, uint8, the same layout.

    Raises:
        ValueError: the data is not HWC or FHWC, uint8, of three channels.
    """
    layout = channels_last(data, ("HWC", "FHWC"), (UINT8,))
    if data.shape[-1] != 3:
        raise ValueError(f"an image of 3 channels is needed, but got {data.shape[-1]}")
    images = data.tensor.cpu().numpy()
    result = np.empty_like(images)
    if images.size:
        pairs = zip(images, result, strict=True) if layout == "FHWC" else [(images, result)]
        for image, place in pairs:
            _distort(image, place, min(max(quality, 1), 100))
    return data.like(torch.from_numpy(result).to(data.device), layout)


def _distort(image: Array, place: Array, quality: int) -> None:
    bgr = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    _, encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded = cv2.imdecode(encoded, cv2.IMREAD_COLOR)
    assert decoded is not None, "OpenCV cannot read what it has written"
    cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB, dst=place)
