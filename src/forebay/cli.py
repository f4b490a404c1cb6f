"""The `forebay` command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import forebay
from forebay.define.names import missing_operators
from forebay.index import index
from forebay.operators._operator import discover

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Feed a training loop: DALI's programming model and PyTorch proxy, in open Python.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forebay {forebay.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


app.command()(index)


@app.command(context_settings={"allow_interspersed_args": False})  # options end at SCRIPT
def run(
    script: Annotated[str, typer.Argument(metavar="SCRIPT")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGUMENTS")] = None,
    *,
    module: Annotated[
        bool, typer.Option("-m", help="SCRIPT is the name of a module or package.")
    ] = False,
) -> None:
    """Run a Python script that imports nvidia.dali, unchanged, on forebay.

    What stands after SCRIPT is given to it.
    """
    from forebay.compat.script import run, run_module

    if not module:
        if not Path(script).is_file():
            raise typer.BadParameter(f"there is no file '{script}'", param_hint="SCRIPT")
        return run(Path(script), arguments or ())
    try:
        run_module(script, arguments or ())
    except ImportError as error:
        _fail(f"cannot run the module {script}: {error}")


@app.command()
def operators() -> None:
    """List the operators, with the devices that they run on, and those of DALI that are missing."""
    known = {name: op for name, op in discover().items() if not op.hidden}
    for name, op in sorted(known.items()):
        older = "" if name == op.name else f"  (fn.{op.name})"
        typer.echo(f"fn.{name}  {op.where()}{older}")
    missing = missing_operators()
    typer.echo(f"\nIn DALI 2.4.0, but not in forebay {forebay.__version__} ({len(missing)}):")
    for name in missing:
        typer.echo(f"fn.{name}")


@app.command()
def demo(
    data: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            metavar="DIR",
            help="Your own pictures: one folder for each class. Default: pictures drawn for you.",
        ),
    ] = None,
    pictures: Annotated[
        int, typer.Option(min=10, help="How many to draw, or to take of DIR at most.")
    ] = 960,
    epochs: Annotated[int, typer.Option(min=1, help="Of each of the two trainings.")] = 8,
    workers: Annotated[
        int, typer.Option(min=0, help="DataLoader workers, and threads of the pipeline.")
    ] = min(8, os.cpu_count() or 1),
    batch_size: Annotated[int, typer.Option(min=1)] = 32,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Train a small network twice, fed by forebay and by plain DataLoader workers, and compare."""
    try:
        from forebay.demo.comparison import compare
        from forebay.demo.loaders import BadPictures, Options
    except ModuleNotFoundError as error:
        if error.name != "torchvision":
            raise
        _fail("the demo needs torchvision: pip install torchvision")
    from rich.console import Console

    try:
        compare(Console(), data, pictures, epochs, Options(batch_size, workers, seed))
    except (BadPictures, forebay.errors.ForebayError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("stopped", 130)


def _fail(message: str, code: int = 1) -> NoReturn:
    typer.echo(f"forebay: {message}", err=True)
    raise typer.Exit(code)


def main() -> None:
    """Run the command."""
    app()
