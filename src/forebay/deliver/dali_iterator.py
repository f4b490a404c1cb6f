"""DALI's PyTorch iterators: a list with a dict of tensors for each pipeline.

The arguments are DALI's, and so are the batches, but for this: with `reader_name`, DROP and PARTIAL
begin every epoch with a batch, whether or not the reader pads. DALI runs on into the next epoch
there, and so gives samples twice or not at all (docs/decisions/0009-epochs-are-exact.md).
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Self

import torch

from forebay.batch import Batch
from forebay.deliver.last_batch import (
    Epochs,
    LastBatchPolicy,
    epochs_of_readers,
    first_rows,
)
from forebay.deliver.lockstep import Lockstep, Outputs, align, check_pipelines
from forebay.deliver.pipeline import Pipeline
from forebay.deliver.ragged import assemble
from forebay.errors import ArgumentError, ForebayError

_log = logging.getLogger("forebay")
_SAME = {
    "epoch_size": "size value",
    "number_of_shards": "`num_shards` argument set",
    "pad_last_batch": "`pad_last_batch` argument set",
    "stick_to_shard": "`stick_to_shard` argument set",
}


class DALIGenericIterator:
    """Epochs of one or several pipelines, which run in step.

    Args:
        pipelines: one, or a list: one for each GPU.
        output_map: the name of each output.
        size: the number of samples in an epoch; negative: the sources end it by StopIteration.
        reader_name: the reader that says what an epoch is, instead of `size`.
        auto_reset: True or "yes": the epoch's end begins the next one. False, None or "no": `reset`
            or `iter` does.
        fill_last_batch: deprecated. True is the policy FILL, False is PARTIAL.
        dynamic_shape: accepted; the shape may always change from batch to batch.
        last_batch_padded: where `size` is given: the pipeline fills its last batch itself.
        last_batch_policy: what becomes of the last batch of an epoch.
        prepare_first_batch: take the first batch now rather than when it is asked for.

    Raises:
        ArgumentError: arguments that exclude each other, or pipelines that do not go together.
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        self.output_map = _names(output_map)
        given = pipelines or ()
        self._pipelines = list(given) if isinstance(given, Sequence) else [given]
        _check_pipelines(self._pipelines, self.output_map)
        if not isinstance(last_batch_policy, LastBatchPolicy):
            raise ArgumentError(
                f"last_batch_policy is a LastBatchPolicy, not {last_batch_policy!r}"
            )
        if fill_last_batch is not None:
            warnings.warn(
                "fill_last_batch is deprecated; use last_batch_policy",
                DeprecationWarning,
                stacklevel=2,
            )
            fill = fill_last_batch
            last_batch_policy = LastBatchPolicy.FILL if fill else LastBatchPolicy.PARTIAL
        self.batch_size = self._pipelines[0].max_batch_size
        self._auto_reset = _auto_reset(auto_reset)
        self._given_size = size
        self._padded = last_batch_padded
        epochs = self._epochs(last_batch_policy, size, reader_name)
        if epochs is not None and epochs.length(0) == 0:
            raise ArgumentError(
                f"last_batch_policy=DROP leaves no batch: an epoch has {epochs.smallest} samples, "
                f"a batch {self.batch_size}"
            )
        self._steps = Lockstep(self._pipelines, epochs, seekable=reader_name is not None)
        self._first: Outputs | None = None
        if prepare_first_batch:
            try:
                self._first = self._steps.take()
            except StopIteration:
                self._first = None  # an empty epoch, as is seen when a batch is asked for

    def _epochs(self, policy: LastBatchPolicy, size: int, reader_name: str | None) -> Epochs | None:
        if reader_name is not None:
            return self._epochs_of_readers(policy, size, reader_name)
        if not isinstance(size, int) or size == 0:
            raise ArgumentError(f"size is a number of samples, or negative, but got {size!r}")
        if size > 0:
            runs_on = policy is LastBatchPolicy.FILL and not self._padded
            count = len(self._pipelines)
            return Epochs(policy, self.batch_size, size, runs_on=runs_on, pipelines=count)
        if len(self._pipelines) > 1:
            raise ArgumentError("Negative size is supported only for a single pipeline")
        return None

    def _epochs_of_readers(self, policy: LastBatchPolicy, size: int, reader_name: str) -> Epochs:
        for name, given in (("size", size != -1), ("last_batch_padded", self._padded)):
            if given:
                raise ArgumentError(f"When reader_name is provided, {name} should not be set")
        metas = [pipeline.reader_meta(reader_name) for pipeline in self._pipelines]
        for key, what in _SAME.items():
            if any(meta[key] != metas[0][key] for meta in metas):
                raise ArgumentError(
                    f"Reader Operator should have the same {what} in all the pipelines, but they "
                    f"are {[meta[key] for meta in metas]}"
                )
        self._padded = bool(metas[0]["pad_last_batch"])
        aligned = self._padded or policy is not LastBatchPolicy.FILL
        if aligned:
            for pipeline in self._pipelines:
                align(pipeline, reader_name)
        return epochs_of_readers(policy, self.batch_size, metas, aligned=aligned)

    # ── where it is ──────────────────────────────────────────────────────────────────────────────

    @property
    def size(self) -> int:
        """The number of samples in an epoch, with those that fill the last batch; -1: unknown."""
        epochs = self._steps.epochs
        if epochs is None or epochs.shard_ids is None:
            return self._given_size
        if epochs.policy is LastBatchPolicy.DROP:
            return epochs.smallest
        return epochs.largest if self._padded else self._steps.length * self.batch_size

    def __len__(self) -> int:
        """The number of batches in this epoch; 0 if it is not known."""
        return 0 if self._steps.epochs is None else self._steps.length

    def reset(self) -> None:
        """Begin the next epoch after the end of this one. In the middle of one: no effect."""
        if self._first is not None:
            return
        if self._steps.over:
            self._steps.advance()
        elif self._steps.step:
            _log.warning("the iterator was reset in the middle of an epoch, which goes on")

    def checkpoints(self) -> list[bytes]:
        """A checkpoint of each pipeline, for the place after the last batch that was handed out.

        Pipelines that are given them (`Pipeline(checkpoint=…)`), in a new iterator, go on there.
        """
        ahead = self._first is not None
        place = self._steps.place(ahead=ahead)
        return [pipeline.checkpoint(ahead=ahead, iterator=place) for pipeline in self._pipelines]

    def __iter__(self) -> Self:
        self.reset()
        return self

    def __next__(self) -> list[dict[str, Any]]:
        outputs, self._first = self._first, None
        try:
            outputs = outputs or self._steps.take()
        except StopIteration:
            if self._auto_reset:
                self.reset()
            raise
        return [
            self._dict([self._own(batch, number) for batch in batches])
            for number, batches in enumerate(outputs)
        ]

    def next(self) -> list[dict[str, Any]]:
        """The same as ``next(iterator)``."""
        return next(self)

    def _own(self, batch: Batch, number: int) -> Batch:
        """The rows of a pipeline's batch that belong to the epoch."""
        rows = self._steps.rows(batch, number)
        if rows > len(batch):
            raise ForebayError(
                f"a batch has {len(batch)} samples where {rows} are wanted. Variable batch size is "
                f"not supported by the iterator when reader_name is provided or iterator size is "
                f"set explicitly"
            )
        return first_rows(batch, rows)

    def _dict(self, outputs: list[Batch]) -> dict[str, Any]:
        return {
            name: assemble(batch, "error", index)
            for index, (name, batch) in enumerate(zip(self.output_map, outputs, strict=True))
        }


class DALIClassificationIterator(DALIGenericIterator):
    """`DALIGenericIterator` for pipelines with two outputs, named "data" and "label".

    Args:
        pipelines, size, reader_name, auto_reset, fill_last_batch, dynamic_shape, last_batch_padded,
            last_batch_policy, prepare_first_batch: as there.
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        super().__init__(
            pipelines,
            ["data", "label"],
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )


class DALIRaggedIterator(DALIGenericIterator):
    """`DALIGenericIterator` for outputs whose samples may differ in shape.

    Args:
        pipelines, output_map, size, reader_name, auto_reset, fill_last_batch, dynamic_shape,
            last_batch_padded, last_batch_policy, prepare_first_batch: as there.
        output_types: for each output `DENSE_TAG` (a tensor; the default), `SPARSE_LIST_TAG` (a list
            of tensors) or `SPARSE_COO_TAG` (a sparse tensor that has every element of the samples).
    """

    DENSE_TAG = "dense"
    SPARSE_LIST_TAG = "sparse_list"
    SPARSE_COO_TAG = "sparse_coo"

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        output_types: Sequence[str] | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        tags = (self.DENSE_TAG, self.SPARSE_LIST_TAG, self.SPARSE_COO_TAG)
        output_map = _names(output_map)
        self._types = [self.DENSE_TAG] * len(output_map) if output_types is None else output_types
        if len(self._types) != len(output_map) or not set(self._types) <= set(tags):
            raise ArgumentError(
                f"output_types has DENSE_TAG, SPARSE_LIST_TAG or SPARSE_COO_TAG for each of the "
                f"{len(output_map)} outputs, but is {output_types!r}"
            )
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )

    def _dict(self, outputs: list[Batch]) -> dict[str, Any]:
        return {
            name: self._form(batch, tag, index)
            for index, (name, tag, batch) in enumerate(
                zip(self.output_map, self._types, outputs, strict=True)
            )
        }

    def _form(self, batch: Batch, tag: str, index: int) -> Any:
        if tag == self.SPARSE_LIST_TAG:
            return list(batch)
        return _sparse(batch) if tag == self.SPARSE_COO_TAG else assemble(batch, "error", index)


def feed_ndarray(data: Any, arr: torch.Tensor, cuda_stream: Any = None) -> torch.Tensor:
    """Copy an output of a pipeline, or one sample of it, into a tensor.

    Args:
        data: the batch, or a tensor.
        arr: where it goes; of the same shape and element type.
        cuda_stream: accepted; the copy is made in the current stream.

    Returns:
        `arr`.

    Raises:
        ArgumentError: shape or element type differ.
    """
    tensor = data.as_tensor() if isinstance(data, Batch) else torch.as_tensor(data)
    if tensor.dtype != arr.dtype or tensor.shape != arr.shape:
        raise ArgumentError(
            f"the data is {tensor.dtype} {list(tensor.shape)}, but the target is {arr.dtype} "
            f"{list(arr.shape)}"
        )
    return arr.copy_(tensor)


def _names(output_map: Sequence[str]) -> list[str]:
    if not isinstance(output_map, Iterable):
        raise ArgumentError(f"output_map is a list of names, but got {output_map!r}")
    return list(output_map)


def _check_pipelines(pipelines: Sequence[Pipeline], output_map: Sequence[str]) -> None:
    check_pipelines(pipelines)
    sizes = [pipeline.max_batch_size for pipeline in pipelines]
    if len(set(sizes)) > 1:
        raise ArgumentError(f"All pipelines should have the same batch size set, not {sizes}")
    if len(set(output_map)) != len(output_map):
        raise ArgumentError(f"output_map names should be distinct, but are {list(output_map)}")
    for pipeline in pipelines:
        if pipeline.num_outputs != len(output_map):
            raise ArgumentError(
                f"output_map has a name for each output, but there are {pipeline.num_outputs} "
                f"outputs and the names {list(output_map)}"
            )


def _auto_reset(given: str | bool | None) -> bool:
    if given is True or given == "yes":
        return True
    if given is False or given is None or given == "no":
        return False
    raise ArgumentError(f"auto_reset is True, False, 'yes' or 'no', but got {given!r}")


def _sparse(batch: Batch) -> torch.Tensor:
    """All elements of the samples, also zeros, in a tensor of the largest extents."""
    places, values = [], []
    for row, sample in enumerate(batch):
        inside = torch.ones(sample.shape, dtype=torch.bool, device=sample.device).nonzero()
        places.append(torch.cat([inside.new_full((len(inside), 1), row), inside], 1))
        values.append(sample.flatten())
    if not values:
        return batch.as_tensor().to_sparse()
    extents = [max(column) for column in zip(*batch.shape(), strict=True)]
    return torch.sparse_coo_tensor(
        torch.cat(places).T, torch.cat(values), (len(batch), *extents), check_invariants=False
    )
