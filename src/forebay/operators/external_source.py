"""Data from outside the pipeline: what `fn.external_source` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay.operators._operator import operator
from forebay.operators._source import Source
from forebay.types import DALIDataType, Layout


def _outputs(arguments: Mapping[str, Any]) -> int:
    return arguments.get("num_outputs") or 1


@operator(outputs=_outputs)
def external_source(
    *,
    num_outputs: int | None = None,
    layout: Layout | None = None,
    dtype: DALIDataType | None = None,
    ndim: int | None = None,
    no_copy: bool = False,
    blocking: bool = False,
    repeat_last: bool = False,
) -> Source:
    """A batch that comes from the user's code.

    Args:
        num_outputs: how many outputs the source has; None for one that is not in a tuple.
        layout: the layout of the data.
        dtype: the element type that the data must have.
        ndim: the number of axes that the data must have.
        no_copy: do not copy what is given; it must then stay unchanged until its batch is done.
        blocking: `run` waits for data that another thread feeds, rather than to raise an error.
        repeat_last: use the last batch again when nothing new was fed.
    """
    raise AssertionError("forebay.define.external_source makes the source")
