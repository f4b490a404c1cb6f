"""Arguments of batch operators that may differ from sample to sample."""

from __future__ import annotations

from typing import Any


def value_at(value: Any, index: int) -> Any:
    """The value for the sample at `index`: a batch operator gets a list of them, or a constant."""
    return value[index] if isinstance(value, list) else value
