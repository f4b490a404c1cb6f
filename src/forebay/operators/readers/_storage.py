"""Files, wherever they are: local ones by the system, those of a URL (``s3://…``) by fsspec."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

Array = np.ndarray[Any, Any]


def join(root: str, name: str) -> str:
    """The path of `name`, which is relative to `root` unless it is absolute or a URL."""
    if not root or "://" in name or name.startswith("/"):
        return name
    if os.name == "nt" and "://" not in root:
        return os.path.join(root, name)  # noqa: PTH118 - on Windows it knows more absolute paths
    return root + name if root.endswith("/") else f"{root}/{name}"


def folder_of(path: str) -> str:
    """The folder that a file lies in."""
    return path.rpartition("/")[0] if "://" in path else os.path.dirname(path)  # noqa: PTH120


def scan(folder: str) -> tuple[list[str], list[str]]:
    """The names of the folders and of the files in a folder, each sorted. Links are followed.

    Raises:
        OSError: the folder cannot be listed.
    """
    folders: list[str] = []
    files: list[str] = []
    if "://" in folder:
        system, path = _remote(folder)
        for entry in system.ls(path, detail=True):
            name = entry["name"].rstrip("/").rpartition("/")[2]
            (folders if entry["type"] == "directory" else files).append(name)
    else:
        with os.scandir(folder) as entries:
            for item in entries:
                if item.is_dir():
                    folders.append(item.name)
                elif item.is_file():
                    files.append(item.name)
    return sorted(folders), sorted(files)


def open_file(path: str) -> BinaryIO:
    """The file, opened for reading, without a buffer if it is local. Raises OSError."""
    if "://" in path:
        system, name = _remote(path)
        remote: BinaryIO = system.open(name, "rb")
        return remote
    # Path.open costs as much as the reading itself.
    return open(path, "rb", buffering=0)  # noqa: PTH123


def read(path: str, offset: int = 0, size: int | None = None) -> Array:
    """`size` bytes of the file from `offset` on, all to its end by default.

    Raises:
        OSError: it cannot be read.
        ValueError: it ends before.
    """
    if "://" in path:
        system, name = _remote(path)
        content = system.cat_file(name, offset, None if size is None else offset + size)
        result = np.frombuffer(bytearray(content), np.uint8)
    else:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            if offset:
                file.seek(offset)
            left = max(os.fstat(file.fileno()).st_size - offset, 0)
            result = np.empty(left if size is None else min(size, left), np.uint8)
            result = result[: fill(file.readinto, result)]
    if size is not None and result.size < size:
        raise ValueError(
            f"the file ends {size - result.size} bytes too early: {size} bytes were to be read "
            f"from offset {offset}"
        )
    return result


class Containers:
    """Files that hold many samples: the last used local ones stay open."""

    def __init__(self) -> None:
        self._open = functools.lru_cache(_MOST_OPEN)(_Descriptor)

    def read(self, path: str, offset: int, size: int) -> Array:
        """`size` bytes from `offset` on. Raises as `read` does."""
        if "://" in path or size > _MOST_AT_ONCE or not hasattr(os, "preadv"):
            return read(path, offset, size)
        result = np.empty(size, np.uint8)
        descriptor = self._open(path)  # kept until the end: another thread may make it the oldest
        got = os.preadv(descriptor.number, [result.data], offset) if size else 0
        return result if got == size else read(path, offset, size)


_MOST_OPEN = 64
_MOST_AT_ONCE = 1 << 24  # an index may say anything; `read` looks first how long the file is


class _Descriptor:
    """An open file, which is closed when nobody uses it any more."""

    def __init__(self, path: str) -> None:
        self.number = -1
        self.number = os.open(path, os.O_RDONLY)

    def __del__(self) -> None:
        if self.number >= 0:
            os.close(self.number)


def fill(readinto: Callable[[Any], int | None], target: Array) -> int:
    """Fill an array of bytes, and say how many there were."""
    left = target
    while left.nbytes and (got := readinto(left)):
        left = left[got:]
    return target.nbytes - left.nbytes


def read_text(path: str) -> str:
    """The file's text, in UTF-8. Raises OSError, or ValueError if it is no text."""
    return read(path).tobytes().decode("utf-8", "surrogateescape")


def _remote(path: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        system, name = importlib.import_module("fsspec.core").url_to_fs(path)
    except ImportError as error:
        raise ValueError(f"{path} cannot be opened, a package is missing: {error}") from error
    return system, name
