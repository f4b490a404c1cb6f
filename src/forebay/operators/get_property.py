"""What is known about data besides its elements."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from forebay.batch import Sample
from forebay.operators._operator import operator
from forebay.types import OneOf


@operator
def get_property(data: Sample, *, key: Annotated[str, OneOf(("source_info", "layout"))]) -> Sample:
    """A property of the data, as text.

    Args:
        key: "source_info" is where the data came from, e.g. the file's path; "layout" the letters
            of its axes.

    Returns:
        The text's UTF-8 bytes, a uint8 vector on the CPU; empty if nothing is known.
    """
    text = data.layout if key == "layout" else data.source or ""
    return data.like(np.frombuffer(text.encode(), np.uint8), "")
