"""``forebay index``: index files of TFRecord files and of WebDataset archives.

They are what DALI's `tfrecord2idx` and `wds2idx` make, so both read them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from forebay.errors import ForebayError, SourceError
from forebay.operators.readers import _archive, _records

_ENDINGS = (".tar", ".tfrecord", ".tfrecords")


def index(
    files: Annotated[
        list[Path], typer.Argument(help="TFRecord files and tar archives.", metavar="FILE...")
    ],
    output_dir: Annotated[
        Path | None,
        typer.Option("--output-dir", "-o", metavar="DIR", help="Default: beside each file."),
    ] = None,
) -> None:
    """Make index files of TFRecord files and WebDataset archives, so that pipelines start faster.

    The index of train.tar or train.tfrecord is train.idx; any other name gets .idx added. Existing
    indices are replaced.
    """
    targets = {file: _target(file, output_dir) for file in files}
    if len(set(targets.values())) < len(targets):
        _complain("several files would have the same index; make them one by one with -o")
        raise typer.Exit(2)
    failed = False
    for file, target in targets.items():
        try:
            count, what, text = _index_of(file)
            _write(target, text)
        except (ForebayError, OSError) as error:
            _complain(str(error))
            failed = True
        else:
            typer.echo(f"{target}: {count} {what}")
    if failed:
        raise typer.Exit(1)


def _target(file: Path, folder: Path | None) -> Path:
    ending = ".idx" if file.suffix in _ENDINGS else f"{file.suffix}.idx"
    target = file.with_suffix(ending)
    return target if folder is None else folder / target.name


def _index_of(file: Path) -> tuple[int, str, str]:
    """How many records or samples a file has, which of both, and its index."""
    if not _is_archive(file):
        places = _records.find_records(str(file))
        return len(places), "records", _records.format_index(places)
    samples = _archive.find_samples(str(file))
    if not samples:
        raise SourceError(f"{file} holds no samples")
    return len(samples), "samples", _archive.format_index(samples)


def _is_archive(file: Path) -> bool:
    with file.open("rb") as opened:
        return file.suffix == ".tar" or opened.read(262)[257:] == b"ustar"


def _write(target: Path, text: str) -> None:
    """Write it so that nobody ever sees half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_bytes(text.encode("utf-8", "surrogateescape"))
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _complain(message: str) -> None:
    typer.echo(f"forebay: {message}", err=True)
