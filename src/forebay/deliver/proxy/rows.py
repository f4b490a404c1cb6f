"""Take some rows of a collated batch, wherever in it the rows are.

What a batch looks like is the collate function's choice, so rows are found by their number. In a
batch of B samples these hold a row for each sample:

- tensors and arrays whose first axis has B entries;
- lists and tuples of B entries that are no tensors, arrays or containers (names, numbers, None), or
  that are all of them samples' own data: containers of B entries are taken for columns instead if
  one of their entries has a row for each sample itself.

Everything else stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from forebay.deliver.proxy.structure import attributes, is_leaf


def take_rows(batch: Any, size: int, rows: Sequence[int]) -> Any:
    """A copy of a batch of `size` samples that has these rows of it, in this order.

    Args:
        batch: tensors, arrays, lists, tuples, dicts, dataclasses and objects, nested.
        size: the number of samples in it.
        rows: the rows that are wanted; one may be named more than once.
    """
    if isinstance(batch, torch.Tensor):
        has_rows = batch.ndim > 0 and batch.shape[0] == size
        return batch[torch.as_tensor(rows, dtype=torch.int64)] if has_rows else batch
    if isinstance(batch, np.ndarray):
        has_rows = batch.ndim > 0 and batch.shape[0] == size
        return batch[np.asarray(rows, dtype=np.int64)] if has_rows else batch
    if isinstance(batch, list | tuple) and _is_rows(batch, size):
        return _same_kind(batch, [batch[row] for row in rows])
    if isinstance(batch, list | tuple):
        return _same_kind(batch, [take_rows(item, size, rows) for item in batch])
    if isinstance(batch, Mapping):
        clone = copy.copy(batch)
        for key, item in batch.items():
            clone[key] = take_rows(item, size, rows)  # type: ignore[index]  # copies are mutable
        return clone
    if is_leaf(batch):
        return batch
    clone = copy.copy(batch)
    for name, item in attributes(batch).items():
        object.__setattr__(clone, name, take_rows(item, size, rows))  # frozen dataclasses too
    return clone


def _is_rows(batch: Sequence[Any], size: int) -> bool:
    return len(batch) == size and not any(_has_rows(item, size) for item in batch)


def _has_rows(item: Any, size: int) -> bool:
    """Whether something in a container has a row for each sample."""
    if isinstance(item, torch.Tensor | np.ndarray):
        return item.ndim > 0 and item.shape[0] == size
    if isinstance(item, list | tuple):
        return len(item) == size or any(_has_rows(member, size) for member in item)
    if isinstance(item, Mapping):
        return any(_has_rows(member, size) for member in item.values())
    return False


def _same_kind(batch: Sequence[Any], items: list[Any]) -> Any:
    if isinstance(batch, list):
        clone = copy.copy(batch)
        clone[:] = items
        return clone
    if hasattr(batch, "_fields"):
        return type(batch)(*items)
    return type(batch)(items)  # type: ignore[call-arg]  # a tuple's class takes its items
