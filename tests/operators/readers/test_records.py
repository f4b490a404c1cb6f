"""Damage to TFRecord files and to indices of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay import Pipeline, fn, tfrecord
from forebay.errors import GraphError, SourceError
from records import example, write_records


def write(folder, *examples, name="a.tfrecord"):
    return write_records(folder / name, examples)


def run(path, count=1, **arguments):
    pipe = Pipeline(1, 1, None, prefetch_queue_depth=1)
    with pipe:
        features = {"label": tfrecord.FixedLenFeature([1], tfrecord.int64)}
        made = fn.readers.tfrecord(path=path, features=features, **arguments)
        pipe.set_outputs(*made.values())
    pipe.build()
    for _ in range(count):
        pipe.run()


def damage(path, place):
    data = bytearray(Path(path).read_bytes())
    data[place] ^= 4
    Path(path).write_bytes(data)


@pytest.mark.parametrize("place", [12, 20, 29, 30, 33])
def test_damaged_data_is_found_where_it_is(tmp_path, place):
    path, _ = write(tmp_path, *(example({"label": [n]}) for n in range(3)))
    damage(path, 34 + place)
    with pytest.raises(SourceError, match=r"a\.tfrecord, record at byte 34: its data does not fit"):
        run(path, count=2)


def test_a_damaged_record_does_not_affect_those_before_and_after(tmp_path):
    path, _ = write(tmp_path, *(example({"label": [n]}) for n in range(3)))
    damage(path, 34 + 20)
    pipe = Pipeline(1, 1, None)
    with pipe:
        features = {"label": tfrecord.FixedLenFeature([1], tfrecord.int64)}
        pipe.set_outputs(*fn.readers.tfrecord(path=path, features=features).values())
    assert pipe.run()[0].at(0).tolist() == [0]
    with pytest.raises(SourceError):
        pipe.run()
    assert pipe.run()[0].at(0).tolist() == [2]


@pytest.mark.parametrize("place", [0, 7, 8, 11])
@pytest.mark.parametrize("indexed", [False, True])
def test_a_damaged_length_is_found_where_it_is(tmp_path, place, indexed):
    path, index = write(tmp_path, *(example({"label": [n]}) for n in range(3)))
    damage(path, 34 + place)
    error = SourceError if indexed else GraphError
    with pytest.raises(error, match=r"a\.tfrecord, record at byte 34: its length does not fit"):
        run(path, count=2, index_path=index if indexed else None)


@pytest.mark.parametrize("left", [1, 11, 12, 20, 33])
def test_a_file_that_is_cut_off_is_refused(tmp_path, left):
    path, index = write(tmp_path, *(example({"label": [n]}) for n in range(3)))
    with Path(path).open("r+b") as file:
        file.truncate(68 + left)
    with pytest.raises(GraphError, match=r"a\.tfrecord, record at byte 68: it is cut off"):
        run(path)
    with pytest.raises(SourceError, match=r"a\.tfrecord, record at byte 68: .*too early"):
        run(path, index_path=index, count=3)


def test_an_index_of_another_file_is_found_out(tmp_path):
    path, _ = write(tmp_path, *(example({"label": [n]}) for n in range(3)))
    _, other = write(tmp_path, example({"label": [1, 2]}), name="b.tfrecord")
    with pytest.raises(SourceError, match="byte 0: it has 34 bytes, but 35 in the index"):
        run(path, index_path=other)


@pytest.mark.parametrize("text", ["hello\n", "0\n", "0 34 7\n", "0 -34\n", "0 34\n\n34 34\n"])
def test_an_index_file_that_is_none_is_refused(tmp_path, text):
    path, index = write(tmp_path, example({"label": [1]}))
    (tmp_path / "a.idx").write_text(text)
    with pytest.raises(GraphError, match=r"a\.idx is no index of a TFRecord file"):
        run(path, index_path=index)


def test_an_index_that_reaches_far_beyond_the_file_takes_no_memory(tmp_path):
    path, index = write(tmp_path, example({"label": [1]}))
    Path(index).write_text(f"0 {1 << 50}\n")
    with pytest.raises(SourceError, match="too early"):
        run(path, index_path=index)
