"""The executor: stages with a thread each, a pool for the work on samples, and channels between.

A run enters the first stage's channel, whose capacity is the prefetch depth: a full channel is the
only backpressure. A stage hands each run on as soon as it has begun it, so runs reach every stage
in order; a stage with operators of hidden state first waits until the run has passed the stage
before. Per-sample work of several runs overlaps in the pool, and whoever waits for a run waits for
its last event.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter

from forebay.batch import Batch
from forebay.compile.plan import Plan, SourceSlots
from forebay.define.node import Node
from forebay.errors import GraphError
from forebay.execute.channel import Channel, Closed
from forebay.execute.kept import kept
from forebay.execute.memory import Slabs
from forebay.execute.pool import Pool
from forebay.execute.read import read_sources
from forebay.execute.run import EndOfData, Place, Run
from forebay.execute.scope import Scope


class Executor:
    """Runs a plan, batch after batch, until it is closed.

    Args:
        plan: what to run.
        batch_size: the most samples in a batch, and their number where there are no sources.
        num_threads: of the pool.
        prefetch: how many runs may wait in front of each stage.
    """

    def __init__(self, plan: Plan, batch_size: int, num_threads: int, prefetch: int) -> None:
        self.plan = plan
        self._batch_size = batch_size
        self._scope = Scope("pipeline")
        self._slabs = Slabs(keep=prefetch + 2)
        self._channels: list[Channel[Run]] = [Channel(prefetch) for _ in plan.stages]
        self._lock = threading.Lock()
        self._unfinished: dict[Run, None] = {}
        self._since = 0.0  # when it got work, or ended the last run
        self._ended = False
        self._closed = False
        self._scope.on_close(self._cancel)
        self._pool = Pool(num_threads, self._scope)
        for number in range(len(plan.stages)):
            self._scope.start(partial(self._drive, number), f"stage {number}")

    def submit(
        self,
        place: Place,
        fed: Mapping[Node, Batch],
        source: Callable[[int], str | None] | None = None,
    ) -> Run:
        """Begin a run; wait while the first channel is full.

        Args:
            place: of its random numbers; sources are told its epoch and batch.
            fed: a batch for each source that is fed by hand.
            source: gives where a row came from, for errors.

        Raises:
            Closed: the executor was closed.
        """
        run = Run(self.plan, place, fed, source)
        with self._lock:
            if self._closed:
                raise Closed
            if not self._unfinished:
                self._since = perf_counter()
            self._unfinished[run] = None
        self._channels[0].put(run)
        return run

    def restart(self) -> None:
        """Begin the next epoch of the sources. All runs must be over."""
        for stage in self.plan.stages:
            for slots in stage.sources:
                assert slots.source is not None
                slots.source.reset()
        self._ended = False

    def seek(self, batches: int) -> None:
        """Tell the sources how many batches were used. All runs must be over."""
        for stage in self.plan.stages:
            for slots in stage.sources:
                assert slots.source is not None
                slots.source.seek(batches)

    def check_caller(self) -> None:
        """Raise GraphError if the caller is work of this executor, as a user's source is."""
        if self._scope.holds(threading.current_thread()):
            raise GraphError(
                "the pipeline was used by its own source or function, which it would wait for "
                "forever; use another pipeline there"
            )

    def close(self) -> None:
        """End every thread; unfinished runs end with Closed. Idempotent."""
        self._scope.close()

    # ── the stages' threads ──────────────────────────────────────────────────────────────────────

    def _drive(self, number: int) -> None:
        stage = self.plan.stages[number]
        try:
            while True:
                run = self._channels[number].get()
                if number == 0:
                    self._read(stage.sources, run)
                else:
                    run.passed[number - 1].wait()
                if stage.ordered and run.error is None:
                    run.run_batch(stage.ordered)
                self._begin(run, number, 0)
                if number + 1 < len(self.plan.stages):
                    self._channels[number + 1].put(run)
                del run  # while this thread waits it must not keep the last batch alive
        except Closed:
            return

    def _read(self, sources: Sequence[SourceSlots], run: Run) -> None:
        if self._ended and sources:
            run.error = EndOfData()
            return
        try:
            read_sources(self.plan, sources, run, self._batch_size, self._slabs)
        except BaseException as error:  # whatever the user's source raises belongs to this run
            self._ended = self._ended or isinstance(error, EndOfData)
            run.error = kept(error)

    def _begin(self, run: Run, stage: int, number: int) -> None:
        """Begin a phase of a stage for a run, or end the stage if there is none left."""
        phases = self.plan.stages[stage].phases
        if number == len(phases) or run.error is not None:
            self._pass(run, stage)
            return
        phase = phases[number]
        then = partial(self._begin, run, stage, number + 1)
        add = self._pool.submit if number == 0 else self._pool.follow
        try:
            if phase.of_batches:
                add(1, lambda _: run.run_batch(phase.instructions), then)
            else:
                last = stage + 1 == len(self.plan.stages) and number + 1 == len(phases)
                add(run.size, partial(run.run_row, phase.instructions, last=last), then)
        except Closed:
            self._pass(run, stage)  # `_cancel` gives the run its error

    def _pass(self, run: Run, stage: int) -> None:
        if stage + 1 == len(self.plan.stages):
            run.finish()
            with self._lock:
                self._unfinished.pop(run, None)
                run.ended = perf_counter()
                run.busy, self._since = run.ended - self._since, run.ended
        run.passed[stage].set()

    def _cancel(self) -> None:
        with self._lock:
            self._closed = True
            runs = list(self._unfinished)
            self._unfinished.clear()
        for run in runs:
            run.error = run.error or Closed()
            for event in run.passed:
                event.set()
        for channel in self._channels:
            channel.cancel()
