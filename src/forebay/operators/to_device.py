"""Move data between devices; written by ``node.gpu()`` and ``node.cpu()``."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._operator import operator


@operator(hidden=True)
def to_device(data: Sample) -> Sample:
    """The same data on the node's device; the executor has moved it there when this is called."""
    return data
