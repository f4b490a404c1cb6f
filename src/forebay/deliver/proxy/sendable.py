"""Whether what was recorded can leave its process.

torch pickles batches in a thread that drops what fails, and the loop would wait for ever. So it is
tried before.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch


class _Trial(ForkingPickler):
    """Pickles for nothing.

    Args:
        skipped: kinds of objects that are left out, because they can be pickled.
    """

    def __init__(self, skipped: tuple[type, ...]) -> None:
        super().__init__(self)
        self._skipped = skipped

    def write(self, data: bytes) -> int:
        return len(data)

    def persistent_id(self, item: Any) -> bool | None:
        return True if isinstance(item, self._skipped) or _is_plain(item) else None


def _is_plain(item: Any) -> bool:
    """Whether it is data that is sent as it is. To try that would copy it, or share its memory."""
    if isinstance(item, np.ndarray):
        return not item.dtype.hasobject
    return isinstance(item, torch.Tensor) and (item.is_leaf or not item.requires_grad)


def why_not(
    function: Callable[..., Any], arguments: Any, references: tuple[type, ...]
) -> str | None:
    """Why a recorded call cannot be sent, and what to do; None if it can.

    Args:
        function: to be called.
        arguments: all of its arguments.
        references: their kinds, which look after themselves.
    """
    name = getattr(function, "__qualname__", repr(function))
    tries = [
        (function, "the function", "Give one that a module has: no lambda, none from a function"),
        (arguments, "arguments of", "Give it what can be pickled"),
    ]
    for item, what, instead in tries:
        try:
            _Trial(references).dump(item)
        except Exception as error:  # the user's objects may raise anything
            return (
                f"{what} {name} can't be sent from the worker to the training process, where it is "
                f"called: {type(error).__name__}: {error}. {instead}"
            )
    return None
