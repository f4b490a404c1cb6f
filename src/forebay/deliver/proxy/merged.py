"""What rows have recorded, as one: done for a batch where all rows recorded the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from forebay.deliver.proxy.recorded import Mapped, Recorded, Reference


def merge(refs: Sequence[Any], collate: Callable[[Sequence[Any]], Any]) -> Any:
    """What stands for the rows' references, or arguments that were recorded, in a batch.

    Args:
        refs: one a row.
        collate: makes a batch reference of references to data.

    Raises:
        DifferError: the rows did not record the same.
    """
    first = refs[0]
    if any(type(ref) is not type(first) for ref in refs):
        raise DifferError
    if isinstance(first, Recorded):
        if any(ref.function is not first.function for ref in refs):
            raise DifferError
        args = merge([ref.args for ref in refs], collate)
        return Mapped(first.function, args, merge([ref.kwargs for ref in refs], collate))
    if isinstance(first, Reference):
        if len({getattr(ref, "output", None) for ref in refs}) > 1:
            raise DifferError
        return collate(refs)
    if isinstance(first, list | tuple | dict):
        return _merge_container(refs, collate)
    if not all(_equal(ref, first) for ref in refs):
        raise DifferError
    return first


def _merge_container(refs: Sequence[Any], collate: Callable[[Sequence[Any]], Any]) -> Any:
    first = refs[0]
    if isinstance(first, dict):
        if any(ref.keys() != first.keys() for ref in refs):
            raise DifferError
        return {name: merge([ref[name] for ref in refs], collate) for name in first}
    if len({len(ref) for ref in refs}) > 1:
        raise DifferError
    members = [merge(column, collate) for column in zip(*refs, strict=True)]
    return type(first)(*members) if hasattr(first, "_fields") else type(first)(members)


class DifferError(Exception):
    """The rows of a batch did not record the same operations."""


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a is b or (a.dtype == b.dtype and torch.equal(a, b))
    if isinstance(a, np.ndarray):
        return a is b or (a.dtype == b.dtype and np.array_equal(a, b))
    try:
        return bool(a is b or a == b)
    except Exception:  # objects with arrays or references in them cannot tell
        return False
