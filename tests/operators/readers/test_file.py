from __future__ import annotations

import numpy as np
import pytest

from forebay import Pipeline, fn, ops
from forebay.errors import ArgumentError, OperatorError, SourceError
from reading import check, read_ours

OP = "readers.file"
NAMES = [
    *("b/2.jpg", "b/1.JPG", "a/x.png", "a/sub/y.jpg", "a/10.jpg", "a/9.jpg", "a/é.jpg"),
    *("c/z.txt", "B/q.jpeg", "top.jpg", "e/.hidden.jpg", ".h/v.jpg", "s p/a b.jpg"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Class folders; each file holds its own name."""
    root = tmp_path_factory.mktemp("root")
    for name in NAMES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (root / "empty").mkdir()
    (root / "a/folder.jpg").mkdir()
    (root / "link").symlink_to(root / "b")
    (root / "c/l.jpg").symlink_to(root / "b/2.jpg")
    return root


def names(reading):
    return [bytes(array).decode() for batch in reading.batches for array in batch[0][0]]


@pytest.mark.dali
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"case_sensitive_filter": True},
        {"file_filters": ["*.txt"]},
        {"file_filters": ["x*", "*.txt"]},
        {"file_filters": "[12].jpg"},
        {"file_filters": ["*.jpg", "*", "x*"]},
        {"file_filters": ["[!1]*.jpg"]},
        {"file_filters": ["[^1]*.jpg"]},
        {"file_filters": ["?.jpg"]},
        {"file_filters": ["\\x.png"]},
        {"dir_filters": ["a", "c"]},
        {"dir_filters": ["[ab]"]},
        {"dir_filters": ["[ab]"], "case_sensitive_filter": True},
        {"dir_filters": ["a", "?", "*"]},
    ],
)
def test_folders_are_classes_as_in_dali(root, arguments):
    check(OP, 2, 12, file_root=str(root), **arguments)
    check(OP, 2, 12, file_root=f"{root}/", **arguments)


def test_labels_count_the_folders_that_pass_in_order(root):
    reading = read_ours(OP, 1, 5, file_root=str(root), dir_filters=["[abe]"])
    assert names(reading) == ["B/q.jpeg", "a/10.jpg", "a/9.jpg", "a/x.png", "a/é.jpg"]
    assert reading.values(1) == [[0, 1, 1, 1, 1]]


@pytest.mark.dali
def test_given_files_have_their_number_or_label(root):
    here = ["b/2.jpg", "a/x.png", str(root / "s p/a b.jpg")]
    check(OP, 2, 4, file_root=str(root), files=here)
    check(OP, 2, 4, file_root=str(root), files=here, labels=[-5, 7, 2**31 - 1])
    check(OP, 2, 4, files=[str(root / "a/x.png")], file_filters=["*.jpg"])


@pytest.mark.dali
@pytest.mark.parametrize(
    "text",
    [
        "b/2.jpg 3\na/x.png 4\n",
        "b/2.jpg 3\r\na/x.png 4",
        "b/2.jpg   3  \n\n  \na/x.png\t4",
        "s p/a b.jpg 7\nb/2.jpg 0\nb/2.jpg 1\n",
        "a/é.jpg 1\n",
    ],
)
def test_a_list_has_a_path_and_a_label_in_each_line(root, tmp_path, text):
    (tmp_path / "list.txt").write_bytes(text.encode())
    check(OP, 2, 3, file_root=str(root), file_list=str(tmp_path / "list.txt"))
    (root / "list.txt").write_bytes(text.encode())
    check(OP, 1, 3, file_list=str(root / "list.txt"))


@pytest.mark.parametrize(
    "line", ["b/2.jpg", "b/2.jpg -3", "b/2.jpg 1.5", "b/2.jpg x", "5", "# c", f"b/2.jpg {2**31}"]
)
def test_a_line_without_a_label_is_named(root, tmp_path, line):
    path = tmp_path / "list.txt"
    path.write_text(f"a/x.png 0\n{line}\n")
    with pytest.raises(RuntimeError, match=r"readers\.file at .*list\.txt, line 2: .*label"):
        read_ours(OP, 1, 1, file_root=str(root), file_list=str(path))


def broken(**arguments):
    with Pipeline(batch_size=1, num_threads=1) as pipe:
        pipe.set_outputs(*fn.readers.file(**arguments))
    pipe.build()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "needs 'file_root', 'files' or 'file_list'"),
        ({"files": []}, "'files' is an empty list"),
        ({"files": ["a"], "file_list": "b"}, "not by both"),
        ({"files": ["a", "b"], "labels": [1]}, "1 labels were given for 2 files"),
        ({"file_root": "a", "labels": [1]}, "'labels' belong to 'files'"),
        ({"files": ["a"], "labels": [2**31]}, "int32, but got 2147483648"),
        ({"file_root": "a", "file_filters": []}, "'file_filters' is an empty list"),
        ({"file_root": "a", "dir_filters": []}, "'dir_filters' is an empty list"),
        ({"file_root": "a", "shard_id": 2, "num_shards": 2}, "greater than shard_id"),
        ({"file_rot": "a"}, "did you mean 'file_root'"),
    ],
)
def test_arguments_that_cannot_be_are_refused_where_they_are_written(arguments, text):
    with pytest.raises(ArgumentError, match=text):
        fn.readers.file(**arguments)


def test_a_missing_root_is_named_with_the_users_line(tmp_path):
    with pytest.raises(RuntimeError, match=r"test_file\.py:.*No such file.*/nowhere"):
        broken(file_root=str(tmp_path / "nowhere"))
    with pytest.raises(RuntimeError, match=r"No such file.*list\.txt"):
        broken(file_list=str(tmp_path / "list.txt"))


def test_a_root_without_classes_says_what_is_there(tmp_path, root):
    (tmp_path / "a.jpg").write_text("a")
    with pytest.raises(RuntimeError, match=r"no files were found in .*0 folders and 1 files"):
        broken(file_root=str(tmp_path))
    with pytest.raises(RuntimeError, match="no files were found"):
        broken(file_root=str(root), file_filters=["*.nothing"])
    (tmp_path / "list.txt").write_text("\n \n")
    with pytest.raises(RuntimeError, match=r"no files are listed in .*list\.txt"):
        broken(file_list=str(tmp_path / "list.txt"))


def test_a_file_that_is_gone_fails_its_row_alone_and_is_named(root, tmp_path):
    gone = str(tmp_path / "gone.jpg")
    with Pipeline(batch_size=2, num_threads=2) as pipe:
        files = [str(root / "b/2.jpg"), gone, str(root / "a/x.png")]
        pipe.set_outputs(*fn.readers.file(files=[*files, files[0]]))
    with pytest.raises(OperatorError) as caught:
        pipe.run()
    error = caught.value
    assert isinstance(error, SourceError)
    assert (error.operator, error.sample, error.source) == ("readers.file", 1, gone)
    assert "test_file.py:" in str(error)
    assert f"cannot read {gone}: No such file" in str(error)
    assert isinstance(error.__cause__.__cause__, FileNotFoundError)
    assert pipe.run()[1].as_array()[:, 0].tolist() == [2, 3]
    pipe.close()


def test_an_error_further_on_names_the_file(root):
    with Pipeline(batch_size=1, num_threads=1) as pipe:
        data, _ = fn.readers.file(files=[str(root / "b/2.jpg")])
        pipe.set_outputs(fn.decoders.image(data))
    with pytest.raises(OperatorError, match=r"decoders\.image.*b/2\.jpg"):
        pipe.run()
    pipe.close()


def test_empty_files_are_empty_vectors(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    reading = read_ours(OP, 1, 2, files=[str(tmp_path / "empty")])
    assert [array.shape for array in reading.batches[0][0][0]] == [(0,), (0,)]


def test_the_class_forms_and_old_names_are_the_same_operator(root):
    files = [str(root / "b/2.jpg"), str(root / "a/x.png")]
    for form in (ops.readers.File, ops.FileReader):
        with Pipeline(batch_size=2, num_threads=1) as pipe:
            reader = form(files=files, random_shuffle=False, prefetch_queue_depth=2, name="r")
            pipe.set_outputs(*reader())
        assert pipe.run()[1].as_array().tolist() == [[0], [1]]
        assert pipe.epoch_size("r") == 2
        pipe.close()


def test_an_output_that_sees_whole_batches_can_follow_a_reader(root):
    files = [str(root / "b/2.jpg"), str(root / "a/x.png")]
    with Pipeline(batch_size=2, num_threads=2) as pipe:
        _, label = fn.readers.file(files=files)
        pipe.set_outputs(fn.permute_batch(label, indices=[1, 0]))
    assert pipe.run()[0].as_array().tolist() == [[1], [0]]
    pipe.close()


def test_readers_and_external_sources_go_together(root):
    files = [str(root / "b/2.jpg"), str(root / "a/x.png"), str(root / "c/z.txt")]
    with Pipeline(batch_size=2, num_threads=2, prefetch_queue_depth=3) as pipe:
        _, label = fn.readers.file(files=files)
        source = [np.zeros((2, 1), np.int32), np.ones((2, 1), np.int32)]
        pipe.set_outputs(label, fn.external_source(source=source, cycle="raise"))
    for epoch in range(3):
        for number, expected in enumerate([[0, 1], [2, 0]]):
            labels, fed = pipe.run()
            assert fed.as_array()[0, 0] == number
            if epoch == 0:
                assert labels.as_array()[:, 0].tolist() == expected
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()
    assert pipe.run()[0].as_array()[:, 0].tolist() == [0, 1]  # 12 samples of 3 were used
    pipe.close()
