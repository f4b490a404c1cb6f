"""Helpers for tests: of forebay itself, of your operators and of your pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from forebay.batch import Batch, Sample
from forebay.operators._operator import Call, Operator, SampleError, as_outputs, discover
from forebay.operators._rng import Rng, node_key

Data = np.ndarray[Any, Any] | torch.Tensor | Sample


def run_operator(
    name: str | Operator,
    *inputs: Sequence[Data],
    device: str = "cpu",
    reference: bool = False,
    layout: str = "",
    seed: int = 0,
    batch_size: int | None = None,
    per_sample: dict[str, Sequence[Any]] | None = None,
    given: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Any:
    """Run one operator now, on a batch, without a pipeline.

    Args:
        name: the operator's name under ``fn``, or the operator.
        inputs: for each input a list with an array, tensor or Sample per sample.
        device: whose kernel is used.
        reference: use the defining body even where there is a faster kernel.
        layout: the layout of inputs that are not Samples.
        seed: of the random numbers.
        batch_size: for operators without inputs.
        per_sample: arguments with a value per sample: name → list of numpy arrays or numbers
            (Python floats are taken as float32, integers as int32).
        given: the others, constant; for names that are taken here, such as "layout".
        arguments: the same, where the name is free.

    Returns:
        A list of Samples; a tuple of such lists if the operator has several outputs.
    """
    op = discover()[name] if isinstance(name, str) else name
    per_sample = per_sample or {}
    arguments = {**(given or {}), **arguments}
    constants = {
        k: op.schema.argument(k).constant(v) for k, v in arguments.items() if v is not None
    }
    op.check({**constants, **per_sample})
    call = Call(op, constants, list(per_sample), "reference" if reference else device)
    batches = [[_sample(item, layout) for item in batch] for batch in inputs]
    values = [[_sample(_number(v), "") for v in column] for column in per_sample.values()]
    size = batch_size or len((batches + values)[0])
    if call.batch_level:
        given_batches = [Batch(b) for b in batches], [Batch(v) for v in values]
        try:
            result = call.run(*given_batches, Rng(seed), None, size)
        except SampleError as error:
            raise error.cause from None
        columns = [batch.samples for batch in as_outputs(result)]  # type: ignore[union-attr]
    else:
        rows = [
            as_outputs(
                call.run(
                    [b[i] for b in batches],
                    [v[i] for v in values],
                    Rng(node_key(seed, 0), row=i),
                    np.empty,
                )
            )
            for i in range(size)
        ]
        columns = [list(column) for column in zip(*rows, strict=True)]
    return columns[0] if len(columns) == 1 else tuple(columns)


def _sample(item: Data, layout: str) -> Sample:
    return item if isinstance(item, Sample) else Sample(item, layout)


def _number(value: Any) -> Any:
    if isinstance(value, np.ndarray | torch.Tensor | np.generic):
        return np.asarray(value)
    array = np.asarray(value)
    return array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))
