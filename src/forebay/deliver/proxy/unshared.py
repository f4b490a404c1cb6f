"""Tensors that come from a worker, in memory of the loop's own.

torch sends a tensor as a descriptor of shared memory, which stays open as long as the tensor lives.
A loop that keeps its batches would soon have more files open than a process may have.
"""

from __future__ import annotations

from typing import Any

import torch

from forebay.deliver.proxy.structure import replace


def unshared(batch: Any) -> Any:
    """The batch with copies in the place of tensors in shared memory."""
    copies: dict[int, torch.Tensor] = {}

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in copies:
            copies[id(tensor)] = tensor.clone()
        return copies[id(tensor)]

    return replace(batch, _is_shared, copied)


def _is_shared(item: Any) -> bool:
    if type(item) is not torch.Tensor or item.layout is not torch.strided or item.requires_grad:
        return False  # of which a copy would be something else
    shared: bool = item.device.type == "cpu" and item.is_shared()  # type: ignore[no-untyped-call]
    return shared
