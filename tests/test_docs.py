"""What the documents show runs as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE)
    assert found, f"the README has no section {title!r}"
    return found[1]


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder that has `pictures/` with two class folders of JPEG files."""
    rng = np.random.default_rng(0)
    for index in range(6):
        path = tmp_path / "pictures" / ("cat", "dog")[index % 2] / f"{index}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (60 + index, 80, 3), np.uint8)
        path.write_bytes(cv2.imencode(".jpg", pixels)[1].tobytes())
    return tmp_path


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_a_python_block_of_the_readme_runs_as_printed(number: int, pictures: Path) -> None:
    script = pictures / "script.py"
    script.write_text(blocks("python")[number], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=pictures, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "torch.Size([6, 3, 224, 224]) torch.float32 torch.Size([6])" in done.stdout


def test_the_readme_has_an_example_of_fifteen_lines() -> None:
    lines = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(lines) <= 15


def test_quick_start_has_two_blocks_of_one_command() -> None:
    commands = blocks("sh", section("Quick start"))
    assert [len(c.strip().splitlines()) for c in commands] == [1, 1]
    assert "forebay demo" in commands[0]
    assert "pytest" in commands[1]


@pytest.mark.skipif(os.name == "nt", reason="CI's script is for a POSIX shell")
def test_ci_runs_the_second_command_of_the_readme() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    line = next(line for line in script.splitlines() if line.startswith("command="))
    done = subprocess.run(
        ["bash", "-c", f'{line}; printf "%s" "$command"'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == blocks("sh", section("Quick start"))[1].strip()


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
