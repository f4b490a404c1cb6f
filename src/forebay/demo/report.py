"""What the demo shows: progress bars, a table, a picture of samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Table
from rich.text import Text

from forebay.demo.training import Outcome
from forebay.demo.training import Progress as State


class _StateColumn(ProgressColumn):
    """Speed, loss and waiting of the training that a bar stands for."""

    def render(self, task: Task) -> Text:
        state: State | None = task.fields.get("state")
        if state is None:
            return Text("")
        return Text(
            f"{state.speed:4.0f} images/s  loss {state.loss:.2f}  waiting {state.wait_share:4.0%}"
        )


def progress_bars(console: Console) -> Progress:
    """Bars for tasks; one with a field `state` shows a training."""
    return Progress(
        TextColumn("{task.description:18}"),
        BarColumn(bar_width=14),
        TextColumn("{task.percentage:3.0f}%"),
        _StateColumn(),
        console=console,
    )


def table(outcomes: Mapping[str, Outcome]) -> Table:
    """Trainings side by side."""
    shown = Table(title="The same training, fed in two ways")
    shown.add_column("")
    for name in outcomes:
        shown.add_column(name, justify="right")
    rows: dict[str, Any] = {
        "CPU ms/image": lambda o: "–" if (c := o.cpu_per_picture) is None else f"{c * 1000:.2f}",
        "images/s": lambda o: f"{o.progress.speed:.0f}",
        "waiting for data": lambda o: f"{o.progress.wait_share:.0%}",
        "accuracy": lambda o: f"{o.accuracy:.0%}",
        "time": lambda o: f"{o.progress.seconds:.1f} s",
    }
    for title, cell in rows.items():
        shown.add_row(title, *(cell(outcome) for outcome in outcomes.values()))
    return shown


def save_grid(samples: Any, path: Path) -> None:
    """Write samples (rows × columns × height × width × RGB) as one PNG."""
    grid = samples.permute(0, 2, 1, 3, 4).flatten(0, 1).flatten(1, 2).numpy()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode(".png", grid[..., ::-1])[1].tobytes())
