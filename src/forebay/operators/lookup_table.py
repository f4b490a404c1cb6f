"""Integers replaced by what a table says."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast
from forebay.operators._operator import operator
from forebay.types import FLOAT, Between, DALIDataType, Floats, Into

Keys = tuple[Annotated[int, Between(0, 65535)], ...]
_DEFAULT = 65536  # the table's last place


def _check(given: Mapping[str, Any]) -> None:
    if "dtype" in given and "output_dtype" in given:
        raise ArgumentError("'output_dtype' is an old name of 'dtype'; give only one of them")
    keys, values = given.get("keys") or (), given.get("values") or ()
    if len(keys) != len(values):
        raise ArgumentError(f"{len(keys)} 'keys' need as many 'values', but got {len(values)}")


@operator(check=_check)
def lookup_table(
    data: Sample,
    *,
    keys: Keys = (),
    values: Floats = (),
    default_value: float = 0.0,
    dtype: DALIDataType = FLOAT,
    output_dtype: DALIDataType | None = None,
) -> Sample:
    """Every element is a key, and is replaced by the key's value.

    Args:
        keys: integers from 0 to 65535; if one occurs twice the last counts.
        values: as many, in the same order.
        default_value: for elements that are no key.
        dtype: the result's element type. Values are rounded half away from zero and clamped to
            its range.
        output_dtype: the old name of `dtype`.

    Returns:
        The same shape and layout, with elements of type `dtype`.

    Raises:
        ValueError: the elements are not integers.
    """
    table = torch.from_numpy(
        _table(data, keys, values, default_value, dtype if output_dtype is None else output_dtype)
    )
    places = data.tensor.to(torch.int64)
    places = torch.where((places < 0) | (places >= _DEFAULT), _DEFAULT, places)
    return data.like(table.to(places.device)[places])


@lookup_table.kernel("cpu")
def _lookup_table_cpu(
    data: Sample,
    *,
    keys: Keys,
    values: Floats,
    default_value: float,
    dtype: DALIDataType,
    output_dtype: DALIDataType | None,
    into: Into,
) -> Any:
    table = _table(
        data, keys, values, default_value, dtype if output_dtype is None else output_dtype
    )
    places = data.array
    if places.dtype not in (np.uint8, np.uint16):
        places = places.astype(np.int64)  # the default's place does not fit into 8 or 16 bits
        places = np.where((places < 0) | (places >= _DEFAULT), _DEFAULT, places)
    found = into(places.shape, table.dtype)
    np.take(table, places, out=found, mode="clip")  # "raise" would copy `out`
    return data.like(found)


def _table(
    data: Sample, keys: Keys, values: Floats, default_value: float, dtype: DALIDataType
) -> np.ndarray[Any, Any]:
    if data.dtype.numpy.kind not in "iu":
        raise ValueError(f"the elements must be integers, but are {data.dtype.name}")
    return _made(keys, values, default_value, dtype)


@functools.lru_cache(maxsize=16)
def _made(
    keys: Keys, values: Floats, default_value: float, dtype: DALIDataType
) -> np.ndarray[Any, Any]:
    table = np.full(_DEFAULT + 1, default_value, np.float32)
    table[list(keys)] = values
    return saturate_cast(table, dtype)
