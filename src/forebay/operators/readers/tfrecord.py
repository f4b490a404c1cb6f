"""Read TFRecord files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.operators._source import Source
from forebay.operators.readers._example import Feature, parse_example
from forebay.operators.readers._reader import Reader
from forebay.operators.readers._records import Places, find_records, parse_index, unwrap
from forebay.operators.readers._shard import (
    READER_HINTS,
    SHARDING,
    ReaderHints,
    Sharding,
    check_sharding,
)
from forebay.operators.readers._storage import Containers, read_text
from forebay.types import Hints, Strings


@dataclass(frozen=True)
class RecordHints(Hints):
    """How DALI reads records. The result is the same.

    Attributes:
        use_o_direct: no effect; files are read through the system's cache.
    """

    use_o_direct: bool = False


RECORD_HINTS = RecordHints()


class _Records(Reader):
    def __init__(
        self,
        paths: Sequence[str],
        places: Sequence[Places],
        features: Mapping[str, Feature],
        sharding: Sharding,
    ) -> None:
        self._paths = paths
        self._files = Containers()
        self._places = np.concatenate(places)
        self._ends = np.cumsum([len(part) for part in places])
        self._features = [(name, name.encode(), feature) for name, feature in features.items()]
        self._wanted = {encoded: None for _, encoded, _ in self._features}
        super().__init__(len(self._places), sharding)

    def _where(self, index: int) -> tuple[str, int, int]:
        offset, size = self._places[index].tolist()
        return self._paths[int(self._ends.searchsorted(index, "right"))], offset, size

    def name(self, index: int) -> str:
        path, offset, _ = self._where(index)
        return f"{path}, record at byte {offset}"

    def sample(self, index: int) -> tuple[Sample, ...]:
        path, offset, size = self._where(index)
        record = unwrap(self._files.read(path, offset, size).data)
        values = parse_example(record, self._wanted)
        source = f"{path}, record at byte {offset}"
        return tuple(
            Sample(feature.read(values.get(encoded), name), "", source)
            for name, encoded, feature in self._features
        )


def _check(given: Mapping[str, Any]) -> None:
    check_sharding(given)
    paths, indices, features = given["path"], given.get("index_path", ()), given["features"]
    if not paths:
        raise ArgumentError("'path' is an empty list")
    if indices and len(indices) != len(paths):
        raise ArgumentError(
            f"{len(indices)} index files were given for {len(paths)} TFRecord files; leave "
            "'index_path' out to have them found"
        )
    if not isinstance(features, Mapping) or not features:
        raise ArgumentError(f"'features' is a dict of names and features, but got {features!r}")
    for name, feature in features.items():
        if not isinstance(name, str) or not isinstance(feature, Feature):
            raise ArgumentError(
                "'features' is a dict of names and features, made by tfrecord.FixedLenFeature or "
                f"tfrecord.VarLenFeature, but got {name!r}: {feature!r}"
            )


@operator(
    aliases={"tfrecord_reader": "TFRecordReader"},
    ops_name="TFRecord",
    devices=("cpu",),
    check=_check,
    names=lambda arguments: list(arguments["features"]),
)
def tfrecord(
    *,
    path: Strings,
    index_path: Strings | None = None,
    features: Mapping[str, Feature],
    sharding: Sharding = SHARDING,
    hints: ReaderHints = READER_HINTS,
    record_hints: RecordHints = RECORD_HINTS,
) -> Source:
    """Read features of `tf.train.Example` records in TFRecord files.

    The checksums of every record are verified. The package `crc32c` makes that nearly free.

    Args:
        path: of the files. They may be URLs that fsspec knows (``s3://…``).
        index_path: of an index of each file, as ``forebay index`` or DALI's `tfrecord2idx` make
            them. By default the records are found when the pipeline is built, which needs a small
            read for each.
        features: what is read: a name in the records, and `tfrecord.FixedLenFeature` or
            `tfrecord.VarLenFeature`.

    Returns:
        A dict with a node for each of the features: int64 or float32 tensors of the feature's
        shape, or the bytes of a string as uint8. Of several strings it is the first.

    Raises:
        ValueError: the number of indices does not fit, or `features` is something else.
        OSError: a file cannot be read.
        SourceError: a file or an index is corrupt. While running, for a record that is corrupt,
            lacks a feature without a default, or has another number or type of values.
    """
    if index_path:
        places = [parse_index(read_text(index), index) for index in index_path]
    else:
        places = [find_records(one) for one in path]
    return _Records(path, places, features, sharding)
