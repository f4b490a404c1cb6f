"""The features of TFRecord files: what `fn.readers.tfrecord` reads.

fn.readers.tfrecord(path=…, features={
    "image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, ""),
    "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    "image/object/bbox/xmin": tfrecord.VarLenFeature(tfrecord.float32, 0.0),
})
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from forebay.errors import ArgumentError
from forebay.operators.readers._example import Feature, FeatureType

__all__ = ["Feature", "FixedLenFeature", "VarLenFeature", "float32", "int64", "string"]

int64 = FeatureType.int64
string = FeatureType.string
float32 = FeatureType.float32


def FixedLenFeature(  # noqa: N802 - DALI's and TensorFlow's name
    shape: Iterable[int], dtype: FeatureType, default_value: Any = None
) -> Feature:
    """A feature that has the same number of values in all samples.

    Args:
        shape: of the tensor. Strings have none: it is ``()`` or ``[1]``.
        dtype: `int64`, `float32` or `string`.
        default_value: of samples that lack the feature; a tensor of numbers is filled with it. By
            default such a sample is an error.

    Raises:
        ArgumentError: these do not fit together.
    """
    kind, size = _dtype(dtype), _shape(shape, 0)
    if kind is string and math.prod(size) != 1:
        raise ArgumentError(f"a string is one value, so its shape is (), but got {list(size)}")
    return Feature(kind, size, _default(default_value, kind), fixed=True)


def VarLenFeature(*arguments: Any) -> Feature:  # noqa: N802 - DALI's and TensorFlow's name
    """A feature whose number of values varies: ``VarLenFeature(dtype, default_value)``.

    With a partial shape before these, ``VarLenFeature([4], dtype, default_value)``, the tensor has
    the shape [n, 4]; else [n]. A sample that lacks the feature gives a tensor without values. The
    default value is DALI's: it may be left out, and has no effect.

    Raises:
        ArgumentError: these do not fit together, or the feature is a string.
    """
    rest = list(arguments)
    partial = () if not rest or isinstance(rest[0], int) else _shape(rest.pop(0), 1)
    if not 1 <= len(rest) <= 2:
        raise ArgumentError(
            "VarLenFeature takes an optional partial shape, a dtype and a default value, but got "
            f"{arguments!r}"
        )
    kind = _dtype(rest[0])
    if kind is string:
        raise ArgumentError("a string is one value, so its feature is a FixedLenFeature")
    return Feature(kind, partial, _default(rest[1] if len(rest) > 1 else None, kind), fixed=False)


def _dtype(dtype: Any) -> FeatureType:
    try:
        return FeatureType(dtype)
    except ValueError:
        raise ArgumentError(
            f"a feature's dtype is tfrecord.int64, float32 or string, but got {dtype!r}"
        ) from None


def _shape(shape: Any, least: int) -> tuple[int, ...]:
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        sizes = (-1,)
    if any(size < least for size in sizes):
        raise ArgumentError(
            f"a feature's shape is a list of numbers of at least {least}, but got {shape!r}"
        )
    return sizes


def _default(value: Any, kind: FeatureType) -> float | bytes | None:
    if kind is string and isinstance(value, str):
        return value.encode()
    wanted = {string: bytes, int64: int, float32: int | float}[kind]
    if value is not None and not isinstance(value, wanted):
        raise ArgumentError(
            f"the default of a feature of type {kind.name} must be of that type, but got {value!r}"
        )
    return value
