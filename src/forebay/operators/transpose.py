"""Change the order of axes."""

from __future__ import annotations

from typing import Any

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.types import Ints, Layout


@operator
def transpose(
    data: Sample,
    *,
    perm: Ints | None = None,
    transpose_layout: bool = True,
    output_layout: Layout | None = None,
) -> Sample:
    """Permute the axes.

    Args:
        perm: for each axis of the output, which of the input's it is. By default the axes are
            reversed.
        transpose_layout: permute the layout as well, instead of keeping it.
        output_layout: the output's layout, whatever `transpose_layout` says.

    Returns:
        A view of the same elements.

    Raises:
        ArgumentError: `perm` is no permutation of the data's axes, or `output_layout` has not a
            letter an axis.
    """
    order, layout = _order(data, perm, output_layout, keep=not transpose_layout)
    return data.like(data.tensor.permute(order), layout)


@transpose.kernel("cpu")
def _transpose_cpu(
    data: Sample, *, perm: Ints | None, transpose_layout: bool, output_layout: str | None
) -> Any:
    order, layout = _order(data, perm, output_layout, keep=not transpose_layout)
    return data.like(data.array.transpose(order), layout)


def _order(
    data: Sample, perm: Ints | None, output_layout: str | None, *, keep: bool
) -> tuple[Ints, str]:
    order = tuple(reversed(range(data.ndim))) if perm is None else perm
    if sorted(order) != list(range(data.ndim)):
        raise ArgumentError(
            f"'perm' must be a permutation of the axes 0 to {data.ndim - 1}, but got {list(order)}"
        )
    if output_layout is not None:
        if len(output_layout) != data.ndim:
            raise ArgumentError(
                f"'output_layout' needs {data.ndim} letters, one an axis, but got {output_layout!r}"
            )
        return order, output_layout
    if keep or not data.layout:
        return order, data.layout
    return order, "".join(data.layout[axis] for axis in order)
