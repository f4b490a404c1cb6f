"""A new shape for the same bytes, as `reshape` and `reinterpret` take it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._window import float32, round_half_away
from forebay.types import Arguments, Floats, Ints, PerSample


@dataclass(frozen=True)
class NewShape(Arguments):
    """The shape of the output.

    Attributes:
        shape: its extents. One of them may be negative: it becomes what is left.
        rel_shape: its extents relative to the input's; one may be negative likewise.
        src_dims: which axes of the input the entries of `rel_shape` refer to, −1 for a new axis of
            extent 1. Without `rel_shape` the input's axes in this order.
    """

    shape: PerSample[Ints] | None = None
    rel_shape: PerSample[Floats] | None = None
    src_dims: PerSample[Ints] | None = None

    def resolve(
        self, data: Sample, shape_input: Sample | None, layout: str | None, item_size: int = 0
    ) -> tuple[tuple[int, ...], str]:
        """The output's shape and layout.

        Args:
            data: the input.
            shape_input: the second input, if there is one.
            layout: the layout that was asked for; None keeps it where the rank is kept.
            item_size: of the output's elements; 0 if their type stays.
        """
        size = data.dtype.numpy.itemsize
        total = math.prod(data.shape) * size
        wanted, unit = self._wanted(data, shape_input), item_size or size
        if wanted is None and self.src_dims is None and layout is None and not item_size:
            raise ArgumentError("neither a new shape nor anything else to change was given")
        if wanted is None:
            extents = self._source(data)
            if unit != size:
                extents = _scale_last(extents, size, unit)
        else:
            extents = wanted
        shape = _fill_in(extents, total, unit, data)
        if layout is not None:
            if layout and len(layout) != len(shape):
                raise ArgumentError(f"the layout {layout!r} does not fit the shape {list(shape)}")
            return shape, layout
        return shape, data.layout if len(shape) == data.ndim else ""

    def _wanted(self, data: Sample, shape_input: Sample | None) -> list[int] | None:
        ways = (shape_input, self.shape, self.rel_shape)
        if sum(way is not None for way in ways) > 1:
            raise ArgumentError(_ONE_WAY)
        if shape_input is not None:
            if shape_input.dtype.numpy.kind not in "iu" or shape_input.ndim != 1:
                raise ValueError(f"the shape must be a vector of integers, but got {shape_input!r}")
            return [int(extent) for extent in shape_input.tensor.tolist()]
        if self.shape is not None:
            return list(self.shape)
        return None if self.rel_shape is None else self._relative(data, self.rel_shape)

    def _source(self, data: Sample) -> list[int]:
        if self.src_dims is None:
            return list(data.shape)
        for axis in self.src_dims:
            if not -1 <= axis < data.ndim:
                raise ArgumentError(
                    f"'src_dims' takes the axes 0 to {data.ndim - 1}, or −1 for a new one, but "
                    f"got {list(self.src_dims)}"
                )
        return [1 if axis < 0 else data.shape[axis] for axis in self.src_dims]

    def _relative(self, data: Sample, factors: Floats) -> list[int]:
        source = self._source(data)
        if self.src_dims is not None and len(source) != len(factors):
            raise ArgumentError(
                f"'src_dims' and 'rel_shape' must be equally long, but they have {len(source)} and "
                f"{len(factors)} entries"
            )
        if any(factor >= 0 for factor in factors[len(source) :]):
            raise ArgumentError(
                f"'rel_shape' has {len(factors)} entries, but the data has {len(source)} axes; "
                f"'src_dims' can add axes"
            )
        source += [1] * (len(factors) - len(source))
        return [
            -1 if factor < 0 else round_half_away(float32(factor) * extent)
            for factor, extent in zip(factors, source, strict=False)
        ]


_ONE_WAY = "give the shape only once: by the second input, by 'shape' or by 'rel_shape'"


def _scale_last(extents: Sequence[int], size: int, unit: int) -> list[int]:
    if not extents:
        raise ValueError("data without axes cannot be read as elements of another size")
    if extents[-1] * size % unit:
        raise ValueError(
            f"the last axis has {extents[-1] * size} bytes, which elements of {unit} bytes do not "
            f"divide"
        )
    return [*extents[:-1], extents[-1] * size // unit]


def _fill_in(extents: Sequence[int], total: int, unit: int, data: Sample) -> tuple[int, ...]:
    """The extents, with the negative one replaced by what is left."""
    open_axes = [axis for axis, extent in enumerate(extents) if extent < 0]
    if len(open_axes) > 1:
        raise ArgumentError(f"only one extent may be negative, but got {list(extents)}")
    shape = list(extents)
    if open_axes:
        rest = math.prod(extent for extent in extents if extent >= 0) * unit
        shape[open_axes[0]] = total // rest if rest else 0
    if math.prod(shape) * unit != total:
        raise ValueError(
            f"data of shape {list(data.shape)} ({total} bytes) cannot have the shape "
            f"{list(extents)} with elements of {unit} bytes"
        )
    return tuple(shape)


def check_new_shape(given: Mapping[str, Any]) -> None:
    """Raise ArgumentError if both `shape` and `rel_shape` are given."""
    if "shape" in given and "rel_shape" in given:
        raise ArgumentError(_ONE_WAY)
