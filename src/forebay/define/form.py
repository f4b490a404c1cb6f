"""What samples of a source look like, and how Python data becomes samples."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

import numpy as np
import torch

from forebay.batch import Batch, Sample
from forebay.errors import ArgumentError, SourceError
from forebay.types import data_type


def copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.copy(order="C")


class Form:
    """What samples of one output must look like, and how Python data becomes samples."""

    def __init__(self, layout: str | None, dtype: Any, ndim: int | None) -> None:
        if layout and ndim is not None and len(layout) != ndim:
            raise ArgumentError(f"the layout {layout!r} has not {ndim} axes")
        self.layout = layout or ""
        self.dtype = None if dtype is None else data_type(dtype)
        self.ndim = len(layout) if layout and ndim is None else ndim

    def batch(self, data: Any, *, copy: bool = True) -> Batch:
        """The batch that a list of arrays, or one array with the batch first, stands for."""
        if isinstance(data, Batch):
            return data
        if isinstance(data, np.ndarray | torch.Tensor) and data.ndim == 0:
            raise SourceError(
                "a batch is a list of arrays or an array with the batch as first axis"
            )
        if isinstance(data, str | bytes | Mapping | Set) or not isinstance(data, Iterable):
            raise SourceError(
                f"a batch is a list of arrays or an array, but got {type(data).__name__}"
            )
        samples = [self.sample(item, copied if copy else None) for item in data]
        for number, sample in enumerate(samples):
            first = samples[0]
            if sample.data.dtype != first.data.dtype or sample.ndim != first.ndim:
                raise SourceError(
                    f"the samples of a batch have one element type and number of axes, but sample "
                    f"0 is {first} and sample {number} is {sample}"
                )
        return Batch(samples)

    def sample(
        self,
        item: Any,
        copy: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] | None = copied,
    ) -> Sample:
        """The sample that one item of data stands for. Raises SourceError.

        Args:
            item: an array, tensor, number, list of numbers, picture of Pillow's (height x width x
                channels, unless two axes are wanted), bytes (taken as uint8), or a text or path
                (its UTF-8 bytes, as `fn.io.file.read` takes them).
            copy: makes the copy, with the last axis densest, of what does not lie in `bytes`, which
                nobody can change; None if data may be used where it is.
        """
        array = _as_array(item)
        if array.ndim == 2 and self.ndim != 2 and _is_picture(item):
            array = array[..., np.newaxis]
        found = data_type(array.dtype)
        if self.dtype is not None and found is not self.dtype:
            raise SourceError(
                f"elements of type {self.dtype.name} are wanted, but got {found.name}"
            )
        if self.ndim is not None and array.ndim != self.ndim:
            layout = f" (layout {self.layout!r})" if self.layout else ""
            raise SourceError(
                f"{self.ndim} axes{layout} are wanted, but got the shape {array.shape}"
            )
        if copy is not None and not _lies_in_bytes(array):
            array = copy(array)
        elif not array.flags.c_contiguous:
            array = copied(array)
        return Sample(array, self.layout)


def _as_array(item: Any) -> np.ndarray[Any, Any]:
    if isinstance(item, Sample):
        return item.array
    if isinstance(item, torch.Tensor):
        return item.detach().resolve_conj().resolve_neg().cpu().numpy()
    if isinstance(item, str | os.PathLike):
        item = os.fsencode(item)
    if isinstance(item, memoryview) and not item.c_contiguous:
        item = item.tobytes()
    if isinstance(item, np.ma.MaskedArray) and np.ma.is_masked(item):
        raise SourceError("a masked array would lose its mask: give its `filled(…)` values")
    if isinstance(item, bytes | bytearray | memoryview):
        return np.frombuffer(item, np.uint8)
    try:
        array = np.asarray(item)
    except ValueError as error:
        raise SourceError(f"a list of numbers is wanted: {error}") from None
    if array.dtype.kind not in "biuf":
        text = "; a sample is one text, as str or as bytes"
        raise SourceError(
            f"numbers are wanted, but got {type(item).__name__} (numpy type {array.dtype})"
            f"{text if array.dtype.kind in 'SU' else ''}"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    usual = np.dtype(array.dtype.str)  # of several of one size torch knows this one
    return array if array.dtype.char == usual.char else array.view(usual)


def _is_picture(item: Any) -> bool:
    pillow = sys.modules.get("PIL.Image")  # who has a picture has imported it
    return pillow is not None and isinstance(item, pillow.Image)


def _lies_in_bytes(array: Any) -> bool:
    """Whether it is an array that nobody can change, as `np.frombuffer(file.read())` is."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, bytes)
