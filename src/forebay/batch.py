"""Samples and batches: the data that flows between operators and out of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from forebay.errors import ForebayError
from forebay.types import DALIDataType, data_type


class Sample:
    """One tensor of one sample, with its layout.

    The data is held as a numpy array or as a torch tensor, whichever it was made from. `array` and
    `tensor` are two views of the same memory; the other is made, without a copy, when asked for.

    Attributes:
        layout: a letter per axis, e.g. ``"HWC"``; empty if unknown.
        source: where the sample came from (a path, a dataset index), for error messages.
    """

    __slots__ = ("_array", "_tensor", "layout", "source")

    def __init__(
        self,
        data: np.ndarray[Any, Any] | torch.Tensor,
        layout: str = "",
        source: str | None = None,
    ) -> None:
        if isinstance(data, np.ndarray):  # first, because torch's class takes long to ask
            self._array: np.ndarray[Any, Any] | None = data
            self._tensor: torch.Tensor | None = None
        else:
            self._array = None
            self._tensor = data
        self.layout = layout
        self.source = source

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The data as a numpy array. Only for data on the CPU."""
        if self._array is None:
            assert self._tensor is not None
            self._array = self._tensor.numpy()
        return self._array

    @property
    def tensor(self) -> torch.Tensor:
        """The data as a torch tensor."""
        if self._tensor is None:
            assert self._array is not None
            self._tensor = as_tensor(self._array)
        return self._tensor

    @property
    def data(self) -> np.ndarray[Any, Any] | torch.Tensor:
        """The data in whichever form is there; for its shape, dtype and ndim."""
        if self._array is not None:
            return self._array
        assert self._tensor is not None
        return self._tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def dtype(self) -> DALIDataType:
        return data_type(self.data.dtype)

    @property
    def device(self) -> torch.device:
        return torch.device("cpu") if self._tensor is None else self._tensor.device

    def like(self, data: np.ndarray[Any, Any] | torch.Tensor, layout: str | None = None) -> Sample:
        """Other data with this sample's source, and its layout unless another is given."""
        return Sample(data, self.layout if layout is None else layout, self.source)

    def __repr__(self) -> str:
        return f"Sample({self.dtype.name} {list(self.shape)} {self.layout!r})"


def as_tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """A tensor over the same memory; a copy where torch cannot share it (read-only, reversed)."""
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(array)


class Batch(Sequence[torch.Tensor]):
    """The samples of one output of one run, in order.

    A batch is *uniform* if all its samples have one shape; then `as_tensor` gives them as a single
    tensor with the batch as its first axis. Else it is *ragged* and has a tensor per sample. All
    samples have the same element type, number of axes and layout.
    """

    def __init__(self, samples: Sequence[Sample], dense: torch.Tensor | None = None) -> None:
        self.samples = samples
        self._dense = dense

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> torch.Tensor:  # type: ignore[override]  # no slices
        return self.samples[index].tensor

    def __iter__(self) -> Iterator[torch.Tensor]:
        return (sample.tensor for sample in self.samples)

    def at(self, index: int) -> np.ndarray[Any, Any]:
        """Sample `index` as a numpy array."""
        return self.samples[index].tensor.cpu().numpy()

    def layout(self) -> str:
        return self.samples[0].layout if self.samples else ""

    def shape(self) -> list[tuple[int, ...]]:
        """The shape of every sample."""
        return [sample.shape for sample in self.samples]

    def ndim(self) -> int:
        """The number of axes of a sample."""
        return self.samples[0].ndim if self.samples else 0

    @property
    def dtype(self) -> DALIDataType:
        return self.samples[0].dtype if self.samples else DALIDataType.NO_TYPE

    @property
    def device(self) -> torch.device:
        return self.samples[0].device if self.samples else torch.device("cpu")

    def is_dense_tensor(self) -> bool:
        """Whether all samples have one shape."""
        return self._dense is not None or len(set(self.shape())) <= 1

    def as_tensor(self) -> torch.Tensor:
        """All samples as one tensor, batch first. Raises ForebayError if they differ in shape."""
        if self._dense is None:
            shapes = list(dict.fromkeys(self.shape()))
            if len(shapes) > 1:
                raise ForebayError(
                    f"the batch is ragged: its samples have the shapes {shapes[:4]}"
                    f"{' …' if len(shapes) > 4 else ''}; one tensor needs uniform shapes"
                )
            self._dense = torch.stack([sample.tensor for sample in self.samples])
        return self._dense

    def as_array(self) -> np.ndarray[Any, Any]:
        """All samples as one numpy array, batch first. Raises ForebayError if they are ragged."""
        return self.as_tensor().cpu().numpy()

    def as_cpu(self) -> Batch:
        """The same batch with its data on the CPU."""
        if self.device.type == "cpu":
            return self
        return Batch([sample.like(sample.tensor.cpu()) for sample in self.samples])

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        array = self.as_array()
        return np.array(array, dtype, copy=copy)

    def __repr__(self) -> str:
        shapes = str(list(self.shape()[0])) if self.samples and self.is_dense_tensor() else "ragged"
        layout = f" {self.layout()!r}" if self.layout() else ""
        return f"Batch({len(self)} × {self.dtype.name} {shapes}{layout} on {self.device})"
