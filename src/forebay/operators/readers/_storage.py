"""Files, wherever they are: local ones by the system, those of a URL (``s3://…``) by fsspec."""

from __future__ import annotations

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
    if "://" in root:
        return f"{root.rstrip('/')}/{name}"
    return os.path.join(root, name)  # noqa: PTH118 - a million times


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
            wanted = os.fstat(file.fileno()).st_size - offset if size is None else size
            result = np.empty(max(wanted, 0), np.uint8)
            result = result[: fill(file.readinto, result)]
    if size is not None and result.size < size:
        raise ValueError(
            f"the file ends {size - result.size} bytes too early: {size} bytes were to be read "
            f"from offset {offset}"
        )
    return result


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
