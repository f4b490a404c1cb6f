"""Read files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.batch import Sample
from forebay.operators._image_header import image_format
from forebay.operators._operator import operator
from forebay.types import Hints, Into


@dataclass(frozen=True)
class ReadHints(Hints):
    """How DALI reads. The result is the same.

    Attributes:
        dont_use_mmap: no effect; files are never mapped, so they may change afterwards.
        use_o_direct: no effect; files are read through the system's cache.
    """

    dont_use_mmap: bool = False
    use_o_direct: bool = False


NO_HINTS = ReadHints()


@operator(devices=("cpu",))
def read(path: Sample, *, into: Into, hints: ReadHints = NO_HINTS) -> Sample:
    """Read the files of paths.

    The input is a path: a vector of its UTF-8 bytes. Zeros at its end are ignored, so that padded
    paths can be given, and so is a leading ``file://``.

    Returns:
        The file's bytes, a vector of uint8.

    Raises:
        ValueError: the input is not a vector of bytes, or holds no path.
        OSError: the file cannot be read; FileNotFoundError if there is none.
    """
    array = path.array
    if array.ndim != 1 or array.dtype.name not in ("uint8", "int8"):
        raise ValueError(
            f"a path is a vector of uint8, its UTF-8 bytes, but got {array.dtype} of shape "
            f"{list(array.shape)}"
        )
    try:
        name = array.tobytes().rstrip(b"\0").decode().removeprefix("file://")
    except UnicodeDecodeError as error:
        raise ValueError(_no_path(array)) from error
    if not name:
        raise ValueError("the path is empty")
    # Path.open costs as much as the reading itself.
    with open(name, "rb", buffering=0) as file:  # noqa: PTH123
        content = into((os.fstat(file.fileno()).st_size,), np.uint8)
        left = content.data
        while left.nbytes and (got := file.readinto(left)):
            left = left[got:]
    if left.nbytes:
        raise OSError(f"{name} became shorter while it was read")
    return Sample(content, "", name)


def _no_path(array: np.ndarray[Any, Any]) -> str:
    name = image_format(array)
    if name is None:
        return "a path is needed, but got bytes that are not UTF-8"
    return (
        f"a path is needed, but got the encoded bytes of a {name} image: leave out fn.io.file.read"
    )
