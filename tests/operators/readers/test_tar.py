"""Headers of archives: Python's tarfile and GNU tar are what they are compared with."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from archives import FOLDER, Link, write_archive
from forebay.errors import SourceError
from forebay.operators.readers._tar import members

FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
NAMES = ["a", "a b.jpg", "d/e/f", "ü/ö.cls", "\udcff.bin", "." * 90, f"{'p' * 100}/{'n' * 90}"]
LONG = ["x" * 101, "y" * 600, f"{'p' * 200}/q", "ü" * 80]


def expected(path):
    with tarfile.open(path, "r:") as archive:
        return [(m.name, m.offset_data, m.size) for m in archive if m.isreg()]


@pytest.mark.parametrize("format", FORMATS)
def test_members_are_those_that_tarfile_finds(tmp_path, format):
    names = NAMES if format == tarfile.USTAR_FORMAT else NAMES + LONG
    draw = random.Random(1)
    files = [(name, draw.randbytes(draw.choice([0, 1, 511, 512, 513]))) for name in names]
    files[1:1] = [("folder", FOLDER), ("link", Link("a"))]
    path = write_archive(tmp_path / "a.tar", files, format=format)
    assert list(members(path)) == expected(path)
    assert [member.name for member in members(path)] == names


@pytest.mark.skipif(shutil.which("tar") is None, reason="there is no tar program")
@pytest.mark.parametrize("format", ["v7", "oldgnu", "gnu", "ustar", "posix"])
def test_archives_of_the_tar_program_are_read(tmp_path, format):
    source = tmp_path / "source"
    source.mkdir()
    for name in ["a.jpg", "b c.cls", "ü.png", *([] if format in ("v7", "ustar") else ["n" * 150])]:
        (source / name).write_text(name)
    (source / "hard").hardlink_to(source / "a.jpg")
    (source / "soft").symlink_to("a.jpg")
    path = str(tmp_path / "a.tar")
    subprocess.run(["tar", f"--format={format}", "-cf", path, "-C", source, "."], check=True)
    assert list(members(path)) == expected(path)
    assert len(expected(path)) >= 3


def test_a_sparse_file_is_refused(tmp_path):
    if shutil.which("tar") is None:
        pytest.skip("there is no tar program")
    with (tmp_path / "holes").open("wb") as file:
        file.seek(1 << 20)
        file.write(b"x")
    if (tmp_path / "holes").stat().st_blocks * 512 > 1 << 19:
        pytest.skip("the file system makes no sparse files")
    for kind in ("gnu", "posix"):
        path = tmp_path / "a.tar"
        command = ["tar", "-S", f"--format={kind}", "-cf", path, "-C", tmp_path, "holes"]
        subprocess.run(command, check=True)
        with pytest.raises(SourceError, match="is stored as a sparse file"):
            list(members(str(path)))


def test_sizes_beyond_what_octal_digits_hold_are_read(tmp_path):
    for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        info = tarfile.TarInfo("big")
        info.size = 9 << 30
        header = info.tobuf(kind)
        path = tmp_path / "a.tar"
        path.write_bytes(header)
        os.truncate(path, len(header) + info.size)  # with a hole, so it takes no room
        assert list(members(str(path))) == [("big", len(header), info.size)]


def test_checksums_of_signed_bytes_are_accepted_as_tarfile_does(tmp_path):
    info = tarfile.TarInfo("ü.jpg")
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[148:156] = b" " * 8
    signed = sum(byte - 256 if byte > 127 else byte for byte in header)
    header[148:156] = b"%06o\0 " % signed
    path = tmp_path / "a.tar"
    path.write_bytes(header)
    assert list(members(str(path))) == expected(path) == [("ü.jpg", 512, 0)]


def test_random_damage_is_found_or_harmless(tmp_path):
    path = write_archive(tmp_path / "a.tar", ["a.jpg", ("x" * 150, b"1" * 600), "b.jpg"])
    data = Path(path).read_bytes()
    found = list(members(path))
    headers = [0, 1024, 2048, 3584]  # of a, of the long name, of its file and of b
    draw = random.Random(1)
    for _ in range(300):
        damaged = bytearray(data)
        damaged[draw.choice(headers) + draw.randrange(512)] ^= 1 << draw.randrange(8)
        (tmp_path / "b.tar").write_bytes(damaged)
        try:
            result = list(members(str(tmp_path / "b.tar")))
        except SourceError:
            continue
        assert [member[1:] for member in result] == [member[1:] for member in found]


@pytest.mark.parametrize(
    ("field", "text"), [(b"-0000000010\0", "cut off"), (b"9999999999 \0", "is no octal number")]
)
def test_a_size_that_is_none_is_refused(tmp_path, field, text):
    header = bytearray(tarfile.TarInfo("a").tobuf())
    header[124:136] = field
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path = tmp_path / "a.tar"
    path.write_bytes(header)
    with pytest.raises(SourceError, match=text):
        list(members(str(path)))


@pytest.mark.parametrize("record", [b"10 path=a.jp", b"0 path=a\n", b"-5 path=a\n", b"x path=a\n"])
def test_an_extended_header_that_is_malformed_is_refused(tmp_path, record):
    info = tarfile.TarInfo("ext")
    info.type, info.size = tarfile.XHDTYPE, len(record)
    path = tmp_path / "a.tar"
    path.write_bytes(info.tobuf() + record.ljust(512, b"\0") + tarfile.TarInfo("a").tobuf())
    with pytest.raises(SourceError, match="header at byte 0"):
        list(members(str(path)))
