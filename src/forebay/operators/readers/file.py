"""Read files and their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.operators._source import Source
from forebay.operators.readers._listing import (
    Paths,
    check_files,
    list_classes,
    matcher,
    read_labelled_list,
)
from forebay.operators.readers._reader import Reader
from forebay.operators.readers._shard import (
    READER_HINTS,
    SHARDING,
    ReaderHints,
    Sharding,
    check_sharding,
)
from forebay.operators.readers._storage import join, read
from forebay.types import Ints, Strings

KNOWN_FILES = tuple(
    f"*.{ending}"
    for ending in (
        *("jpg", "jpeg", "png", "bmp", "tif", "tiff", "pnm", "ppm", "pgm", "pbm", "jp2", "webp"),
        *("flac", "ogg", "wav"),
    )
)


class _Files(Reader):
    def __init__(self, paths: Sequence[str], labels: Sequence[int], sharding: Sharding) -> None:
        super().__init__(len(paths), sharding, scatter=True)
        self._paths = Paths(paths)
        self._labels = np.array(labels, np.int32)

    def name(self, index: int) -> str:
        return self._paths[index]

    def sample(self, index: int) -> tuple[Sample, Sample]:
        path = self._paths[index]
        label = self._labels[index : index + 1]
        return Sample(read(path), "", path), Sample(label, "", path)


def _check(given: Mapping[str, Any]) -> None:
    check_sharding(given)
    check_files(given)
    if "labels" in given:
        files, labels = given.get("files"), given["labels"]
        if files is None:
            raise ArgumentError("'labels' belong to 'files', which were not given")
        if len(files) != len(labels):
            raise ArgumentError(f"{len(labels)} labels were given for {len(files)} files")
        for label in (min(labels), max(labels)):
            if not -(2**31) <= label < 2**31:
                raise ArgumentError(f"labels are of type int32, but got {label}")


@operator(aliases=("file_reader",), devices=("cpu",), check=_check, outputs=lambda _: 2)
def file(
    *,
    file_root: str | None = None,
    files: Strings | None = None,
    labels: Ints | None = None,
    file_list: str | None = None,
    file_filters: Strings = KNOWN_FILES,
    dir_filters: Strings | None = None,
    case_sensitive_filter: bool = False,
    sharding: Sharding = SHARDING,
    hints: ReaderHints = READER_HINTS,
) -> Source:
    """Read files and their labels.

    The files are those in the folders of `file_root`, where each folder is a class; or `files`; or
    those in `file_list`. Paths may be URLs that fsspec knows (``s3://…``).

    Args:
        file_root: the folder with a folder for each class. Their numbers, in alphabetical order,
            are the labels. With `files` or `file_list`: what their paths are relative to.
        files: paths.
        labels: of `files`; by default their numbers, from 0.
        file_list: a text file with a path and a label in each line, relative to its own folder
            unless there is a `file_root`.
        file_filters: of the files in folders, those are read that match one of these patterns.
        dir_filters: only folders that match one of these patterns are classes.
        case_sensitive_filter: whether "*.jpg" does not match "A.JPG".

    Returns:
        The file's bytes, a vector of uint8; the label, an int32 vector of one.

    Raises:
        ValueError: it is not said which files, there are none, or a line of the list is wrong.
        OSError: a folder or the list cannot be read.
        SourceError: while running, for a file that cannot be read.
    """
    if files is not None:
        paths = [join(file_root or "", path) for path in files]
        return _Files(paths, range(len(paths)) if labels is None else labels, sharding)
    if file_list is not None:
        return _Files(*read_labelled_list(file_list, file_root), sharding)
    assert file_root is not None  # _check
    keep_file = matcher(file_filters, case_sensitive=case_sensitive_filter)
    keep_folder = matcher(dir_filters or ("*",), case_sensitive=case_sensitive_filter)
    return _Files(*list_classes(file_root, keep_file, keep_folder), sharding)
