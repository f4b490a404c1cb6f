from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archives import FOLDER, Link, write_archive
from forebay.cli import app
from records import example, write_records


def index(*arguments):
    return CliRunner().invoke(app, ["index", *map(str, arguments)])


def dali(script, *arguments):
    """Run one of DALI's scripts, as a user would."""
    program = Path(sys.executable).with_name(script)
    subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL)


EXAMPLES = [example({"label": [n], "image": [b"x" * 1000 * n]}) for n in range(5)]
MEMBERS = [
    ("d", FOLDER),
    *("d/a.jpg", "d/a.cls", "d/b.cls", "d/.hidden", "d/b.jpg", "c d.jpg", "c d.cls", ".top"),
    *("ü.png", "ü.CLS", "README", "e.seg.png", "e.jpg", "v.1/f.jpg", "g", "x/h.", "x/h.jpg"),
    ("l.jpg", Link("e.jpg")),
    *(("i.jpg", b""), "i.cls", "j.jpg", "k.jpg", "j.cls"),
]


@pytest.mark.dali
def test_the_index_of_records_is_that_of_dalis_script(tmp_path):
    path, _ = write_records(tmp_path / "a.tfrecord", EXAMPLES)
    dali("tfrecord2idx", path, tmp_path / "dali.idx")
    assert index(path, "-o", tmp_path / "ours").exit_code == 0
    ours = tmp_path / "ours" / "a.idx"
    assert ours.read_bytes() == (tmp_path / "dali.idx").read_bytes()


@pytest.mark.dali
@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_the_index_of_an_archive_is_that_of_dalis_script(tmp_path, format):
    members = [name for name in MEMBERS if name != "g"]  # one letter without a dot: it drops them
    path = write_archive(tmp_path / "a.tar", members, format=format)
    dali("wds2idx", path, tmp_path / "dali.idx")
    assert index(path).exit_code == 0
    assert (tmp_path / "a.idx").read_bytes() == (tmp_path / "dali.idx").read_bytes()


@pytest.mark.dali
def test_a_long_name_in_a_pax_archive_is_as_in_dalis_script(tmp_path):
    members = ["x" * 150 + ".jpg", "x" * 150 + ".cls"]
    path = write_archive(tmp_path / "a.tar", members, format=tarfile.PAX_FORMAT)
    dali("wds2idx", path, tmp_path / "dali.idx")
    assert index(path).exit_code == 0
    assert (tmp_path / "a.idx").read_bytes() == (tmp_path / "dali.idx").read_bytes()


def test_the_offset_of_a_file_with_a_long_name_is_that_of_its_content(tmp_path):
    """DALI's script gives that of the name, so that its reader reads the name as the content."""
    name = "x" * 150 + ".jpg"
    path = write_archive(tmp_path / "a.tar", [(name, b"content")])
    index(path)
    _, offset, size, _ = (tmp_path / "a.idx").read_text().splitlines()[1].split(" ")
    content = Path(path).read_bytes()[int(offset) :][: int(size)]
    assert content == b"content"


def test_the_index_lies_beside_the_file_under_its_name(tmp_path):
    records, _ = write_records(tmp_path / "train-00001-of-00002", EXAMPLES)
    dotted, _ = write_records(tmp_path / "val.v1.tfrecords", EXAMPLES)
    archive = write_archive(tmp_path / "x.y.tar", ["a.jpg"])
    for made in tmp_path.glob("*.idx"):
        made.unlink()
    result = index(records, dotted, archive)
    assert result.exit_code == 0
    made = {path.name for path in tmp_path.glob("*.idx")}
    assert made == {"train-00001-of-00002.idx", "val.v1.idx", "x.y.idx"}
    assert f"{tmp_path / 'x.y.idx'}: 1 samples" in result.stdout.replace("\n", "")


def test_an_archive_is_known_by_its_content_whatever_its_name(tmp_path):
    path = write_archive(tmp_path / "data", ["a.jpg"])
    assert index(path).exit_code == 0
    assert (tmp_path / "data.idx").read_text() == "v1.2 1\njpg 512 5 a.jpg\n"


def test_an_existing_index_is_replaced_and_nothing_else_is_left(tmp_path):
    path = write_archive(tmp_path / "a.tar", ["a.jpg"])
    (tmp_path / "a.idx").write_text("old")
    assert index(path).exit_code == 0
    assert {file.name for file in tmp_path.iterdir()} == {"a.tar", "a.idx"}
    assert (tmp_path / "a.idx").read_text().startswith("v1.2")


def test_a_bad_file_is_named_and_the_others_are_done(tmp_path):
    cut, _ = write_records(tmp_path / "cut.tfrecord", EXAMPLES)
    Path(cut).write_bytes(Path(cut).read_bytes()[:-1])
    (tmp_path / "cut.idx").unlink()
    other = tmp_path / "text"
    other.write_text("neither of both")
    empty = write_archive(tmp_path / "empty.tar", [("d", FOLDER)])
    good = write_archive(tmp_path / "good.tar", ["a.jpg"])
    result = index(cut, other, empty, tmp_path / "gone.tar", good)
    assert result.exit_code == 1
    for text in ("cut.tfrecord, record at byte", "text, record at byte 0", "gone.tar"):
        assert text in result.stderr
    assert "empty.tar holds no samples" in result.stderr
    assert {file.name for file in tmp_path.glob("*.idx")} == {"good.idx"}


def test_two_files_with_one_index_are_refused(tmp_path):
    records, _ = write_records(tmp_path / "a.tfrecord", EXAMPLES)
    archive = write_archive(tmp_path / "a.tar", ["a.jpg"])
    result = index(records, archive)
    assert result.exit_code == 2
    assert "the same index" in result.stderr


def test_a_name_that_is_not_utf_8_is_written_as_it_is(tmp_path):
    path = write_archive(tmp_path / "a.tar", [("\udcff.jpg", b"1")])
    assert index(path).exit_code == 0
    assert (tmp_path / "a.idx").read_bytes() == b"v1.2 1\njpg 512 1 \xff.jpg\n"
