"""Tar archives for tests."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

FOLDER = None


class Link(str):
    """A link to another member."""

    __slots__ = ()


def write_archive(
    path: Path,
    members: Sequence[str | tuple[str, bytes | Link | None]],
    format: int = tarfile.GNU_FORMAT,
) -> str:
    """An archive of these files; a file of which only the name is given holds its name."""
    with tarfile.open(path, "w", format=format) as archive:
        for member in members:
            name, content = member if isinstance(member, tuple) else (member, member.encode())
            info = tarfile.TarInfo(name)
            if content is FOLDER:
                info.type = tarfile.DIRTYPE
            elif isinstance(content, Link):
                info.type, info.linkname = tarfile.SYMTYPE, content
            else:
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return str(path)
