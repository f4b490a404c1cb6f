"""What becomes of a batch whose samples differ in shape."""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple

import torch

from forebay.batch import Batch
from forebay.errors import ForebayError

Ragged = Literal["error", "list", "pad", "nested"]


class Padded(NamedTuple):
    """A ragged batch in one tensor.

    Attributes:
        data: shape (batch, largest extents …), zero where a sample is smaller.
        lengths: int64 of shape (batch, axes): the extents of each sample.
    """

    data: torch.Tensor
    lengths: torch.Tensor


def assemble(batch: Batch, ragged: Ragged, output: int) -> Any:
    """One tensor of a uniform batch; of a ragged one what the user chose.

    Raises:
        ForebayError: the batch is ragged and the choice is "error"; it names output and shapes.
    """
    if batch.is_dense_tensor():
        if ragged == "pad":
            return pad(batch)
        return batch.as_tensor()
    if ragged == "list":
        return list(batch)
    if ragged == "pad":
        return pad(batch)
    if ragged == "nested":
        with warnings.catch_warnings():  # the user, who chose them, cannot choose another kind here
            warnings.filterwarnings("ignore", "The PyTorch API of nested tensors is in prototype")
            return torch.nested.nested_tensor(list(batch))
    shapes = list(dict.fromkeys(batch.shape()))
    raise ForebayError(
        f"output {output} is ragged: its samples have the shapes {shapes[:4]}"
        f"{' …' if len(shapes) > 4 else ''}. Give them one shape in the pipeline (fn.resize, "
        f"fn.crop, fn.pad), or say ragged='list', 'pad' or 'nested'"
    )


def pad(batch: Batch) -> Padded:
    """The samples in one tensor, with zeros after their ends, and their extents."""
    shapes = torch.tensor(batch.shape(), dtype=torch.int64)
    if batch.is_dense_tensor():
        return Padded(batch.as_tensor(), shapes)
    largest = [int(n) for n in shapes.amax(0)]
    data = torch.zeros((len(batch), *largest), dtype=batch[0].dtype, device=batch.device)
    for target, sample in zip(data, batch, strict=True):
        target[tuple(slice(n) for n in sample.shape)] = sample
    return Padded(data, shapes)
