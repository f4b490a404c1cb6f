"""Read arrays that numpy has saved."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._convert import saturate_cast
from forebay.operators._operator import operator
from forebay.operators._region import OutOfBounds, inside, named_axes
from forebay.operators._source import Source
from forebay.operators.readers._listing import Paths, check_files, list_tree, matcher, read_list
from forebay.operators.readers._reader import Reader
from forebay.operators.readers._shard import (
    READER_HINTS,
    SHARDING,
    ReaderHints,
    Sharding,
    check_sharding,
)
from forebay.operators.readers._storage import join, read
from forebay.operators.slice import Bounds
from forebay.types import Arguments, Floats, Hints, Ints, OneOf, PerSample, Strings, data_type

Array = np.ndarray[Any, Any]
_STARTS = ("roi_start", "rel_roi_start")
_ENDS = ("roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape")


@dataclass(frozen=True)
class NumpyHints(Hints):
    """How DALI reads arrays. The result is the same.

    Attributes:
        cache_header_information: no effect; a header is read with its file.
        register_buffers: no effect.
        use_o_direct: no effect; files are read through the system's cache.
    """

    cache_header_information: bool = False
    register_buffers: bool = True
    use_o_direct: bool = False


@dataclass(frozen=True)
class Roi(Arguments):
    """The region that is read: one value an axis, or one for all.

    Attributes:
        roi_start, rel_roi_start: where it begins, in elements or relative to the extents.
        roi_end, rel_roi_end: where it ends.
        roi_shape, rel_roi_shape: its size, instead of its end.
        roi_axes: the axes that the bounds are for; all by default.
        out_of_bounds_policy: what happens where it reaches outside the array: "error" refuses it,
            "pad" fills, "trim_to_shape" makes it smaller.
        fill_value: what "pad" fills with.
    """

    roi_start: PerSample[Ints] | None = None
    rel_roi_start: PerSample[Floats] | None = None
    roi_end: PerSample[Ints] | None = None
    rel_roi_end: PerSample[Floats] | None = None
    roi_shape: PerSample[Ints] | None = None
    rel_roi_shape: PerSample[Floats] | None = None
    roi_axes: Ints = ()
    out_of_bounds_policy: Annotated[str, OneOf(("error", "pad", "trim_to_shape"))] = "error"
    fill_value: float = 0.0

    def bounds(self) -> Bounds:
        """The same in the words of `slice`."""
        return Bounds(
            self.roi_start or None,
            self.rel_roi_start or None,
            self.roi_end or None,
            self.rel_roi_end or None,
            self.roi_shape or None,
            self.rel_roi_shape or None,
        )


NUMPY_HINTS = NumpyHints()
NO_ROI = Roi()


class _Arrays(Reader):
    def __init__(self, paths: Sequence[str], roi: Roi, sharding: Sharding) -> None:
        super().__init__(len(paths), sharding, scatter=True)
        self._paths = Paths(paths)
        self._roi = roi

    def name(self, index: int) -> str:
        return self._paths[index]

    def sample(self, index: int) -> tuple[Sample]:
        return self._load(index, self._roi)

    def sample_with(self, index: int, arguments: Mapping[str, Any]) -> tuple[Sample]:
        return self._load(index, replace(self._roi, **arguments))

    def _load(self, index: int, roi: Roi) -> tuple[Sample]:
        path = self._paths[index]
        array, fortran = parse(read(path))
        bounds = roi.bounds()
        if bounds.given():
            array = _cut(array, roi, bounds)
        elif fortran:
            array = array.copy(order="C")
        return (Sample(array, "", path),)


def _cut(array: Array, roi: Roi, bounds: Bounds) -> Array:
    axes = named_axes(Sample(array), roi.roi_axes, None) or list(range(array.ndim))
    region = [(0, extent) for extent in array.shape]
    parts = bounds.windows([array.shape[axis] for axis in axes])
    for axis, (start, size) in zip(axes, parts, strict=True):
        if size < 0:
            raise ValueError(f"the region must not end before its start, {start}, along {axis=}")
        region[axis] = (start, size)
    placed = OutOfBounds(roi.out_of_bounds_policy).apply(region, array.shape)
    source, target = inside(placed, array.shape)
    shape = [size for _, size in placed]
    part = array[source]
    if list(part.shape) == shape:
        return part.copy(order="C")
    value = np.array(roi.fill_value, np.float32)
    result = np.full(shape, saturate_cast(value, data_type(array.dtype)))
    result[target] = part
    return result


def parse(content: Array) -> tuple[Array, bool]:
    """The array in the bytes of an .npy file, over the same memory; and whether it is Fortran's.

    Versions 1 to 3 of the format, as `numpy.lib.format` documents it.

    Raises:
        ValueError: it is no such file, ends too early, or its elements are no numbers.
    """
    wide = content.size > 6 and content[6] > 1
    start = 12 if wide else 10
    head = content[:start].tobytes()
    if head[:6] != b"\x93NUMPY" or len(head) < start:
        raise ValueError("it is no .npy file: it does not begin as one")
    begin = start + int.from_bytes(head[8:], "little")
    if begin > content.size:
        raise ValueError(f"it ends at offset {content.size}, within its header of {begin} bytes")
    dtype, shape, fortran = _header(content[start:begin].tobytes())
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if begin + size > content.size:
        raise ValueError(
            f"it ends at offset {content.size}, but {size} bytes of {dtype} {list(shape)} were "
            f"expected from offset {begin} on"
        )
    array = content[begin : begin + size].view(dtype).reshape(shape, order="F" if fortran else "C")
    array = array.astype(dtype.newbyteorder("="), copy=not array.flags.aligned)
    return array, fortran


def _header(text: bytes) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    try:
        found = ast.literal_eval(text.decode("utf-8").strip())
        dtype, shape = np.dtype(found["descr"]), tuple(found["shape"])
        fortran = bool(found["fortran_order"])
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise ValueError(f"its header cannot be read: {error}") from error
    if not all(isinstance(extent, int) and extent >= 0 for extent in shape):
        raise ValueError(f"its header has the shape {shape}")
    data_type(dtype)  # raises if its elements are no numbers
    return dtype, shape, fortran


def _check(given: Mapping[str, Any]) -> None:
    check_sharding(given)
    check_files(given)
    for group in (_STARTS, _ENDS):
        found = [name for name in group if name in given]
        if len(found) > 1:
            raise ArgumentError(f"give only one of {', '.join(map(repr, found))}")


@operator(aliases=("numpy_reader",), devices=("cpu",), check=_check, outputs=lambda _: 1)
def numpy(
    *,
    file_root: str | None = None,
    files: Strings | None = None,
    file_list: str | None = None,
    file_filter: str = "*.npy",
    roi: Roi = NO_ROI,
    sharding: Sharding = SHARDING,
    hints: ReaderHints = READER_HINTS,
    numpy_hints: NumpyHints = NUMPY_HINTS,
) -> Source:
    """Read arrays that numpy has saved, or a region of each.

    The files are those in `file_root` and in the folders in it; or `files`; or those in
    `file_list`. Paths may be URLs that fsspec knows (``s3://…``).

    Args:
        file_root: the folder. With `files` or `file_list`: what their paths are relative to.
        files: paths.
        file_list: a text file with a path in each line, relative to its own folder unless there is
            a `file_root`.
        file_filter: of the files in folders, those are read that match this pattern.

    Returns:
        The array, with the shape and element type of the file, in C's order. Big-endian files are
        converted.

    Raises:
        ValueError: it is not said which files, or there are none.
        OSError: a folder or the list cannot be read.
        SourceError: while running, for a file that cannot be read, or whose region reaches outside.
    """
    if files is not None:
        paths = [join(file_root or "", path) for path in files]
    elif file_list is not None:
        lines, home = read_list(file_list, file_root)
        paths = [join(home, line) for line in lines if line]
    else:
        assert file_root is not None  # _check
        paths = list_tree(file_root, matcher([file_filter], case_sensitive=True))
    return _Arrays(paths, roi, sharding)
