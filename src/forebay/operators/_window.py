"""The crop window: the arguments that all cropping operators share, and what they mean."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._layout import image_layout
from forebay.types import Arguments, Between, Floats, OneOf, PerSample

Position = PerSample[Annotated[float, Between(0.0, 1.0)]]


def round_half_away(value: float) -> int:
    """To the nearest integer; halves go away from zero, as DALI rounds."""
    return int(value + 0.5) if value >= 0 else -int(0.5 - value)


_FLOAT32 = struct.Struct("f")


def float32(value: float) -> float:
    """The value as a float32 would hold it, as all of DALI's float arguments do."""
    return float(_FLOAT32.unpack(_FLOAT32.pack(value))[0])


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
            extents: axis letter ("H", "W", "D" or "F") → the image's extent. Frames ("F") are cut
                by the depth's numbers.

        Returns:
            axis letter → (start, size). The window may reach outside the image.

        Raises:
            ArgumentError: `crop` has neither two nor three numbers, or is given together with
                crop_h, crop_w or crop_d.
        """
        depth, height, width = self.crop_d, self.crop_h, self.crop_w
        if self.crop is not None:
            if depth or height or width:
                raise ArgumentError(_ONE_WAY)
            if len(self.crop) not in (2, 3):
                raise ArgumentError(
                    f"'crop' takes (height, width) or (depth, height, width), but got {self.crop}"
                )
            height, width = self.crop[-2:]
            depth = self.crop[0] if len(self.crop) == 3 else 0.0
        to_int = round_half_away if self.rounding == "round" else math.trunc
        window = {}
        for letter, extent in extents.items():
            if letter == "H":
                wanted, position = height, self.crop_pos_y
            elif letter == "W":
                wanted, position = width, self.crop_pos_x
            else:
                wanted, position = depth, self.crop_pos_z
            size = int(wanted) if wanted >= 1 else extent
            # The position's rounding to float32 decides halves: 0.7 · 5 is just below 3.5 then.
            window[letter] = (to_int((extent - size) * float32(position)), size)
        return window


_ONE_WAY = "give either 'crop' or 'crop_h', 'crop_w', 'crop_d', not both"


def check_crop_window(given: Mapping[str, Any]) -> None:
    """Raise ArgumentError for arguments of a CropWindow that do not go together."""
    extents = {"crop_d", "crop_h", "crop_w"} & given.keys()
    if "crop" in given and extents:
        raise ArgumentError(_ONE_WAY)
    if extents and not {"crop_h", "crop_w"} <= extents:
        raise ArgumentError(
            f"'crop_h' and 'crop_w' go together, but got only {', '.join(sorted(extents))}"
        )


def crop_layout(data: Sample) -> str:
    """The layout that croppers work by: without one, four axes are those of a volume."""
    if not data.layout and data.ndim == 4:
        return "DHWC"
    return image_layout(data)


def crop_region(window: CropWindow, layout: str, shape: Sequence[int]) -> list[tuple[int, int]]:
    """(start, size) for every axis. What is no axis of space stays whole; frames count as depth."""
    letters = "HWD" if "D" in layout else "HWF"
    extents = dict(zip(layout, shape, strict=True))
    found = window.resolve({letter: extents[letter] for letter in letters if letter in extents})
    return [found.get(letter, (0, extents[letter])) for letter in layout]
