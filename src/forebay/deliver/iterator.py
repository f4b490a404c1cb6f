"""Epochs of a pipeline as a PyTorch loop wants them: `for images, labels in Iterator(pipeline)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay.batch import Batch
from forebay.deliver.last_batch import (
    Epochs,
    LastBatchPolicy,
    epochs_of_readers,
    filled,
    first_rows,
)
from forebay.deliver.lockstep import Lockstep, align, check_pipelines
from forebay.deliver.pipeline import Pipeline
from forebay.deliver.ragged import Ragged, assemble
from forebay.errors import ArgumentError, ForebayError
from forebay.operators._source import ReaderMeta


class Iterator:
    """The epochs of a pipeline: each `for` loop over it is one, and has every sample once.

    A batch is a tuple with a tensor for each output of the pipeline, in their order. Leaving a loop
    early and beginning another one begins the next epoch. A batch that was handed out never changes
    afterwards.

    With a reader an epoch is a pass over its shard. All shards have the same number of batches, so
    ranks stay in step; where shards differ in size by a row, a rank's last batch may have none.
    With sources of other kinds an epoch ends where they raise StopIteration.

    Args:
        pipeline: what runs.
        reader_name: the reader that says what an epoch is. Needed if there are several that differ.
        size: the number of samples in an epoch, for sources without an end, or to have a `len`.
        last_batch: "partial" gives the rows that there are, "fill" repeats the last sample until
            the batch is full, "drop" leaves an incomplete batch out. Or a `LastBatchPolicy`.
        ragged: what becomes of outputs whose samples differ in shape: "error", "list", "pad"
            (a tuple of data and lengths) or "nested".

    Raises:
        ArgumentError: arguments that exclude each other, or a reader that is not there.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        reader_name: str | None = None,
        size: int | None = None,
        last_batch: str | LastBatchPolicy = "partial",
        ragged: Ragged = "error",
    ) -> None:
        if ragged not in ("error", "list", "pad", "nested"):
            raise ArgumentError(f"ragged is 'error', 'list', 'pad' or 'nested', not {ragged!r}")
        check_pipelines([pipeline])
        self.pipeline = pipeline
        self.batch_size = pipeline.max_batch_size
        self._policy = _policy(last_batch)
        self._ragged: Ragged = ragged
        if reader_name is None and size is None:
            reader_name = _only_reader(pipeline)
        epochs = self._epochs(reader_name, size)
        self._steps = Lockstep([pipeline], epochs, seekable=reader_name is not None)
        self._held: tuple[Batch, ...] | None = None
        self._resumed = self._steps.step > 0
        self._loops = 0  # begun so far; a reference to the latest would be a cycle

    def _epochs(self, reader: str | None, size: int | None) -> Epochs | None:
        if reader is not None and size is not None:
            raise ArgumentError("the reader says how large an epoch is; give no size beside it")
        if reader is not None:
            meta = self.pipeline.reader_meta(reader)
            align(self.pipeline, reader)
            return epochs_of_readers(self._policy, self.batch_size, [meta], aligned=True)
        if size is None:
            return None
        if not isinstance(size, int) or size < 1:
            raise ArgumentError(f"size is a positive number of samples, but got {size!r}")
        return Epochs(self._policy, self.batch_size, size)

    def __len__(self) -> int:
        """The number of batches in an epoch. Raises TypeError if only the sources know it."""
        if self._steps.epochs is None:
            raise ArgumentError(
                "the length of an epoch is not known: the pipeline has no reader; give its size"
            )
        return self._steps.length

    def __iter__(self) -> _Loop:
        self._held = None
        if self._steps.over:
            self._steps.advance()
        elif self._steps.step and not self._resumed:
            self._steps.leave()
        self._loops += 1
        return _Loop(self, self._loops)

    def next_of(self, loop: int) -> tuple[Any, ...]:
        """The next batch of a loop. Raises StopIteration at the end of its epoch."""
        if loop != self._loops:
            raise ForebayError(
                "another loop over this Iterator has begun since, and with it another epoch"
            )
        resumed, self._resumed = self._resumed, False
        try:
            outputs = self._next()
        except StopIteration:
            self._steps.advance()
            if not resumed:
                raise
            outputs = self._next()  # the state was taken at its epoch's end
        return tuple(assemble(batch, self._ragged, i) for i, batch in enumerate(outputs))

    def _next(self) -> list[Batch]:
        """The next batch, with the rows that belong to the epoch."""
        steps = self._steps
        outputs, self._held = self._held or steps.take()[0], None
        short = len(outputs[0]) < self.batch_size
        if steps.epochs is not None:
            if short and self._policy is LastBatchPolicy.FILL:
                return [filled(batch, self.batch_size) for batch in outputs]
            return [first_rows(batch, steps.rows(batch)) for batch in outputs]
        if short and self._policy is not LastBatchPolicy.PARTIAL and not steps.over:
            try:
                (self._held,) = steps.take()
            except StopIteration:
                if self._policy is LastBatchPolicy.DROP:
                    raise
                return [filled(batch, self.batch_size) for batch in outputs]
        return list(outputs)

    # ── its state ────────────────────────────────────────────────────────────────────────────────

    def state_dict(self) -> dict[str, int]:
        """The place after the last batch that was handed out, as a small dict of numbers."""
        return {**self._identity(), **self._steps.place(ahead=self._held is not None)}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go to the place of a state: the next loop gives the rest of that epoch.

        A state that was taken at an epoch's end goes on with the next one. Readers go to the place
        at once. Other sources are asked again for the batches of the epoch that were taken before.

        Raises:
            ArgumentError: the state is of another pipeline, or of another seed.
        """
        for name, mine in self._identity().items():
            if state.get(name) != mine:
                raise ArgumentError(
                    f"the state is of a pipeline with {name}={state.get(name)}, but this one has "
                    f"{name}={mine}; the same batches need the same {name}"
                )
        self._held = None
        self._loops += 1
        self._steps.go_to(
            state["epoch"], state["step"], state["source_epoch"], state["source_step"]
        )
        self._resumed = state["step"] > 0

    def _identity(self) -> dict[str, int]:
        epochs = self._steps.epochs
        return {
            "version": 1,
            "seed": self.pipeline.seed,
            "batch_size": self.batch_size,
            "size": -1 if epochs is None else epochs.size,
            "shards": 1 if epochs is None else epochs.shards,
        }


class _Loop:
    """One pass over an epoch. An error leaves it in place: it goes on with the next batch."""

    def __init__(self, owner: Iterator, number: int) -> None:
        self._owner = owner
        self._number = number
        self._over = False

    def __iter__(self) -> _Loop:
        return self

    def __next__(self) -> tuple[Any, ...]:
        if self._over:
            raise StopIteration
        try:
            return self._owner.next_of(self._number)
        except StopIteration:
            self._over = True
            raise


def _policy(last_batch: str | LastBatchPolicy) -> LastBatchPolicy:
    if isinstance(last_batch, LastBatchPolicy):
        return last_batch
    policies = {policy.name.lower(): policy for policy in LastBatchPolicy}
    if last_batch not in policies:
        raise ArgumentError(f"last_batch is 'partial', 'fill' or 'drop', but got {last_batch!r}")
    return policies[last_batch]


def _only_reader(pipeline: Pipeline) -> str | None:
    """The reader whose epochs count, if there is one; any if they all have the same epochs."""
    metas: dict[str, ReaderMeta] = pipeline.reader_meta()
    names = list(metas)
    if any(metas[name] != metas[names[0]] for name in names):
        raise ArgumentError(
            f"the readers {', '.join(names)} have different data; say by reader_name which one's "
            f"epochs count"
        )
    return names[0] if names else None
