"""What operators that know images assume about axes."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._image_header import undecoded

_BY_RANK = {3: "HWC", 4: "FHWC", 5: "FDHWC"}


def image_layout(sample: Sample) -> str:
    """The sample's layout; without one, the layout that its number of axes suggests.

    Raises:
        ValueError: it has no layout and not three to five axes, or its layout
            lacks H or W.
    """
    layout = sample.layout or _BY_RANK.get(sample.ndim, "")
    if "H" not in layout or "W" not in layout or "C" not in layout:
        raise ValueError(
            undecoded(sample)
            or f"an image of layout HWC, CHW, FHWC or the like is needed, but got "
            f"{sample.ndim} axes with the layout {sample.layout!r}"
        )
    return layout
