"""One batch on its way through the stages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np
import torch

from forebay.batch import Batch, Sample
from forebay.compile.plan import Instruction, Plan
from forebay.define.node import Node
from forebay.errors import ForebayError, OperatorError, ReaderError, SourceError
from forebay.execute.kept import fresh, kept
from forebay.execute.memory import Slabs
from forebay.operators._operator import SamplesFailedError, as_outputs
from forebay.operators._rng import Rng


class EndOfData(Exception):  # noqa: N818 - an end rather than a mistake
    """A source has nothing more in this epoch."""


@dataclass(frozen=True)
class Place:
    """Where a batch lies; its random numbers depend on nothing else.

    Attributes:
        epoch, batch: numbers from 0.
        rows: the number of each sample within the batch, where it is not its position: a batch
            may be run in several parts.
    """

    epoch: int
    batch: int
    rows: Sequence[int] | None = None


class Target:
    """The memory of one output: a batch in one piece, as long as all samples have one shape."""

    def __init__(self, slabs: Slabs, size: int) -> None:
        self._slabs = slabs
        self._size = size
        self._lock = threading.Lock()
        self._dense: np.ndarray[Any, Any] | None = None
        self._owner: np.ndarray[Any, Any] | None = None

    def place(self, row: int, shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
        """The row's memory for a result of that shape; the first row's shape decides."""
        dtype = np.dtype(dtype)
        dense = self._dense
        if dense is None:
            with self._lock:
                if self._dense is None:
                    taken = self._slabs.take((self._size, *shape), dtype)
                    self._owner = taken if taken.base is None else taken.base
                    self._dense = taken
                dense = self._dense
        if dense.shape[1:] == tuple(shape) and dense.dtype == dtype:
            result: np.ndarray[Any, Any] = dense[row, ...]  # an array also if it has no axes
            return result
        return np.empty(shape, dtype)

    def store(self, row: int, sample: Sample) -> Sample:
        """The sample in memory of its own: in the batch if it has its shape."""
        array = sample.array
        home = self.place(row, array.shape, array.dtype)
        there = array.base is self._owner and array.strides == home.strides
        if not (there and array.shape == home.shape and home.base is self._owner):
            np.copyto(home, array)
        return sample.like(home)

    def batch(self, samples: Sequence[Sample]) -> Batch:
        """The batch of the stored samples."""
        dense = self._dense
        if dense is not None and len(samples) == self._size:
            shape, owner = dense.shape[1:], self._owner
            if all(s.array.base is owner and s.array.shape == shape for s in samples):
                return Batch(samples, torch.from_numpy(dense))
        return Batch(samples)


class Run:
    """One batch: its rows of slots, its errors, and in the end its outputs.

    Attributes:
        place: where its random numbers are drawn.
        fed: what was fed by hand.
        error: what ends the run as a whole.
        failures: row → what went wrong there. The other rows are not affected.
        passed: an event for each stage; the last one says that the run is over.
        source: gives where a row came from, for errors.
        good: once it is over: the rows that `outputs` has, in order.
        ended: when it was over, by `perf_counter`.
        busy: seconds until then in which the executor had work, and no other run was over.
    """

    def __init__(
        self,
        plan: Plan,
        place: Place,
        fed: Mapping[Node, Batch],
        source: Callable[[int], str | None] | None = None,
    ) -> None:
        self.place = place
        self.fed = fed
        self.source = source
        self.size = 0
        self.rows: list[list[Any]] = []
        self.error: BaseException | None = None
        self.failures: dict[int, OperatorError] = {}
        self.outputs: tuple[Batch, ...] = ()
        self.good: Sequence[int] = ()
        self.passed = [threading.Event() for _ in plan.stages]
        self.ended = 0.0
        self.busy = 0.0
        self._plan = plan
        self._targets: list[Target] = []

    def begin(self, columns: Mapping[int, Batch], size: int, slabs: Slabs) -> None:
        """Make the rows. `columns` has the batches of the sources, by slot."""
        self.size = size
        template: list[Any] = [None] * self._plan.slots
        for slot, sample in self._plan.constants:
            template[slot] = sample
        self.rows = [template.copy() for _ in range(size)]
        for slot, batch in columns.items():
            for row, sample in zip(self.rows, batch.samples, strict=True):
                row[slot] = sample
        self._targets = [Target(slabs, size) for _ in self._plan.outputs]

    def run_row(self, instructions: Sequence[Instruction], number: int, *, last: bool) -> None:
        """Run one sample through a phase; a failure is kept and concerns this row alone."""
        if self.failures and number in self.failures:
            return
        row = self.rows[number]
        instruction = None
        try:
            for instruction in instructions:
                if not instruction.guards or _takes(row, instruction):
                    self._run_sample(instruction, number, row)
            instruction = None
            if last:
                for target_, slot in zip(self._targets, self._plan.outputs, strict=True):
                    row[slot] = target_.store(number, row[slot])
        except BaseException as error:  # a thread of the pool must go on, whatever it was
            self.failures[number] = self._failure(instruction, number, row, error)
            row[:] = [None] * len(row)

    def _run_sample(self, instruction: Instruction, number: int, row: list[Any]) -> None:
        call, target, place = instruction.call, instruction.target, self.place
        rng = None
        if call.uses_rng:
            drawn_at = number if place.rows is None else place.rows[number]
            rng = Rng(instruction.key, place.epoch, place.batch, drawn_at)
        result = call.run(
            [row[slot] for slot in instruction.inputs],
            [row[slot] for slot in instruction.values],
            rng,
            np.empty if target is None else partial(self._targets[target].place, number),
        )
        if isinstance(result, tuple):
            for slot, sample in zip(instruction.outputs, result, strict=True):
                row[slot] = sample
        else:
            row[instruction.outputs[0]] = result
        for slot in instruction.frees:
            row[slot] = None

    def run_batch(self, instructions: Sequence[Instruction]) -> None:
        """Run operators that see whole batches, on the rows that have not failed."""
        instruction = None
        try:
            for instruction in instructions:
                good = [n for n in range(self.size) if n not in self.failures]
                guarded = instruction.guards
                taking = [n for n in good if not guarded or _takes(self.rows[n], instruction)]
                if taking:
                    self._run_samples(instruction, taking)
                for slot in instruction.frees:
                    for number in good:
                        self.rows[number][slot] = None
        except BaseException as error:  # a thread of the pool must go on, whatever it was
            self.error = self._failure(instruction, None, (), error)

    def _run_samples(self, instruction: Instruction, numbers: Sequence[int]) -> None:
        rows = [self.rows[number] for number in numbers]
        inputs, values = (
            [Batch([row[slot] for row in rows]) for slot in slots]
            for slots in (instruction.inputs, instruction.values)
        )
        place = self.place
        first = 0 if place.rows is None else place.rows[0]
        rng = Rng(instruction.key, place.epoch, place.batch, first)
        causes: Mapping[int, Exception] = {}
        try:
            result = as_outputs(instruction.call.run(inputs, values, rng, np.empty, len(rows)))
        except SamplesFailedError as error:
            causes, result = error.causes, error.results
        for position, cause in causes.items():
            number, row = numbers[position], rows[position]
            self.failures[number] = self._failure(instruction, number, row, cause)
            row[:] = [None] * len(row)
        rows = [row for position, row in enumerate(rows) if position not in causes]
        for slot, batch in zip(instruction.outputs, result, strict=True):
            assert isinstance(batch, Batch)
            for row, sample in zip(rows, batch.samples, strict=True):
                row[slot] = sample

    def _failure(
        self,
        instruction: Instruction | None,
        number: int | None,
        row: Sequence[Any],
        cause: BaseException,
    ) -> OperatorError:
        if instruction is None:
            where = "the pipeline's outputs"
            failed = OperatorError("output", number, None, where, _reason(cause))
        else:
            source = None
            if number is not None:
                used = [row[slot] for slot in (*instruction.inputs, *instruction.values)]
                source = next((s.source for s in used if s is not None and s.source), None)
                if source is None and self.source is not None:
                    source = self.source(number)
            node = instruction.node
            kind = ReaderError if isinstance(cause, SourceError) else OperatorError
            failed = kind(node.operator.name, number, source, str(node.origin), _reason(cause))
        failed.__cause__ = kept(cause)
        return failed

    def finish(self) -> None:
        """Make the outputs of the rows that are good, and drop everything else."""
        if self.error is None:
            self.good = good = [i for i in range(self.size) if i not in self.failures]
            try:
                self.outputs = tuple(
                    self._uniform(index, target.batch([self.rows[i][slot] for i in good]))
                    for index, (target, slot) in enumerate(
                        zip(self._targets, self._plan.outputs, strict=True)
                    )
                )
            except Exception as error:  # whoever waits must be told, whatever it was
                self.error = kept(error)
        self.rows = []
        self._targets = []
        self.fed = {}

    @staticmethod
    def _uniform(index: int, batch: Batch) -> Batch:
        kinds = sorted({(str(s.data.dtype), s.ndim, s.layout) for s in batch.samples})
        if len(kinds) > 1:
            found = ", ".join(f"{d} with {n} axes {layout!r}" for d, n, layout in kinds[:3])
            raise ForebayError(f"output {index} has samples of different kinds: {found}")
        return batch

    def result(self) -> tuple[Batch, ...]:
        """Wait for the end. Returns the outputs; raises what went wrong, the first row's first."""
        outputs = self.outcome()
        self.check(range(self.size))
        return outputs

    def outcome(self) -> tuple[Batch, ...]:
        """Wait for the end. Returns the outputs of the `good` rows; raises what ended all."""
        self.passed[-1].wait()
        if isinstance(self.error, EndOfData):
            raise EndOfData
        if self.error is not None:
            self._raise(self.error)
        return self.outputs

    def check(self, rows: Sequence[int]) -> None:
        """Raise what went wrong in the first of these rows that failed."""
        if self.failures:
            for row in rows:
                if row in self.failures:
                    self._raise(self.failures[row])

    def _raise(self, error: BaseException) -> NoReturn:
        try:
            raise fresh(error)
        finally:  # else the error's traceback, this frame and the run would keep each other alive
            del error, self


def _takes(row: Sequence[Any], instruction: Instruction) -> bool:
    """Whether a sample takes the branch of `if` that the instruction stands in."""
    return all(bool(row[slot].array) is value for slot, value in instruction.guards)


def _reason(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, SourceError):  # its text says all
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
