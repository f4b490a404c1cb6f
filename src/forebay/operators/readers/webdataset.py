"""Read WebDataset archives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forebay.batch import Sample
from forebay.errors import ArgumentError, SourceError
from forebay.operators._operator import operator
from forebay.operators._source import Source
from forebay.operators.readers._archive import Component, find_samples, parse_index
from forebay.operators.readers._listing import Paths
from forebay.operators.readers._reader import Reader
from forebay.operators.readers._shard import (
    READER_HINTS,
    SHARDING,
    ReaderHints,
    Sharding,
    check_sharding,
)
from forebay.operators.readers._storage import Array, Containers, read_text
from forebay.types import DALIDataType, Strings

Wanted = Sequence[Component | None]
"""The component of a sample for each output."""

_NO_CONTENT = np.empty(0, np.uint8)
_GAP = 1 << 14


class _Archives(Reader):
    def __init__(
        self,
        paths: Sequence[str],
        samples: Sequence[Sequence[Wanted]],
        dtypes: Sequence[DALIDataType],
        sharding: Sharding,
    ) -> None:
        every = [wanted for part in samples for wanted in part]
        places = [[(c.offset, c.size) if c else (-1, 0) for c in wanted] for wanted in every]
        self._paths = paths
        self._files = Containers()
        self._ends = np.cumsum([len(part) for part in samples])
        self._places = np.array(places, np.int64).reshape(-1, len(dtypes), 2)
        self._names = Paths([_name(wanted) for wanted in every])
        self._dtypes = [dtype.numpy for dtype in dtypes]
        super().__init__(len(every), sharding)

    def _path(self, index: int) -> str:
        return self._paths[int(self._ends.searchsorted(index, "right"))]

    def name(self, index: int) -> str:
        return f"{self._path(index)}, {self._names[index] or f'sample {index}'}"

    def sample(self, index: int) -> tuple[Sample, ...]:
        source = self.name(index)
        contents = self._contents(self._path(index), self._places[index].tolist())
        return tuple(
            Sample(content.view(dtype), "", source)
            for content, dtype in zip(contents, self._dtypes, strict=True)
        )

    def _contents(self, path: str, places: Sequence[tuple[int, int]]) -> list[Array]:
        """Parts of a file; with one reading if they lie close together."""
        full = [(offset, size) for offset, size in places if size]
        begin = min((offset for offset, _ in full), default=0)
        extent = max((offset + size for offset, size in full), default=0) - begin
        if extent > 2 * sum(size for _, size in full) + _GAP:
            return [
                self._files.read(path, offset, size) if size else _NO_CONTENT
                for offset, size in places
            ]
        data = self._files.read(path, begin, extent) if extent else _NO_CONTENT
        return [data[o - begin : o - begin + size] if size else _NO_CONTENT for o, size in places]


def _name(wanted: Wanted) -> str:
    """What a sample is called: its first component, with its place in the archive."""
    first = next((c for c in wanted if c), None)
    if first is None:
        return ""
    return f"{first.name} at byte {first.offset}".lstrip()


def _select(
    samples: Sequence[Sequence[Component]],
    groups: Sequence[frozenset[str]],
    path: str,
    missing: str,
    *,
    case_sensitive: bool,
) -> list[Wanted]:
    """What is wanted of the samples of an archive: the first component that has an extension."""
    selected: list[Wanted] = []
    for sample in samples:
        wanted: list[Component | None] = [None] * len(groups)
        for component in reversed(sample):
            extension = component.extension
            key = extension if case_sensitive else extension.lower()
            for output, group in enumerate(groups):
                if key in group:
                    wanted[output] = component
        if None in wanted and missing == "error":
            names = ", ".join(repr(c.name or c.extension) for c in sample)
            lacks = ";".join(sorted(groups[wanted.index(None)]))
            raise SourceError(
                f"{path}: the sample at byte {sample[0].offset} lacks '{lacks}'; it has {names}"
            )
        if None not in wanted or missing != "skip":
            selected.append(wanted)
    return selected


def _check_sizes(selected: Sequence[Wanted], dtypes: Sequence[DALIDataType], path: str) -> None:
    for wanted in selected:
        for component, dtype in zip(wanted, dtypes, strict=True):
            if component and component.size % dtype.numpy.itemsize:
                raise SourceError(
                    f"{path} at byte {component.offset}: {component.name} has {component.size} "
                    f"bytes, no whole number of {dtype.name}"
                )


def _groups(ext: Sequence[str], *, case_sensitive: bool) -> list[frozenset[str]]:
    texts = ext if case_sensitive else [text.lower() for text in ext]
    return [frozenset(filter(None, text.split(";"))) for text in texts]


def _check(given: Mapping[str, Any]) -> None:
    check_sharding(given)
    paths, indices, ext = given["paths"], given.get("index_paths", ()), given["ext"]
    if not paths:
        raise ArgumentError("'paths' is an empty list")
    if not ext or not all(_groups(ext, case_sensitive=True)):
        raise ArgumentError(
            f"'ext' has the extensions of each output ('jpg;png', 'cls'), but got {list(ext)}"
        )
    if indices and len(indices) != len(paths):
        raise ArgumentError(
            f"{len(indices)} index files were given for {len(paths)} archives; leave "
            "'index_paths' out to have the samples found"
        )
    dtypes = given.get("dtypes", ())
    if dtypes and len(dtypes) != len(ext):
        raise ArgumentError(f"{len(dtypes)} 'dtypes' were given for {len(ext)} outputs")
    for dtype in dtypes:
        if dtype == DALIDataType.BOOL or not DALIDataType.UINT8 <= dtype <= DALIDataType.FLOAT64:
            raise ArgumentError(f"'dtypes' are types of numbers, but got {dtype.name}")
    behaviour = given.get("missing_component_behavior", "")
    if behaviour.lower() not in ("", "empty", "skip", "error"):
        raise ArgumentError(
            "argument 'missing_component_behavior' must be 'empty', 'skip' or 'error', but got "
            f"{behaviour!r}"
        )


@operator(
    devices=("cpu",),
    check=_check,
    outputs=lambda arguments: len(arguments["ext"]),
)
def webdataset(
    *,
    paths: Strings,
    ext: Strings,
    index_paths: Strings | None = None,
    missing_component_behavior: str = "",
    dtypes: tuple[DALIDataType, ...] | None = None,
    case_sensitive_extensions: bool = True,
    sharding: Sharding = SHARDING,
    hints: ReaderHints = READER_HINTS,
) -> Source:
    """Read samples of WebDataset archives: tar files in which a sample's files follow each other.

    Files belong to one sample if they share folder and name up to the first dot; what follows it is
    the extension. Folders, links and names that begin with a dot are passed over. A name without a
    dot is a sample of its own, and its extension is the whole name.

    Args:
        paths: of the archives, which must not be compressed. They may be URLs that fsspec knows
            (``s3://…``).
        ext: the extensions of each output: ``["jpg;png", "cls"]``. If a sample has several of them,
            its first is read.
        index_paths: of an index of each archive, as ``forebay index`` or DALI's `wds2idx` make
            them. By default the samples are found when the pipeline is built, which reads all
            headers.
        missing_component_behavior: of samples that lack an output: ``"empty"``, the default, gives
            a vector without elements, ``"skip"`` passes them over, ``"error"`` refuses the archive.
        dtypes: of the outputs, into which the bytes are read; uint8 by default.
        case_sensitive_extensions: whether "jpg" does not mean "JPG".

    Returns:
        A vector for each output.

    Raises:
        ValueError: the arguments do not fit together.
        OSError: a file cannot be read.
        SourceError: an archive or an index is corrupt or cut off, a component is missing, or its
            size does not fit its type. While running, for a file that has become shorter.
    """
    types = dtypes or (DALIDataType.UINT8,) * len(ext)
    groups = _groups(ext, case_sensitive=case_sensitive_extensions)
    samples = []
    for number, path in enumerate(paths):
        if index_paths:
            index = index_paths[number]
            found = parse_index(read_text(index), index)
        else:
            found = find_samples(path)
        selected = _select(
            found,
            groups,
            path,
            missing_component_behavior.lower(),
            case_sensitive=case_sensitive_extensions,
        )
        _check_sizes(selected, types, path)
        samples.append(selected)
    return _Archives(paths, samples, types, sharding)
