"""The demo through its command."""

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from forebay import __version__
from forebay.cli import app
from forebay.demo.pictures import PATTERNS, cache_folder, draw, drawn_pictures

pytest.importorskip("torchvision", reason="the demo needs torchvision")


def forebay(*arguments: object, cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "forebay", *map(str, arguments)],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "LOCALAPPDATA": str(cache)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def write_picture(path: Path, size: tuple[int, int] = (40, 50)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    path.write_bytes(cv2.imencode(path.suffix, pixels)[1].tobytes())


def test_it_trains_twice_and_shows_both_side_by_side(tmp_path: Path) -> None:
    done = forebay("demo", "--pictures", 16, "--epochs", 1, "--workers", 1, cache=tmp_path)
    assert done.returncode == 0, done.stderr
    for text in (
        "CPU ms/image",
        "forebay",
        "plain workers",
        "images/s",
        "waiting for data",
        "accuracy",
        "time",
    ):
        assert text in done.stdout
    [grid] = tmp_path.rglob("augmented-samples.png")
    assert str(grid) in done.stdout
    assert cv2.imread(str(grid)).shape == (4 * 96, 8 * 96, 3)
    assert "Traceback" not in done.stderr


def test_it_trains_on_a_folder_of_the_users(tmp_path: Path) -> None:
    for index in range(12):
        name = f"{index}{('.jpg', '.png', '.webp')[index % 3]}"
        write_picture(tmp_path / "mine" / "ab"[index % 2] / name, (30 + index, 50))
    done = forebay(
        "demo", "--data", tmp_path / "mine", "--epochs", 1, "--workers", 0, "--batch-size", 4,
        "--seed", 3, cache=tmp_path / "cache",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "10 pictures of 2 classes to train on, 2 held out" in done.stdout


def bad_folder(root: Path, kind: str) -> Path:
    root.mkdir()
    if kind == "pictures without class folders":
        write_picture(root / "1.jpg")
    elif kind == "class folders without pictures":
        for name in "ab":
            (root / name).mkdir()
            (root / name / "notes.txt").write_text("no picture")
    elif kind == "one class folder":
        write_picture(root / "a" / "1.jpg")
    elif kind == "too few pictures":
        for name in "ab":
            write_picture(root / name / "1.jpg")
    elif kind == "missing":
        root.rmdir()
    return root


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("empty", "one folder for each class"),
        ("pictures without class folders", "one folder for each class"),
        ("class folders without pictures", "one folder for each class"),
        ("one class folder", "one class folder only"),
        ("too few pictures", "2 pictures; the demo needs 5 or more"),
        ("missing", "does not exist"),
    ],
)
def test_a_folder_that_cannot_be_trained_on_is_refused(
    kind: str, message: str, tmp_path: Path
) -> None:
    folder = bad_folder(tmp_path / "bad", kind)
    result = CliRunner().invoke(app, ["demo", "--data", str(folder)], env={"COLUMNS": "1000"})
    assert result.exit_code not in (0, None)
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_all_pictures_that_cannot_be_decoded_are_listed_before_the_training(tmp_path: Path) -> None:
    for index in range(12):
        write_picture(tmp_path / "mine" / "ab"[index % 2] / f"{index:02}.jpg")
    damaged = [tmp_path / "mine" / name for name in ("a/02.jpg", "b/05.jpg", "b/09.jpg")]
    damaged[0].write_bytes(b"no picture")
    damaged[1].write_bytes(damaged[1].read_bytes()[:-900])
    damaged[2].write_bytes(b"")
    done = forebay("demo", "--data", tmp_path / "mine", "--workers", 0, cache=tmp_path / "cache")
    assert done.returncode == 1
    assert "3 of the 12 pictures cannot be decoded" in done.stderr
    shown = [line.split(":")[0].strip() for line in done.stderr.splitlines()[1:]]
    assert shown == list(map(str, damaged))
    assert "epochs" not in done.stdout  # nothing was trained


def test_a_picture_depends_on_the_seed_alone_and_is_like_a_photograph() -> None:
    for name in PATTERNS:
        content = draw(name, np.random.default_rng(5))
        assert content == draw(name, np.random.default_rng(5))
        assert content != draw(name, np.random.default_rng(6))
        height, width, _ = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR).shape
        assert 300 <= min(height, width) <= max(height, width) <= 600
        assert 30_000 < len(content) < 150_000


def test_pictures_are_drawn_once_and_only_whole_sets_are_kept(tmp_path: Path) -> None:
    drawn = []

    def fail_at_the_third() -> None:
        drawn.append(1)
        if len(drawn) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drawn_pictures(10, 0, tmp_path, fail_at_the_third)
    assert not list(tmp_path.iterdir())

    folder = drawn_pictures(10, 0, tmp_path)
    assert len(list(folder.rglob("*.jpg"))) == 10
    again = []
    assert drawn_pictures(10, 0, tmp_path, lambda: again.append(1)) == folder
    assert not again


def test_the_cache_is_where_the_system_keeps_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/where")
    assert cache_folder() == Path("/some/where/forebay")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("~/.cache/forebay").expanduser()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == Path("~/Library/Caches/forebay").expanduser()
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert cache_folder() == Path("/local/forebay")


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.strip() == f"forebay {__version__}"
