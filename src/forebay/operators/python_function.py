"""The user's own function as an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from forebay.batch import Batch, Sample
from forebay.errors import ArgumentError
from forebay.operators._operator import SamplesFailedError, operator
from forebay.operators._schema import BatchSize
from forebay.types import Between, Strings, data_type

Array = np.ndarray[Any, Any]


def _outputs(given: Mapping[str, Any]) -> int:
    return int(given.get("num_outputs", 1))


def _check(given: Mapping[str, Any]) -> None:
    if "function" in given and not callable(given["function"]):
        raise ArgumentError(f"'function' must be callable, but is {given['function']!r}")
    layouts, outputs = given.get("output_layouts"), _outputs(given)
    if isinstance(layouts, list | tuple) and len(layouts) > outputs:
        raise ArgumentError(f"{len(layouts)} 'output_layouts' for {outputs} outputs are too many")


@operator(ordered=True, outputs=_outputs, check=_check, devices=("cpu",))
def python_function(
    *inputs: Batch,
    function: Callable[..., Any],
    num_outputs: Annotated[int, Between(0, 256)] = 1,
    batch_processing: bool = False,
    output_layouts: str | Strings | None = None,
    batch_size: BatchSize,
) -> tuple[Batch, ...]:
    """Call a Python function on numpy arrays. Calls happen one by one, in the samples' order.

    The function may change the arrays that it gets, and keep those that it returns: both sides
    have copies.

    Args:
        function: is called with an array per input and returns an array per output, several as a
            tuple. With `num_outputs=0` it returns None.
        num_outputs: how many arrays it returns.
        batch_processing: call it once a batch, with a list of arrays per input; it returns a list
            of arrays per output.
        output_layouts: one layout for all outputs, or a list of the first outputs' layouts.

    Returns:
        `num_outputs` batches.

    Raises:
        TypeError: the function returned something else than numpy arrays of numbers.
        ValueError: it returned more or fewer outputs, or arrays, than it should have, or an array
            that does not fit its layout.
        Exception: what the function raises, as it is. The other samples are not affected.
    """
    columns = [[sample.array.copy() for sample in batch.samples] for batch in inputs]
    results: list[list[Array]]
    causes: dict[int, Exception] = {}
    if batch_processing:
        returned = _tuple(function(*columns), num_outputs)
        results = [[_copied(array) for array in _column(c, batch_size)] for c in returned]
    else:
        rows = []
        calls = zip(*columns, strict=True) if columns else [()] * batch_size
        for position, arrays in enumerate(calls):
            try:
                rows.append([_copied(array) for array in _tuple(function(*arrays), num_outputs)])
            except Exception as error:
                causes[position] = error
        results = [[row[output] for row in rows] for output in range(num_outputs)]
    sources = [sample.source for sample in inputs[0].samples] if inputs else [None] * batch_size
    good = [source for position, source in enumerate(sources) if position not in causes]
    outputs = tuple(
        Batch([_sample(*item, layout) for item in zip(column, good, strict=True)])
        for column, layout in zip(results, _layouts(output_layouts, num_outputs), strict=True)
    )
    if causes:
        raise SamplesFailedError(causes, outputs)
    return outputs


def _layouts(given: str | Strings | None, outputs: int) -> list[str]:
    if isinstance(given, str):
        return [given] * outputs
    listed = list(given or ())
    return listed + [""] * (outputs - len(listed))


def _tuple(returned: Any, outputs: int) -> tuple[Any, ...]:
    """What the function returned, as a tuple with an item per output."""
    items = returned if isinstance(returned, tuple) else (returned,)
    if returned is None and outputs == 0:
        return ()
    if len(items) != outputs:
        what = "a tuple of" if isinstance(returned, tuple) else "the function returned"
        raise ValueError(
            f"the function must return {outputs} outputs (several as a tuple), but "
            f"{what} {len(items)}: {_show(returned)}"
        )
    return items


def _column(column: Any, batch_size: int) -> Sequence[Any]:
    if not isinstance(column, list | tuple):
        raise TypeError(
            "with batch_processing the function must return a list of arrays per output, but got "
            f"{_show(column)}"
        )
    if len(column) != batch_size:
        raise ValueError(
            f"the function returned {len(column)} arrays for a batch of {batch_size} samples"
        )
    return column


def _copied(array: Any) -> Array:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise TypeError(
            "the function must return numpy arrays of numbers (np.asarray(…) makes one), but got "
            f"{_show(array)}"
        )
    return np.array(array, data_type(array.dtype).numpy, order="C")


def _sample(array: Array, source: str | None, layout: str) -> Sample:
    if layout and len(layout) != array.ndim:
        raise ValueError(f"the layout {layout!r} does not fit an array with {array.ndim} axes")
    return Sample(array, layout, source)


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {list(value.shape)}"
    text = repr(value)
    return f"{text if len(text) < 80 else text[:77] + '…'} ({type(value).__name__})"
