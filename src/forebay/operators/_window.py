"""The crop window: the arguments that all cropping operators share, and what they mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from forebay.errors import ArgumentError
from forebay.types import Arguments, Between, Floats, OneOf, PerSample

Position = PerSample[Annotated[float, Between(0.0, 1.0)]]


def round_half_away(value: float) -> int:
    """To the nearest integer; halves go away from zero, as DALI rounds."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


@dataclass(frozen=True)
class CropWindow(Arguments):
    """Size and place of a crop.

    Attributes:
        crop: (height, width) or (depth, height, width) in pixels, instead of crop_h, crop_w ….
        crop_h, crop_w, crop_d: the extents one by one. Fractions are cut off; 0 is the whole axis.
        crop_pos_x, crop_pos_y, crop_pos_z: where the window lies, from 0 (start) to 1 (end).
        rounding: "round" or "truncate": how the window's start becomes an integer.
    """

    crop: PerSample[Floats] | None = None
    crop_d: PerSample[float] = 0.0
    crop_h: PerSample[float] = 0.0
    crop_w: PerSample[float] = 0.0
    crop_pos_x: Position = 0.5
    crop_pos_y: Position = 0.5
    crop_pos_z: Position = 0.5
    rounding: Annotated[str, OneOf(("round", "truncate"))] = "round"

    def resolve(self, extents: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """Start and size of the window along each axis.

        Args:
            extents: axis letter ("H", "W", "D") → the image's extent.

        Returns:
            axis letter → (start, size). The window may reach outside the image.

        Raises:
            ArgumentError: `crop` has not as many numbers as there are axes, or is given together
                with crop_h, crop_w or crop_d.
        """
        sizes = {"D": self.crop_d, "H": self.crop_h, "W": self.crop_w}
        if self.crop is not None:
            if any(sizes.values()):
                raise ArgumentError("give either 'crop' or 'crop_h', 'crop_w', 'crop_d', not both")
            letters = "DHW"[-len(self.crop) :] if 2 <= len(self.crop) <= 3 else ""
            if not letters:
                raise ArgumentError(
                    f"'crop' takes (height, width) or (depth, height, width), but got {self.crop}"
                )
            sizes.update(zip(letters, self.crop, strict=True))
        positions = {"D": self.crop_pos_z, "H": self.crop_pos_y, "W": self.crop_pos_x}
        to_int = round_half_away if self.rounding == "round" else math.trunc
        window = {}
        for letter, extent in extents.items():
            size = math.trunc(sizes[letter]) or extent
            window[letter] = (to_int((extent - size) * positions[letter]), size)
        return window
