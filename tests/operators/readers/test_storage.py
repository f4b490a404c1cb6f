"""Remote files, through fsspec's file system in memory; local ones never meet it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from forebay import Pipeline, fn
from forebay.errors import SourceError
from forebay.operators.readers import _storage
from reading import read_ours

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def put(system, name, content):
    with system.open(f"memory://{name}", "wb") as file:
        file.write(content)


def test_class_folders_may_be_remote(memory):
    for name in ("train/a/1.jpg", "train/a/2.txt", "train/b/3.JPG", "train/4.jpg"):
        put(memory, name, name.encode())
    for root in ("memory://train", "memory://train/"):
        reading = read_ours("readers.file", 1, 2, file_root=root)
        (data, _), (labels, _) = reading.batches[0]
        assert [bytes(array) for array in data] == [b"train/a/1.jpg", b"train/b/3.JPG"]
        assert [array.tolist() for array in labels] == [[0], [1]]


def test_a_list_may_be_remote_and_is_relative_to_its_folder(memory, tmp_path):
    (tmp_path / "local").write_bytes(b"l")
    put(memory, "data/x/1", b"1")
    put(memory, "data/list.txt", f"x/1 5\n{tmp_path}/local 6\nmemory://data/x/1 7\n".encode())
    reading = read_ours("readers.file", 1, 3, file_list="memory://data/list.txt")
    assert [bytes(array) for array in reading.batches[0][0][0]] == [b"1", b"l", b"1"]
    assert reading.values(1) == [[5, 6, 7]]


def test_arrays_and_annotations_may_be_remote(memory):
    put(memory, "d/e/a.npy", b"")
    with memory.open("memory://d/e/a.npy", "wb") as file:
        np.save(file, np.arange(3))
    reading = read_ours("readers.numpy", 1, 1, file_root="memory://d")
    assert reading.batches[0][0][0][0].tolist() == [0, 1, 2]
    put(memory, "c/i.jpg", b"image")
    images = {"images": [{"id": 1, "file_name": "i.jpg"}]}
    put(memory, "c/a.json", json.dumps(images).encode())
    reading = read_ours(
        "readers.coco", 1, 1, file_root="memory://c", annotations_file="memory://c/a.json"
    )
    assert bytes(reading.batches[0][0][0][0]) == b"image"


def test_a_missing_remote_file_is_named(memory):
    with Pipeline(batch_size=1, num_threads=1) as pipe:
        pipe.set_outputs(*fn.readers.file(files=["memory://no/where"]))
    with pytest.raises(SourceError, match="cannot read memory://no/where"):
        pipe.run()
    pipe.close()


def test_an_unknown_protocol_is_named():
    with Pipeline(batch_size=1, num_threads=1) as pipe:
        pipe.set_outputs(*fn.readers.file(file_root="nonsense://a"))
    with pytest.raises(RuntimeError, match="nonsense"):
        pipe.build()


def test_parts_of_files_are_read(memory, tmp_path):
    put(memory, "f", bytes(range(100)))
    (tmp_path / "f").write_bytes(bytes(range(100)))
    for path in ("memory://f", str(tmp_path / "f")):
        assert _storage.read(path, 10, 3).tolist() == [10, 11, 12]
        assert _storage.read(path, 97).tolist() == [97, 98, 99]
        assert _storage.read(path, 200).tolist() == []
        with pytest.raises(ValueError, match=r"1 bytes too early: 4 bytes.*offset 97"):
            _storage.read(path, 97, 4)
        with _storage.open_file(path) as file:
            file.seek(5)
            assert file.read(2) == b"\5\6"


def test_what_is_read_may_be_written_to(memory, tmp_path):
    put(memory, "f", b"abc")
    (tmp_path / "f").write_bytes(b"abc")
    for path in ("memory://f", str(tmp_path / "f")):
        assert _storage.read(path).flags.writeable


def test_local_files_are_read_without_fsspec(tmp_path, monkeypatch):
    monkeypatch.setattr(_storage, "_remote", None)
    (tmp_path / "a").mkdir()
    (tmp_path / "a/1.jpg").write_bytes(b"1")
    (tmp_path / "list.txt").write_text("a/1.jpg 3")
    for arguments in ({"file_root": str(tmp_path)}, {"file_list": str(tmp_path / "list.txt")}):
        reading = read_ours("readers.file", 1, 1, **arguments)
        assert bytes(reading.batches[0][0][0][0]) == b"1"
