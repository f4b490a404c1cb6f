"""Whole graphs through DALI and through forebay: one function that writes a graph, run in both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

import forebay

from oracle import EXACT, Tolerance

Column = Sequence[np.ndarray]


@dataclass(frozen=True)
class Output:
    """One output of one run: the arrays of its samples, and their layout."""

    arrays: list[np.ndarray]
    layout: str


def run_graph(
    library: ModuleType,
    write: Callable[..., Any],
    *inputs: Column,
    layout: str = "",
    **options: Any,
) -> list[Output]:
    """Run ``write(fn, types, math, *nodes)`` once in `library` (forebay or nvidia.dali).

    Args:
        library: the library.
        write: returns a node, or a tuple of outputs.
        inputs: for each node the arrays of its samples.
        layout: of the inputs that have as many axes.
        options: arguments of the pipeline.
    """
    size = len(inputs[0]) if inputs else 1
    pipe = library.Pipeline(**{"batch_size": size, "num_threads": 2, "device_id": None, **options})
    with pipe:
        nodes = [
            library.fn.external_source(
                source=[list(column)],
                cycle=True,
                layout=layout if layout and np.ndim(column[0]) == len(layout) else None,
            )
            for column in inputs
        ]
        outputs = write(library.fn, library.types, library.math, *nodes)
        pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    return [
        Output([np.array(batch.at(i)) for i in range(len(batch))], batch.layout())
        for batch in pipe.run()
    ]


def check_graph(
    write: Callable[..., Any],
    *inputs: Column,
    layout: str = "",
    tolerance: Tolerance = EXACT,
    **options: Any,
) -> None:
    """The graph gives in forebay what it gives in DALI: numbers, types, shapes and layouts."""
    from nvidia import dali

    expected = run_graph(dali, write, *inputs, layout=layout, **options)
    got = run_graph(forebay, write, *inputs, layout=layout, **options)
    assert len(got) == len(expected)
    for number, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        assert ours.layout == theirs.layout, f"output {number}: layout"
        assert len(ours.arrays) == len(theirs.arrays), f"output {number}: batch size"
        for i, (a, b) in enumerate(zip(ours.arrays, theirs.arrays, strict=True)):
            tolerance.check(a, b, f"output {number}, sample {i}")
