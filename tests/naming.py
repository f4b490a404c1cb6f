"""Names of tests are the same in every process, so that several can share them out."""

from __future__ import annotations

import re
from typing import Any


def stable(value: Any) -> str:
    """A value's text without the address of an object."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
