"""The demo from its first line to its last."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rich.console import Console

from forebay.demo.loaders import (
    Options,
    Pictures,
    augmented_samples,
    find_pictures,
    forebay_loader,
    held_out_batches,
    plain_loader,
    refuse_damaged,
)
from forebay.demo.pictures import cache_folder, drawn_pictures
from forebay.demo.report import progress_bars, save_grid, table
from forebay.demo.training import Outcome, Progress, Training, one_thread, warm_up


def compare(
    console: Console, folder: Path | None, most: int, epochs: int, options: Options
) -> None:
    """Train twice, and print what each took.

    Args:
        console: to print on.
        folder: the user's class folders; None to draw pictures.
        most: how many pictures to draw, or to take of the folder.
        epochs: of each training.
        options: of the loaders.

    Raises:
        BadPictures: the folder cannot be trained on, or pictures in it cannot be decoded.
    """
    if folder is None:
        folder = _drawn(console, most)
    pictures = find_pictures(folder, most)
    refuse_damaged(pictures, options)  # and read all, so that both find them in the system's cache
    console.print(
        f"{len(pictures.training)} pictures of {len(pictures.classes)} classes to train on, "
        f"{len(pictures.held_out)} held out; epochs: {epochs}, workers: {options.workers}",
        highlight=False,
    )
    samples = cache_folder() / "augmented-samples.png"
    save_grid(augmented_samples(pictures, options, columns=8, rows=4), samples)
    with one_thread():
        outcomes = _outcomes(console, pictures, epochs, options)
    console.print(table(outcomes))
    console.print(
        "Plain workers use Pillow and torchvision.transforms.v2; forebay's pipeline runs in the "
        "training process. The two took turns, an epoch each.\nAugmented samples: ",
        end="",
    )
    console.print(str(samples), soft_wrap=True, highlight=False)


def _drawn(console: Console, count: int) -> Path:
    with progress_bars(console) as bars:
        bar = bars.add_task("drawing pictures", total=count)
        folder = drawn_pictures(count, 0, cache_folder(), partial(bars.advance, bar))
        bars.update(bar, completed=count)
    return folder


def _outcomes(
    console: Console, pictures: Pictures, epochs: int, options: Options
) -> dict[str, Outcome]:
    classes = len(pictures.classes)
    held_out = held_out_batches(pictures, options)
    warm_up(held_out[0], classes)
    ways = {"forebay": forebay_loader, "plain workers": plain_loader}
    with progress_bars(console) as bars, ExitStack() as stack:
        trainings = {}
        for name, way in ways.items():
            bar = bars.add_task(name, total=epochs * len(pictures.training))

            def show(state: Progress, bar: int = bar) -> None:
                bars.update(bar, completed=state.pictures, state=state)  # type: ignore[arg-type]

            training = Training(way(pictures, options), classes, options.seed, show)
            trainings[name] = stack.enter_context(training)
        for _ in range(epochs):
            for training in trainings.values():  # what else the machine does slows both alike
                training.epoch()
    return {name: training.outcome(held_out) for name, training in trainings.items()}
