"""The annotations of a COCO file, in arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forebay.operators.readers._mask import polygon_mask, run_length_mask
from forebay.operators.readers._storage import read_text

Array = np.ndarray[Any, Any]
NO_BOXES = np.empty((0, 4), np.float32)
NO_LABELS = np.empty(0, np.int32)


@dataclass
class Picture:
    """One image and its objects.

    Attributes:
        path: as the file names it.
        id: its number.
        width, height: of the image; 0 if the file does not say.
        boxes: float32 (x, y, width, height) of each object.
        labels: int32 class of each object.
        polygons: (object, float32 vertices) in order.
        runs: (object, size, run lengths) of the masks that are no polygons.
    """

    path: str
    id: int
    width: int
    height: int
    boxes: Array = field(default_factory=lambda: NO_BOXES)
    labels: Array = field(default_factory=lambda: NO_LABELS)
    polygons: Sequence[tuple[int, Array]] = ()
    runs: Sequence[tuple[int, Sequence[int], Any]] = ()

    def mask(self) -> Array:
        """The label of each pixel, int32 (height, width, 1): 0 outside all objects.

        Where objects overlap, the largest label counts. (In DALI too, except that its last run of
        pixels up to the lower right corner has the smaller label.)
        """
        height, width = self.height, self.width
        mask = np.zeros((height, width), np.int32)
        for number, vertices in self.polygons:
            np.maximum(mask, polygon_mask(vertices, height, width) * self.labels[number], out=mask)
        for number, size, counts in self.runs:
            if list(size) != [height, width]:
                raise ValueError(
                    f"a mask is of size {list(size)}, but the image is {[height, width]}"
                )
            np.maximum(mask, run_length_mask(counts, height, width) * self.labels[number], out=mask)
        return mask[:, :, None]


@dataclass(frozen=True)
class Selection:
    """Which objects of a file are read, and what of them.

    Attributes:
        size_threshold: objects that are less wide or high are left out.
        include_iscrowd: whether crowds are read.
        keep_ids: labels are the ids of the categories, not their places from 1 on.
        shapes: read the polygons and masks.
        sizes: the images' sizes are needed.
    """

    size_threshold: float
    include_iscrowd: bool
    keep_ids: bool
    shapes: bool
    sizes: bool


def load_annotations(path: str, selection: Selection) -> list[Picture]:
    """The images of an annotations file, in the order of their ids.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no JSON, or not what COCO's annotations are.
    """
    try:
        content = json.loads(read_text(path))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from error
    try:
        if not isinstance(content, dict):
            raise TypeError("an object with 'images' and 'annotations' was expected")  # noqa: TRY301
        objects = _objects(content, selection)
        pictures = [_picture(image, objects, selection) for image in content.get("images", ())]
    except KeyError as error:
        raise ValueError(f"{path}: an image or annotation has no {error.args[0]!r}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path}: {error}") from error
    return sorted(pictures, key=lambda picture: picture.id)


def _objects(content: Mapping[str, Any], selection: Selection) -> dict[int, list[Any]]:
    """(annotation, label) of the objects that are read, by image."""
    ids = dict.fromkeys(category["id"] for category in content.get("categories", ()))
    labels = {number: number if selection.keep_ids else i for i, number in enumerate(ids, 1)}
    objects: dict[int, list[Any]] = {}
    for annotation in content.get("annotations", ()):
        if annotation.get("iscrowd") and not selection.include_iscrowd:
            continue
        box = annotation["bbox"]
        if not isinstance(box, list) or len(box) != 4:
            raise ValueError(f"annotation {annotation.get('id')} has the box {box!r}")
        if min(box[2:]) < selection.size_threshold:
            continue
        category = annotation["category_id"]
        label = category if selection.keep_ids else labels.get(category)
        if label is None:
            raise ValueError(
                f"annotation {annotation.get('id')} is of category {category}, which is not among "
                f"'categories'; avoid_class_remapping=True takes it as it is"
            )
        objects.setdefault(annotation["image_id"], []).append((annotation, label))
    return objects


def _picture(
    image: Mapping[str, Any], objects: Mapping[int, list[Any]], selection: Selection
) -> Picture:
    width, height = int(image.get("width", 0)), int(image.get("height", 0))
    if selection.sizes and (width < 1 or height < 1):
        raise ValueError(f"image {image['id']} has no 'width' and 'height', which are needed")
    picture = Picture(image["file_name"], int(image["id"]), width, height)
    found = objects.get(picture.id)
    if not found:
        return picture
    picture.boxes = np.array([annotation["bbox"] for annotation, _ in found], np.float32)
    picture.labels = np.array([label for _, label in found], np.int32)
    if selection.shapes:
        _add_shapes(picture, [annotation.get("segmentation") for annotation, _ in found])
    return picture


def _add_shapes(picture: Picture, shapes: Sequence[Any]) -> None:
    polygons, runs = [], []
    for number, shape in enumerate(shapes):
        if isinstance(shape, dict):
            runs.append((number, shape["size"], shape["counts"]))
            continue
        for numbers in shape or ():
            if len(numbers) < 2 or len(numbers) % 2:
                raise ValueError(
                    f"a polygon of image {picture.id} has {len(numbers)} numbers, not pairs"
                )
            polygons.append((number, np.array(numbers, np.float32).reshape(-1, 2)))
    picture.polygons, picture.runs = polygons, runs
