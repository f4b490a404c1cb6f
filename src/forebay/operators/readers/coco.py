"""Read images with COCO annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import operator
from forebay.operators._source import Source
from forebay.operators.readers._annotations import Picture, Selection, load_annotations
from forebay.operators.readers._reader import Reader
from forebay.operators.readers._shard import (
    READER_HINTS,
    SHARDING,
    ReaderHints,
    Sharding,
    check_sharding,
)
from forebay.operators.readers._storage import join, read
from forebay.types import Arguments, Strings

Array = np.ndarray[Any, Any]
_UNSUPPORTED = (
    *("preprocessed_annotations", "save_preprocessed_annotations"),
    *("save_preprocessed_annotations_dir", "dump_meta_files", "dump_meta_files_path"),
    *("meta_files_path", "save_img_ids"),
)


@dataclass(frozen=True)
class Form(Arguments):
    """What is given of the annotations, and how.

    Attributes:
        ltrb: boxes are left, top, right, bottom rather than x, y, width, height.
        ratio: coordinates are relative to the image's size.
        image_ids: give the images' ids, as the last output.
        polygon_masks: give the objects' polygons.
        masks: an old name of `polygon_masks`, whose offsets count numbers rather than vertices.
        pixelwise_masks: give the label of each pixel.
    """

    ltrb: bool = False
    ratio: bool = False
    image_ids: bool = False
    polygon_masks: bool = False
    masks: bool = False
    pixelwise_masks: bool = False

    def boxes(self, picture: Picture) -> Array:
        """The boxes, float32, a row each."""
        boxes = picture.boxes
        if self.ltrb:
            boxes = boxes.copy()
            boxes[:, 2:] += boxes[:, :2]
        if self.ratio:
            boxes = boxes / np.array([picture.width, picture.height] * 2, np.float32)
        return boxes

    def polygons(self, picture: Picture) -> tuple[Array, Array]:
        """(object, first vertex, end) of each polygon, int32; and all vertices, float32."""
        rows = []
        first = 0
        for number, vertices in picture.polygons:
            rows.append((number, first, first + len(vertices)))
            first += len(vertices)
        table = np.array(rows, np.int32).reshape(-1, 3)
        if self.masks:
            table[:, 1:] *= 2
        shapes = [np.empty((0, 2), np.float32), *(vertices for _, vertices in picture.polygons)]
        vertices = np.concatenate(shapes)
        if self.ratio:
            vertices /= np.array([picture.width, picture.height], np.float32)
        return table, vertices


class _Pictures(Reader):
    def __init__(
        self, root: str, pictures: Sequence[Picture], form: Form, sharding: Sharding
    ) -> None:
        super().__init__(len(pictures), sharding, scatter=True)
        self._root = root
        self._pictures = pictures
        self._form = form

    def name(self, index: int) -> str:
        return join(self._root, self._pictures[index].path)

    def sample(self, index: int) -> tuple[Sample, ...]:
        picture, form, path = self._pictures[index], self._form, self.name(index)
        outputs = [Sample(read(path)), Sample(form.boxes(picture)), Sample(picture.labels)]
        if form.polygon_masks or form.masks:
            outputs += map(Sample, form.polygons(picture))
        if form.pixelwise_masks:
            outputs.append(Sample(picture.mask(), "HWC"))
        if form.image_ids:
            outputs.append(Sample(np.array([picture.id], np.int32)))
        for output in outputs:
            output.source = path
        return tuple(outputs)


def _outputs(given: Mapping[str, Any]) -> int:
    polygons = given.get("polygon_masks") or given.get("masks")
    pixels, ids = given.get("pixelwise_masks"), given.get("image_ids")
    return 3 + 2 * bool(polygons) + bool(pixels) + bool(ids)


def _check(given: Mapping[str, Any]) -> None:
    check_sharding(given)
    for name in _UNSUPPORTED:
        if given.get(name):
            raise ArgumentError(
                f"'{name}' is not in this version: annotations are read from 'annotations_file'"
            )
    if given.get("pixelwise_masks") and (given.get("polygon_masks") or given.get("masks")):
        raise ArgumentError("pixelwise_masks and polygon_masks exclude each other")
    if not given.get("annotations_file"):
        raise ArgumentError("needs the argument 'annotations_file'")


@operator(
    aliases={"coco_reader": "COCOReader"},
    ops_name="COCO",
    devices=("cpu",),
    check=_check,
    outputs=_outputs,
)
def coco(
    *,
    annotations_file: str = "",
    file_root: str | None = None,
    images: Strings | None = None,
    size_threshold: float = 0.1,
    skip_empty: bool = False,
    include_iscrowd: bool = True,
    avoid_class_remapping: bool = False,
    form: Form,
    preprocessed_annotations: str = "",
    save_preprocessed_annotations: bool = False,
    save_preprocessed_annotations_dir: str = "",
    dump_meta_files: bool = False,
    dump_meta_files_path: str = "",
    meta_files_path: str = "",
    save_img_ids: bool = False,
    sharding: Sharding = SHARDING,
    hints: ReaderHints = READER_HINTS,
) -> Source:
    """Read images, and the boxes, classes and shapes of the objects in them.

    Images come in the order of their ids, or in that of `images`.

    Args:
        annotations_file: in COCO's format, JSON; a path or a URL.
        file_root: what the images' names are relative to.
        images: the names of the images to read, rather than all of the file.
        size_threshold: objects that are less wide or less high than this are left out.
        skip_empty: leave out images without objects.
        include_iscrowd: whether groups of objects are read too.
        avoid_class_remapping: labels are the ids of the categories; by default they are the places
            of the categories in the file, from 1.
        preprocessed_annotations, save_preprocessed_annotations, save_preprocessed_annotations_dir:
            not in this version; refused.
        dump_meta_files, dump_meta_files_path, meta_files_path, save_img_ids: old names of these;
            refused.

    Returns:
        The image file's bytes, a vector of uint8; boxes, float32 of shape (objects, 4); labels, a
        vector of int32. With `polygon_masks` also a row (object, first vertex, end) for each
        polygon, int32, and the vertices, float32 of shape (vertices, 2). With `pixelwise_masks`
        the label of each pixel, int32 "HWC" with one channel, 0 where there is no object. With
        `image_ids` the image's id, an int32 vector of one.

    Raises:
        OSError: the annotations cannot be read.
        ValueError: they are not in the format, name a category or image that is not there, or no
            image is left.
        SourceError: while running, for an image that cannot be read or a mask that is wrong.
    """
    selection = Selection(
        size_threshold,
        include_iscrowd,
        avoid_class_remapping,
        shapes=form.polygon_masks or form.masks or form.pixelwise_masks,
        sizes=form.ratio or form.pixelwise_masks,
    )
    pictures = load_annotations(annotations_file, selection)
    if images:
        pictures = _chosen(pictures, images, annotations_file)
    if skip_empty:
        pictures = [picture for picture in pictures if len(picture.labels)]
    if not pictures:
        raise ValueError(f"no images are left of {annotations_file}")
    if form.image_ids:
        for picture in pictures:
            if not -(2**31) <= picture.id < 2**31:
                raise ValueError(f"the id of image {picture.id} does not fit int32")
    return _Pictures(file_root or "", pictures, form, sharding)


def _chosen(pictures: Sequence[Picture], images: Sequence[str], where: str) -> list[Picture]:
    known = {picture.path: picture for picture in pictures}
    missing = [name for name in images if name not in known]
    if missing:
        raise ValueError(f"{where} has no image {missing[0]!r}, nor {len(missing) - 1} others")
    return [known[name] for name in images]
