"""Lists of files: by folder, by argument or from a file."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from forebay.errors import ArgumentError
from forebay.operators.readers._storage import folder_of, join, read_text, scan


class Paths(Sequence[str]):
    """Paths in one piece of memory: a million of them cost their letters and 8 bytes each."""

    def __init__(self, paths: Sequence[str]) -> None:
        text = "".join(paths)
        lengths = map(len, paths if text.isascii() else map(os.fsencode, paths))
        self._text = os.fsencode(text)
        self._ends = np.zeros(len(paths) + 1, np.int64)
        np.cumsum(np.fromiter(lengths, np.int64, len(paths)), out=self._ends[1:])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:  # type: ignore[override]  # no slices
        return os.fsdecode(self._text[self._ends[index] : self._ends[index + 1]])


def check_files(given: Mapping[str, Any]) -> None:
    """Refuse what does not say which files are meant, or says it twice."""
    if "files" in given and "file_list" in given:
        raise ArgumentError("give the paths either by 'files' or by 'file_list', not by both")
    if not {"files", "file_list", "file_root"} & set(given):
        raise ArgumentError("needs 'file_root', 'files' or 'file_list'")
    for name in ("files", "file_filters", "dir_filters"):
        if name in given and not given[name]:
            raise ArgumentError(f"'{name}' is an empty list")


def matcher(patterns: Sequence[str], *, case_sensitive: bool) -> Callable[[str], object]:
    """Whether a name matches one of these patterns of the shell (``*``, ``?``, ``[a-z]``)."""
    texts = [re.sub(r"\\(.)", r"[\1]", pattern.replace("[^", "[!")) for pattern in patterns]
    expression = "|".join(fnmatch.translate(text) for text in texts)
    return re.compile(expression, 0 if case_sensitive else re.IGNORECASE).match


def list_classes(
    root: str, keep_file: Callable[[str], object], keep_folder: Callable[[str], object]
) -> tuple[list[str], list[int]]:
    """The files in the folders of a folder, and for each the number of its folder.

    Only folders that are kept are numbered, also those without files. Deeper ones are not read.
    """
    paths: list[str] = []
    labels: list[int] = []
    folders, loose = scan(root)
    for label, folder in enumerate(filter(keep_folder, folders)):
        home = join(root, folder)
        names = [name for name in scan(home)[1] if keep_file(name)]
        paths += [join(home, name) for name in names]
        labels += [label] * len(names)
    if not paths:
        raise ValueError(
            f"no files were found in {root}, which has {len(folders)} folders and {len(loose)} "
            f"files of its own; each class has a folder, and its files pass 'file_filters'"
        )
    return paths, labels


def list_tree(root: str, keep_file: Callable[[str], object]) -> list[str]:
    """The files in a folder, then those in its folders. Deeper ones are not read."""
    folders, files = scan(root)
    paths = [join(root, name) for name in files if keep_file(name)]
    for folder in folders:
        home = join(root, folder)
        paths += [join(home, name) for name in scan(home)[1] if keep_file(name)]
    if not paths:
        raise ValueError(f"no files that match were found in {root} and the folders in it")
    return paths


def read_list(file_list: str, root: str | None) -> tuple[list[str], str]:
    """The lines of a list of files, empty ones too, and the folder that they are relative to."""
    lines = read_text(file_list).replace("\r\n", "\n").split("\n")
    if not any(map(str.strip, lines)):
        raise ValueError(f"no files are listed in {file_list}")
    return lines, folder_of(file_list) if root is None else root


def read_labelled_list(file_list: str, root: str | None) -> tuple[list[str], list[int]]:
    """The paths and labels of a list with ``path label`` in each line.

    Raises:
        ValueError: a line does not end with a label, an integer from 0 to 2³¹ - 1.
    """
    lines, home = read_list(file_list, root)
    paths, labels = [], []
    for number, line in enumerate(lines, 1):
        parts = line.rsplit(None, 1)
        if len(parts) == 2 and parts[1].isdecimal() and (label := int(parts[1])) < 2**31:
            paths.append(parts[0])
            labels.append(label)
        elif parts:
            raise ValueError(
                f"{file_list}, line {number}: a path and a label, an integer that is not "
                f"negative, were expected, but got {line!r}"
            )
    return [join(home, path) for path in paths], labels
