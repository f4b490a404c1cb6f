from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from forebay import Pipeline, fn, ops
from forebay.errors import ArgumentError, SourceError
from forebay.operators.readers._mask import run_length_mask
from reading import check, read_ours

OP = "readers.coco"
CATEGORIES = [{"id": 7, "name": "x"}, {"id": 3, "name": "y"}, {"id": 90, "name": "z"}]
TRIANGLE, SQUARE = [10, 5, 30, 5, 30, 15], [7, 8, 9, 8, 9, 12, 7, 12]


def image(number, name, width=40, height=20):
    return {"id": number, "file_name": name, "width": width, "height": height}


def thing(image_id, category=7, box=(1, 1, 5, 5), shape=(), **more):
    found = {"image_id": image_id, "category_id": category, "bbox": list(box), "iscrowd": 0}
    return {**found, "segmentation": shape if isinstance(shape, dict) else list(shape), **more}


IMAGES = [image(30, "c.jpg"), image(10, "a.jpg", 100, 50), image(20, "b.jpg"), image(5, "e.jpg")]
CROWD = {"size": [50, 100], "counts": [0, 10, 40, 10, 4940]}
THINGS = [
    thing(10, 90, (10, 5, 20, 10), [TRIANGLE]),
    thing(10, 3, (1.5, 2.5, 0.05, 10), [[1, 2, 3, 4, 5, 2]]),
    thing(10, 7, (0, 0, 4, 4), CROWD, iscrowd=1),
    thing(30, 3, (3, 3, 0.2, 0.2), [[1, 2, 3, 4, 5, 2], SQUARE]),
    thing(20, 7, (-3, 0.5, 50, 5.3), [[1, 1, 6, 1, 6, 6, 1, 6]]),
    thing(77),
]


@pytest.fixture
def write(tmp_path):
    """Write images and annotations, and give the reader's arguments for them."""

    def write(images=IMAGES, annotations=THINGS, categories=CATEGORIES, **more):
        content = {"images": images, "annotations": annotations, "categories": categories, **more}
        (tmp_path / "a.json").write_text(json.dumps(content))
        for one in images:
            (tmp_path / one["file_name"]).write_text(one["file_name"])
        return {"file_root": str(tmp_path), "annotations_file": str(tmp_path / "a.json")}

    return write


@pytest.mark.dali
@pytest.mark.filterwarnings("ignore:Use `polygon_masks`:DeprecationWarning")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"ltrb": True},
        {"ratio": True},
        {"ltrb": True, "ratio": True},
        {"skip_empty": True},
        {"size_threshold": 0.3},
        {"size_threshold": 0.2},
        {"size_threshold": 0.0},
        {"include_iscrowd": False},
        {"include_iscrowd": False, "skip_empty": True},
        {"avoid_class_remapping": True},
        {"image_ids": True},
        {"images": ["c.jpg", "a.jpg", "c.jpg"]},
        {"polygon_masks": True},
        {"polygon_masks": True, "ratio": True, "image_ids": True, "ltrb": True},
        {"polygon_masks": True, "size_threshold": 0.0},
        {"masks": True},
        {"masks": True, "polygon_masks": True},
        {"pixelwise_masks": True},
        {"pixelwise_masks": True, "ratio": True, "image_ids": True},
        {"pixelwise_masks": True, "avoid_class_remapping": True, "size_threshold": 0.0},
        {"pixelwise_masks": True, "include_iscrowd": False},
        {"num_shards": 2, "shard_id": 1, "pad_last_batch": True},
    ],
    ids=str,
)
def test_annotations_come_as_in_dali(write, arguments):
    check(OP, 2, 3, **write(), **arguments)


def test_images_come_by_id_and_categories_are_numbered_as_they_are_listed(write):
    reading = read_ours(OP, 1, 4, **write())
    assert [bytes(a).decode() for a in reading.batches[0][0][0]] == [
        *("e.jpg", "a.jpg", "b.jpg", "c.jpg")
    ]
    assert [a.tolist() for a in reading.batches[0][2][0]] == [[], [3, 1], [1], [2]]


@pytest.mark.dali
@pytest.mark.parametrize("seed", range(4))
def test_polygons_are_drawn_pixel_for_pixel(write, seed):
    rng = np.random.default_rng(seed)
    images, things = [], []
    for number in range(16):
        height, width = rng.integers(5, 40, 2).tolist()
        images.append(image(number, f"{number}.jpg", width, height))
        # Where objects overlap up to the last pixel DALI's last run has the smaller label.
        low, high, objects = (-8, 48, 1) if seed % 2 else (0, min(width, height) - 1, 2)
        for _ in range(objects):
            points = rng.uniform(low, high, int(rng.integers(3, 9)) * 2).round(seed)
            things.append(thing(number, int(rng.choice([3, 7, 90])), shape=[points.tolist()]))
    check(OP, 1, 16, **write(images, things), pixelwise_masks=True)


A, B = [0, 0, 5, 0, 5, 4, 0, 4], [3, 2, 8, 2, 8, 6, 3, 6]
RUNS = {"size": [6, 8], "counts": [6, 12, 30]}
PACKED = {"size": [6, 8], "counts": "6<n0"}  # the same, six bits a character


@pytest.mark.dali
@pytest.mark.parametrize(
    "things",
    [
        [thing(1, 3, shape=[A]), thing(1, 90, shape=[B])],
        [thing(1, 90, shape=[A]), thing(1, 3, shape=[B])],
        [thing(1, 90, shape=[A, B])],
        [thing(1, 7, shape=RUNS), thing(1, 3, shape=[A])],
        [thing(1, 3, shape=[A]), thing(1, 7, shape=RUNS)],
        [thing(1, 3, shape={**RUNS, "counts": [0, 24, 24]}), thing(1, 7, shape=RUNS)],
        [thing(1, 7, shape=PACKED), thing(1, 3, shape=[A], iscrowd=1)],
        [thing(1, 7, shape={**RUNS, "counts": [6, 12]})],
        [thing(1, 7, shape=[])],
        [thing(1, 7, shape=[[1, 1, 3, 3]]), thing(1, 3, shape=[[2, 2]])],
    ],
)
def test_overlapping_objects_are_drawn_as_in_dali(write, things):
    check(OP, 1, 1, **write([image(1, "i.jpg", 8, 6)], things), pixelwise_masks=True)


def test_the_largest_label_counts_up_to_the_last_pixel(write):
    whole = [0, 0, 8, 0, 8, 6, 0, 6]
    for things in itertools.permutations([thing(1, 7, shape=[whole]), thing(1, 3, shape=[whole])]):
        given = write([image(1, "i.jpg", 8, 6)], things)
        mask = read_ours(OP, 1, 1, **given, pixelwise_masks=True).batches[0][3][0][0]
        assert (mask == 2).all()


def pack(runs):
    """Run lengths in the compressed form, written from its description in the COCO API."""
    text = ""
    for i, run in enumerate(runs):
        value = run - runs[i - 2] if i > 2 else run
        more = True
        while more:
            bits = value & 31
            value >>= 5
            more = value != (-1 if bits & 16 else 0)
            text += chr(48 + bits + 32 * more)
    return text


def test_compressed_runs_of_any_length_are_unpacked():
    rng = np.random.default_rng(5)
    for most in (2, 40, 3000):
        runs = rng.integers(0, most, 50).tolist()
        flat = list(itertools.chain(*([i % 2 == 1] * run for i, run in enumerate(runs))))
        height = len(flat)
        for counts in (runs, pack(runs)):
            assert run_length_mask(counts, height, 1)[:, 0].tolist() == flat


@pytest.mark.dali
def test_what_annotations_may_lack_is_as_in_dali(write):
    bare = [{"id": i, "file_name": f"{i}.jpg"} for i in (2, 1)]
    things = [thing(1), thing(2)]
    del things[0]["iscrowd"], things[0]["segmentation"]
    check(OP, 1, 2, **write(bare, things), polygon_masks=True)
    check(OP, 1, 2, **write(bare, []))


def fails(text, pattern_class=RuntimeError, **arguments):
    with Pipeline(batch_size=4, num_threads=1) as pipe:
        pipe.set_outputs(*fn.readers.coco(**arguments))
    with pytest.raises(pattern_class, match=text):
        pipe.run()
    pipe.close()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('{"images": [ {"id": 1, ', r"a\.json is no JSON: .*line 1"),
        ("[]", r"a\.json: an object with 'images'"),
        ('{"images": []}', r"no images are left of .*a\.json"),
        ('{"images": [{"id": 1}]}', "no 'file_name'"),
        ('{"images": [{"file_name": "a"}]}', "no 'id'"),
        ('{"annotations": [{"bbox": [1, 2, 3], "image_id": 1}]}', r"has the box \[1, 2, 3\]"),
        ('{"annotations": [{"category_id": 1, "image_id": 1}]}', "no 'bbox'"),
        ('{"annotations": [{"bbox": [1, 2, 3, 4], "image_id": 1}]}', "no 'category_id'"),
        (
            '{"annotations": [{"bbox": [1, 2, 3, 4], "category_id": 5, "image_id": 1}]}',
            "category 5, which is not among",
        ),
        ('{"images": 3}', r"a\.json: "),
        ('{"images": [3]}', r"a\.json: "),
        ('{"images": [{"id": 1, "file_name": "\xff'.encode("latin-1"), r"a\.json is no JSON"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_named(tmp_path, content, text):
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "a.json").write_bytes(content)
    fails(text, file_root=str(tmp_path), annotations_file=str(tmp_path / "a.json"))


def test_wrong_shapes_are_named(write):
    one = [image(1, "i.jpg", 8, 6)]
    given = write(one, [thing(1, shape=[[1, 2, 3]])])
    fails(r"a\.json: a polygon of image 1 has 3 numbers", **given, polygon_masks=True)
    for shape, text in (
        ({"size": [5, 8], "counts": [3]}, r"size \[5, 8\], but the image is \[6, 8\]"),
        ({"size": [6, 8], "counts": [30, 30]}, "do not fit a picture of 8 × 6"),
        ({"size": [6, 8], "counts": [-3, 30]}, "do not fit"),
        ({"size": [6, 8], "counts": "6<n"}, "end within a number"),
        ({"size": [6, 8], "counts": "6 é"}, "the character ' '"),
    ):
        given = write(one, [thing(1, shape=shape)])
        fails(rf"i\.jpg.*{text}", SourceError, **given, pixelwise_masks=True)


def test_what_is_missing_is_named(write, tmp_path):
    given = write()
    fails(r"a\.json has no image 'x.jpg'", **given, images=["a.jpg", "x.jpg"])
    fails("no images are left", **given, images=["e.jpg"], skip_empty=True)
    fails("No such file.*none", file_root="", annotations_file=str(tmp_path / "none"))
    fails("cannot read .*e.jpg: No such file", SourceError, **{**given, "file_root": "/nowhere"})
    bare = write([{"id": 1, "file_name": "1.jpg"}], [])
    for need in ("ratio", "pixelwise_masks"):
        fails("image 1 has no 'width' and 'height'", **bare, **{need: True})
    fails("does not fit int32", **write([image(2**40, "b.jpg")], []), image_ids=True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"annotations_file": ""}, "needs the argument 'annotations_file'"),
        ({"polygon_masks": True, "pixelwise_masks": True}, "exclude each other"),
        ({"masks": True, "pixelwise_masks": True}, "exclude each other"),
        ({"preprocessed_annotations": "x"}, "'preprocessed_annotations' is not in this version"),
        ({"save_preprocessed_annotations": True}, "is not in this version"),
        ({"dump_meta_files": True}, "is not in this version"),
        ({"shard_id": 2}, "num_shards must be greater"),
    ],
)
def test_arguments_that_cannot_be_are_refused_where_they_are_written(arguments, text):
    with pytest.raises(ArgumentError, match=text):
        fn.readers.coco(**{"file_root": "", "annotations_file": "a", **arguments})


def test_the_classes_have_dalis_names(write):
    for form in (ops.readers.COCO, ops.COCOReader):
        with Pipeline(batch_size=1, num_threads=1) as pipe:
            outputs = form(**write(), image_ids=True, ltrb=True)()
            pipe.set_outputs(*outputs)
        assert pipe.run()[3].as_array().tolist() == [[5]]
        pipe.close()
