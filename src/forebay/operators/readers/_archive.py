"""Tar archives of samples, and index files of them: what the WebDataset format is made of.

Files that follow each other and share their name up to the first dot of its last part are the
components of one sample; the rest of the name is the component's extension. A name without a dot is
a sample of its own, whose extension is the whole name. Folders, links and names that begin with a
dot are passed over.

An index file is DALI's `wds2idx`'s: a line ``v1.2 <samples>``, then one for each sample, with
``<extension> <offset> <size> <name>`` for each component. Version 1.1 lacks the names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from forebay.errors import SourceError
from forebay.operators.readers._tar import members

_BLOCK = 512


class Component(NamedTuple):
    """One file of a sample: where its content lies in the archive."""

    extension: str
    offset: int
    size: int
    name: str


def find_samples(path: str) -> list[list[Component]]:
    """The samples of an archive, in order.

    Raises:
        OSError: it cannot be read.
        SourceError: it is no tar archive, a header in it is corrupt, or it is cut off.
    """
    samples: list[list[Component]] = []
    last: tuple[str, ...] = ()
    for name, offset, size in members(path):
        folder, _, base = name.rpartition("/")
        if base.startswith("."):
            continue
        stem, dot, extension = base.partition(".")
        key = (folder, stem) if dot else (name,)
        if key != last:
            samples.append([])
        last = key
        samples[-1].append(Component(extension if dot else name, offset, size, name))
    return samples


def parse_index(text: str, name: str) -> list[list[Component]]:
    """The samples that an index file lists. Raises SourceError if it is none."""
    head, *lines = text.split("\n")
    found = re.fullmatch(r"(v1\.[12]) ([1-9]\d*)\s*", head)
    if not found:
        raise SourceError(
            f"{name} is no index of an archive, in version v1.1 or v1.2: its first line is "
            f"{head[:40]!r}"
        )
    component = _WITH_NAME if found[1] == "v1.2" else _WITHOUT_NAME
    samples = [_components(line, component) for line in lines[: int(found[2])]]
    if not all(samples) or len(samples) < int(found[2]):
        line = next((i for i, sample in enumerate(samples) if not sample), len(samples))
        raise SourceError(
            f"{name}, line {line + 2}: it must be '<extension> <offset> <size> <name>' for each "
            "component of a sample, with offsets that are multiples of 512"
        )
    return samples


# A name may hold spaces; it ends with its extension, and the next component or the line's end
# follows.
_WITH_NAME = re.compile(r"(.*?) (\d+) (\d+) ((?:.*?\.)?\1)(?: (?=.*? \d+ \d+ )|$)")
_WITHOUT_NAME = re.compile(r"(.*?) (\d+) (\d+)()(?: |$)")


def _components(line: str, component: re.Pattern[str]) -> list[Component]:
    """The components of a sample; none if the line is malformed."""
    found = []
    place = 0
    line = line.rstrip("\r")
    while place < len(line):
        match = component.match(line, place)
        if match is None:
            return []
        offset, size = int(match[2]), int(match[3])
        if offset % _BLOCK or offset + size >= 1 << 63:
            return []
        found.append(Component(match[1], offset, size, match[4]))
        place = match.end()
    return found


def format_index(samples: Sequence[Sequence[Component]]) -> str:
    """An index file of these samples."""
    lines = (
        " ".join(f"{c.extension} {c.offset} {c.size} {c.name}" for c in sample)
        for sample in samples
    )
    return "".join(f"{line}\n" for line in (f"v1.2 {len(samples)}", *lines))
