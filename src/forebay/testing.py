"""Helpers for tests: of forebay itself, of your operators and of your pipelines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from forebay.batch import Batch, Sample
from forebay.define.call import check_count, find_argument, find_operator
from forebay.define.node import DataNode, Node
from forebay.deliver.feed import fed_batch
from forebay.deliver.pipeline import Pipeline
from forebay.deliver.pipeline_def import check_pipeline
from forebay.errors import ArgumentError, SourceError
from forebay.execute.eager import run_now
from forebay.execute.run import EndOfData, Place
from forebay.operators._operator import Call, Operator, SamplesFailedError, as_outputs
from forebay.operators._rng import Rng, node_key

Data = np.ndarray[Any, Any] | torch.Tensor | Sample | float


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
        inputs: for each input a list with an array, tensor, Sample or number per sample.
            Python's floats are taken as float32, integers as int32.
        device: whose kernel is used.
        reference: use the defining body even where there is a faster kernel.
        layout: the layout of inputs that are not Samples.
        seed: of the random numbers.
        batch_size: for operators without inputs.
        per_sample: arguments with a value per sample: name → list of the same.
        given: the others, constant; for names that are taken here, such as "layout".
        arguments: the same, where the name is free.

    Returns:
        A list of Samples; a tuple of such lists if the operator has several outputs.

    Raises:
        DefinitionError: there is no such operator, or it cannot be called so.
        Exception: what the operator itself raises.
    """
    op = name if isinstance(name, Operator) else find_operator(str(name))
    per_sample = per_sample or {}
    arguments = {**(given or {}), **arguments}
    try:
        _check(op, inputs, device, per_sample)
        constants = {
            k: find_argument(op, k).constant(v) for k, v in arguments.items() if v is not None
        }
        op.check({**constants, **per_sample})
        call = Call(op, constants, list(per_sample), "reference" if reference else device)
        batches = [[_sample(item, layout) for item in batch] for batch in inputs]
        values = [[_sample(v, "") for v in column] for column in per_sample.values()]
        size = _size(batch_size, [*batches, *values])
    except ArgumentError as error:
        raise type(error)(f"{op.name}: {error}") from error.__cause__
    if call.batch_level:
        given_batches = [Batch(b) for b in batches], [Batch(v) for v in values]
        try:
            result = call.run(*given_batches, Rng(seed), None, size)
        except SamplesFailedError as error:
            raise next(iter(error.causes.values())) from None
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


Inspect = Callable[[str, Sequence[Sample | None]], object]


def run_pipeline(
    pipeline: Pipeline,
    *,
    inspect: Inspect | None = None,
    epoch: int = 0,
    batch: int = 0,
    **inputs: Any,
) -> tuple[Batch, ...]:
    """Run one batch of a pipeline now, operator by operator, in the calling thread.

    So a debugger stops where the work is done, and results between the operators can be looked at.
    They are what the pipeline itself gives for this place. Its sources give their next batch; where
    the pipeline itself is does not change otherwise.

    Args:
        pipeline: the pipeline.
        inspect: called for each node that is run, with its name and its samples; with the name of
            each output if there are several. A sample is None if it did not take a node's branch.
        epoch, batch: the numbers by which random numbers are drawn and sources are asked.
        inputs: data for sources that are fed by hand, by name.

    Raises:
        ArgumentError: `pipeline` is no pipeline.
        StopIteration: a source has no more data.
        OperatorError, SourceError: as from `Pipeline.run`; the first operator that fails.
    """
    check_pipeline(pipeline)
    nodes = pipeline.inputs()
    for name in {*nodes, *inputs}:
        if name not in nodes or name not in inputs:
            raise SourceError(f"inputs are {sorted(nodes)}, but got data for {sorted(inputs)}")
    size = pipeline.max_batch_size
    fed = {nodes[k]: fed_batch(k, nodes[k], data, None, size) for k, data in inputs.items()}

    def show(node: Node, number: int, samples: Sequence[Sample | None]) -> None:
        if inspect is not None:
            inspect(DataNode(node, number).name, samples)

    try:
        return run_now(pipeline.plan, Place(epoch, batch), fed, size, show)
    except EndOfData:
        raise StopIteration("a source has no more data") from None


def _check(op: Operator, inputs: Sequence[Any], device: str, per_sample: Mapping[str, Any]) -> None:
    schema = op.schema
    if schema.level == "source":
        raise ArgumentError("is a source of data, which runs in a pipeline only")
    if device not in ("cpu", "cuda"):
        raise ArgumentError(f"device is 'cpu' or 'cuda', but got {device!r}")
    check_count(schema, len(inputs))
    for what, column in [("an input", c) for c in inputs] + list(per_sample.items()):
        if isinstance(column, str) or not isinstance(column, Sequence):
            raise ArgumentError(f"{what} is a list with an entry per sample, but got {column!r}")


def _size(given: int | None, columns: Sequence[Sequence[Any]]) -> int:
    """The batch's size. Raises ArgumentError for no samples, or for another number of them."""
    sizes = [len(column) for column in columns] + ([] if given is None else [given])
    if not sizes:
        raise ArgumentError("has no inputs: give the batch_size")
    if len(set(sizes)) > 1 or not sizes[0]:
        raise ArgumentError(f"all inputs have one number of samples, at least 1, but got {sizes}")
    return sizes[0]


def _sample(item: Any, layout: str) -> Sample:
    if isinstance(item, Sample):
        return item
    if isinstance(item, np.ndarray | torch.Tensor):
        return Sample(item, layout)
    array = np.asarray(item)
    if array.dtype.kind not in "biuf":
        raise ArgumentError(f"a sample is an array, a tensor or a number, but got {item!r}")
    if not isinstance(item, np.generic):
        array = array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))
    return Sample(array, layout)
