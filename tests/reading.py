"""The same reader in DALI and in forebay, batch after batch."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

import forebay

from oracle import deprecations_hidden, to_dali


@dataclass(frozen=True)
class Reading:
    """What a reader gave: for each batch and output the arrays and the layout; and its sizes."""

    batches: list[list[tuple[list[np.ndarray], str]]]
    meta: dict[str, int]
    epoch_size: int

    def values(self, output: int = 0) -> list[list[int]]:
        """The first element of each sample of an output."""
        return [[int(array.flat[0]) for array in batch[output][0]] for batch in self.batches]


def read(
    library: ModuleType,
    operator: str,
    count: int,
    batch_size: int,
    *,
    resets: Collection[int] = (),
    seed: int = 1,
    depth: int = 2,
    **arguments: Any,
) -> Reading:
    """`count` batches of a reader, with `Pipeline.reset` before those in `resets`."""
    pipe = library.Pipeline(
        batch_size=batch_size,
        num_threads=2,
        device_id=None,
        seed=seed,
        prefetch_queue_depth=depth,
    )
    if library is not forebay:
        arguments = {name: to_dali(value) for name, value in arguments.items()}
    with pipe, deprecations_hidden():
        function = functools.reduce(getattr, operator.split("."), library.fn)
        outputs = function(name="reader", **arguments)
        outputs = list(outputs.values()) if isinstance(outputs, dict) else outputs
        pipe.set_outputs(*(outputs if isinstance(outputs, list | tuple) else (outputs,)))
    pipe.build()
    batches = []
    for number in range(count):
        if number in resets:
            pipe.reset()
        batches.append(
            [
                ([np.array(batch.at(i)) for i in range(len(batch))], batch.layout())
                for batch in pipe.run()
            ]
        )
    return Reading(batches, dict(pipe.reader_meta("reader")), pipe.epoch_size("reader"))


def read_ours(operator: str, count: int, batch_size: int, **arguments: Any) -> Reading:
    """`count` batches of forebay's reader."""
    return read(forebay, operator, count, batch_size, **arguments)


def check(operator: str, count: int, batch_size: int, **arguments: Any) -> Reading:
    """Forebay gives what DALI gives, exactly. Returns it."""
    from nvidia import dali

    expected = read(dali, operator, count, batch_size, **arguments)
    got = read(forebay, operator, count, batch_size, **arguments)
    compare(got, expected)
    return got


def compare(got: Reading, expected: Reading) -> None:
    """Both readers gave the same, exactly."""
    assert got.meta == expected.meta
    assert got.epoch_size == expected.epoch_size
    for number, (ours, theirs) in enumerate(zip(got.batches, expected.batches, strict=True)):
        for output, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            what = f"batch {number}, output {output}"
            assert a[1] == b[1], f"{what}: layout"
            for x, y in zip(a[0], b[0], strict=True):
                assert x.dtype == y.dtype, what
                assert x.shape == y.shape, what
                np.testing.assert_array_equal(x, y, err_msg=what)
