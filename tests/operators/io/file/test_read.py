from __future__ import annotations

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import Case

OP = "io.file.read"
CONTENT = np.random.default_rng(1).integers(0, 256, 70_000, dtype=np.uint8)


def path_bytes(path, dtype=np.uint8):
    return np.frombuffer(str(path).encode(), dtype)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ein Bild ä.bin"
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_the_bytes_of_the_file_come_out(path, dtype):
    (read,) = run_operator(OP, [path_bytes(path, dtype)])
    np.testing.assert_array_equal(read.array, CONTENT)
    assert read.array.dtype == np.uint8
    assert read.layout == ""


@pytest.mark.dali
@pytest.mark.parametrize("arguments", [{}, {"dont_use_mmap": True}])
def test_agrees_with_dali(path, arguments):
    paths = [path_bytes(path), path_bytes(f"file://{path}"), path_bytes(f"{path}\0\0")]
    Case(OP, [paths], arguments).check_dali()


def test_the_sample_is_named_by_its_path(path):
    (read,) = run_operator(OP, [path_bytes(path)])
    assert read.source == str(path)
    (image,) = run_operator("peek_image_shape", [_image(path)])
    assert image.source == str(path)


def _image(path):
    from encoded import picture, pillow

    path.write_bytes(pillow(picture(), "PNG"))
    return run_operator(OP, [path_bytes(path)])[0]


def test_a_path_relative_to_the_working_directory_is_taken(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    (read,) = run_operator(OP, [path_bytes(path.name)])
    np.testing.assert_array_equal(read.array, CONTENT)


def test_an_empty_file_gives_no_bytes(tmp_path):
    (tmp_path / "empty").touch()
    (read,) = run_operator(OP, [path_bytes(tmp_path / "empty")])
    assert read.shape == (0,)


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match="nowhere"):
        run_operator(OP, [path_bytes("/nowhere/a.jpg")])


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        run_operator(OP, [path_bytes(tmp_path)])


@pytest.mark.parametrize(
    "path", [np.zeros((2, 3), np.uint8), np.zeros(4, np.int32), np.zeros(4, np.bool_)]
)
def test_what_is_no_vector_of_bytes_is_refused(path):
    with pytest.raises(ValueError, match="vector of uint8"):
        run_operator(OP, [path])


def test_an_empty_path_is_refused():
    with pytest.raises(ValueError, match="empty"):
        run_operator(OP, [np.zeros(3, np.uint8)])


def test_bytes_that_are_not_utf8_are_refused():
    with pytest.raises(ValueError, match="UTF-8"):
        run_operator(OP, [np.array([0xFF, 0xFE], np.uint8)])
