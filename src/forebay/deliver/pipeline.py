"""The pipeline as the user holds it: a definition that runs."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from forebay.batch import Batch
from forebay.compile.cut import make_plan
from forebay.compile.plan import Plan
from forebay.define.definition import Definition
from forebay.define.node import Node
from forebay.define.options import make_options
from forebay.deliver.checkpoint import Checkpoint, operators
from forebay.deliver.described import Described
from forebay.deliver.feed import Feed, fed_batch, label_of
from forebay.errors import ForebayError, GraphError, SourceError, UnknownInputError
from forebay.execute.executor import Executor
from forebay.execute.run import EndOfData, Place, Run
from forebay.execute.scope import close_after
from forebay.operators._argument import suggestion
from forebay.types import PipelineAPIType


class Pipeline(Described, Definition):
    """A graph of operators, and its execution.

    Batches are prepared ahead of their use, in threads that end when the pipeline is closed or
    dropped. Use it as a context manager while writing the graph, or derive from it and override
    `define_graph`, or decorate a function with `pipeline_def`.

    Args:
        batch_size: the most samples in a batch.
        num_threads: threads for the work on samples.
        device_id: the GPU, which nothing runs on in this version: CUDA is not touched. None or -1:
            the CPU alone.
        seed: of all random numbers; None or -1 for a fresh one, which `repr` shows.
        prefetch_queue_depth: how many batches are prepared ahead.
        exec_pipelined, exec_async: False for either prepares no batch before it is asked for.
        output_dtype, output_ndim, output_layout: what each output must be; one for all, or a list.
        checkpoint: what `checkpoint()` gave: the first batch is the one that came next there. The
            seed is taken from it, if none is given.
        enable_checkpointing: accepted; checkpoints can always be made.
        bytes_per_sample, set_affinity, max_streams, default_cuda_stream_priority,
        enable_memory_stats, exec_dynamic, experimental_exec_dynamic, stream_policy, concurrency,
        py_num_workers, py_start_method, py_callback_pickler: accepted; they tune DALI's memory,
            streams and worker processes, which have no counterpart here.

    Raises:
        ArgumentError: an argument is out of range, or not in this version, or the checkpoint is of
            another pipeline, as is seen when this one is built.
    """

    def __init__(
        self,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | None = None,
        seed: int | None = None,
        exec_pipelined: bool = True,
        prefetch_queue_depth: int | dict[str, int] = 2,
        exec_async: bool = True,
        bytes_per_sample: int = 0,
        set_affinity: bool = False,
        max_streams: int | None = None,
        default_cuda_stream_priority: int | None = None,
        *,
        enable_memory_stats: bool = False,
        enable_checkpointing: bool = False,
        checkpoint: bytes | str | None = None,
        py_num_workers: int = 1,
        py_start_method: str = "fork",
        py_callback_pickler: Any = None,
        output_dtype: Any = None,
        output_ndim: Any = None,
        output_layout: Any = None,
        exec_dynamic: bool | None = None,
        experimental_exec_dynamic: bool | None = None,
        stream_policy: Any = None,
        concurrency: Any = None,
    ) -> None:
        super().__init__()
        self._restored = None if checkpoint is None else Checkpoint.load(checkpoint)
        if self._restored is not None and seed in (None, -1):
            seed = self._restored.seed
        hints = {
            "exec_pipelined": exec_pipelined,
            "exec_async": exec_async,
            "exec_separated": isinstance(prefetch_queue_depth, dict),
            "exec_dynamic": exec_dynamic,
            "set_affinity": set_affinity,
            "max_streams": max_streams,
            "default_cuda_stream_priority": default_cuda_stream_priority,
            "enable_memory_stats": enable_memory_stats,
            "py_num_workers": py_num_workers,
            "py_start_method": py_start_method,
            "stream_policy": stream_policy,
            "concurrency": concurrency,
            "is_restored_from_checkpoint": checkpoint is not None,
        }
        forms = (output_dtype, output_ndim, output_layout)
        self._options = make_options(
            batch_size, num_threads, device_id, seed, prefetch_queue_depth, forms, hints
        )
        self._plan: Plan | None = None
        self._executor: Executor | None = None
        self._end: Callable[[], object] = lambda: None
        self._api: PipelineAPIType | None = None
        self._epoch = 0
        self._iteration = 0
        self._taken = 0  # of all epochs together; readers go by it
        self._ended = False
        self._setup_ended = False
        self._runs: deque[Run] = deque()
        self._feed = Feed()
        self._taking = threading.RLock()

    # ── what it is ───────────────────────────────────────────────────────────────────────────────

    @property
    def num_outputs(self) -> int:
        return len(self.output_nodes)

    @property
    def plan(self) -> Plan:
        """What will run; ``print(pipeline.plan)`` shows it as a table."""
        if self._plan is None:
            self._output_forms()
            self._plan = make_plan(self.output_nodes, self.sinks, self.seed, self.token)
        return self._plan

    # ── its life ─────────────────────────────────────────────────────────────────────────────────

    def build(self) -> None:
        """Compile the graph, and start its threads. Called by itself when data is first asked for.

        Raises:
            DefinitionError: what can be known to be wrong before data is there.
        """
        if self._executor is None:
            if self._restored is not None:
                self._restored.check(self.plan, self.seed)
            self._executor = self._make_executor()
            self._executor.seek(self._taken)
            # The executor must not keep the pipeline alive, nor outlive it.
            self._end = close_after(self, self._executor.close)
            if self._restored is not None:
                self.restore(self._restored)

    def close(self) -> None:
        """End the threads and drop what was prepared. Using the pipeline again starts it again."""
        self._executor = None
        self._end()
        self._runs.clear()
        self._feed.clear()

    def new_executor(self) -> Executor:
        """One more executor of the same plan, for a server. The caller feeds and closes it."""
        self._use(PipelineAPIType.SCHEDULED)
        return self._make_executor()

    def _make_executor(self) -> Executor:
        options = self._options
        return Executor(self.plan, options.batch_size, options.num_threads, options.prefetch)

    def reset(self) -> None:
        """Begin the next epoch, after StopIteration or in the middle of one."""
        self.seek(self._taken, self._epoch + 1, 0)

    def seek(self, taken: int, epoch: int, iteration: int) -> None:
        """Go on at another place; what was prepared is dropped.

        Args:
            taken: batches of all epochs together; readers go by it.
            epoch, iteration: of the next batch; external sources and random numbers go by them.
        """
        if (executor := self._executor) is not None:
            executor.check_caller()
        for run in self._runs:
            run.passed[-1].wait()
        self._runs.clear()
        if self._executor is not None:
            self._executor.restart()
            self._executor.seek(taken)
        self._taken, self._epoch, self._iteration = taken, epoch, iteration
        self._ended = self._setup_ended = False

    def checkpoint(
        self,
        filename: str | None = None,
        *,
        ahead: int = 0,
        iterator: Mapping[str, int] | None = None,
    ) -> bytes:
        """The place after the last batch that was taken, as JSON, for `Pipeline(checkpoint=…)`.

        Args:
            filename: a file to write it to, besides.
            ahead: so many of the batches that were taken come again.
            iterator: the place of the iterator that runs the pipeline.
        """
        taken, iteration = self._taken - ahead, self._iteration - len(self._runs) - ahead
        place = taken, self._epoch, iteration
        made = Checkpoint(self.seed, *place, operators(self.plan), iterator).dump()
        if filename is not None:
            Path(filename).write_bytes(made)
        return made

    def restore(self, place: Checkpoint) -> None:
        """Go to a place. Sources that cannot be moved are read up to it. Raises ArgumentError."""
        self._restored = None
        place.check(self.plan, self.seed)
        sources = [slots.source for stage in self.plan.stages for slots in stage.sources]
        movable = all(source is None or source.seekable for source in sources)
        passed = 0 if movable else place.iteration
        self.seek(place.taken - passed, place.epoch, place.iteration - passed)
        for _ in range(passed):
            with contextlib.suppress(ForebayError, StopIteration):
                self._schedule()
                self._take()

    @property
    def restored(self) -> Checkpoint | None:
        """The checkpoint that was given, until the pipeline has gone there."""
        return self._restored

    @property
    def taken(self) -> int:
        """How many batches were taken, in all epochs together."""
        return self._taken

    @property
    def epoch(self) -> int:
        """How many times the sources' epoch was ended by `reset`."""
        return self._epoch

    def empty(self) -> bool:
        """Whether no batch is being prepared or waits to be taken."""
        return not self._runs or self._ended

    # ── feeding ──────────────────────────────────────────────────────────────────────────────────

    def feed_input(
        self,
        data_node: Any,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Give the next batch of a source that is fed by hand.

        Args:
            data_node: the source's name, or its node.
            data: a list of arrays, or one array with the batch first.
            layout: of the data, if not said in the definition.
            cuda_stream, use_copy_kernel: accepted; without effect.

        Raises:
            SourceError: there is no such source, it has a callback, or the data cannot be used.
            ArgumentError: `data_node` is neither name nor node.
        """
        name = label_of(data_node)
        batch = fed_batch(name, self._input(name), data, layout, self.max_batch_size)
        self._feed.put(name, batch)

    def _input(self, name: str) -> Node:
        inputs = self.inputs()
        if name in inputs:
            return inputs[name]
        for stage in self.plan.stages:
            for slots in stage.sources:
                if slots.node.label == name:
                    raise SourceError(
                        f"Cannot use feed_input on the external source '{name}' with a source "
                        f"argument specified (at {slots.node.origin})"
                    )
        raise UnknownInputError(
            f'Could not find an input operator with name "{name}"{suggestion(name, inputs)}'
        )

    def input_feed_count(self, name: str) -> int:
        """How many batches must be fed before the first `run`: one."""
        self._input(name)
        return 1

    # ── running ──────────────────────────────────────────────────────────────────────────────────

    def run(self, **inputs: Any) -> tuple[Batch, ...]:
        """The next batch of every output; of several threads each gets one of its own.

        Args:
            inputs: data for sources that are fed by hand, by name.

        Raises:
            StopIteration: the sources' epoch is over; `reset` begins the next one.
            OperatorError: an operator failed on a sample of this batch. The next call goes on.
            SourceError: a source failed, or an input was not fed.
        """
        self._use(PipelineAPIType.BASIC)
        with self._taking:
            for name, data in inputs.items():
                self.feed_input(name, data)
            self._prefetch()
            return self._take()

    def _prefetch(self) -> None:
        if not self._runs:
            self._schedule()
        try:
            while len(self._runs) < self._options.prefetch and self._can_schedule():
                self._schedule()
        except StopIteration:
            return  # of iter_setup; what is scheduled comes first

    def _can_schedule(self) -> bool:
        """Whether a batch can be prepared ahead: what is fed by hand must be there."""
        if type(self).iter_setup is not Pipeline.iter_setup:
            return True
        return self._feed.is_there(self.inputs())

    def schedule_run(self) -> None:
        """Begin the next batch, without a wait for it."""
        self._use(PipelineAPIType.SCHEDULED)
        self._schedule()

    def share_outputs(self) -> tuple[Batch, ...]:
        """The oldest batch that was scheduled; wait for it. Raises as `run`."""
        self._use(PipelineAPIType.SCHEDULED)
        with self._taking:
            return self._take()

    def release_outputs(self) -> None:
        """Accepted: a batch's memory is used again when nobody reads it any more."""
        self._use(PipelineAPIType.SCHEDULED)

    def outputs(self) -> tuple[Batch, ...]:
        """`release_outputs`, then `share_outputs`."""
        self.release_outputs()
        return self.share_outputs()

    def _use(self, api: PipelineAPIType) -> None:
        if (executor := self._executor) is not None:
            executor.check_caller()
        if self._api is None:
            self._api = api
        elif self._api is not api:
            raise GraphError(
                f"Mixing pipeline API type. Currently used: {self._api}, but trying to use {api}"
            )

    def iter_setup(self) -> None:
        """Called before each batch is scheduled; subclasses feed their inputs in it."""

    def _schedule(self) -> None:
        self.build()
        assert self._executor is not None
        self._setup()
        fed = self._feed.take(self.inputs())
        self._runs.append(self._executor.submit(Place(self._epoch, self._iteration), fed))
        self._iteration += 1

    def _setup(self) -> None:
        """Call `iter_setup`, which may end the epoch; then not again before `reset`."""
        if not self._setup_ended:
            try:
                return self.iter_setup()
            except StopIteration:
                self._setup_ended = True
        raise StopIteration("iter_setup has ended the epoch; reset() begins the next one")

    def _take(self) -> tuple[Batch, ...]:
        if not self._runs:
            raise ForebayError("no batch was scheduled: call schedule_run first")
        run = self._runs[0]
        try:
            outputs = run.result()
        except EndOfData:  # it stays: what was scheduled after the end is at its end too
            self._ended = True
            raise StopIteration("the sources' epoch is over; reset() begins the next one") from None
        except BaseException:
            self._runs.popleft()
            self._taken += 1
            raise
        finally:
            del run  # a traceback keeps this frame
        self._runs.popleft()
        self._taken += 1
        self._check_outputs(outputs)
        return outputs

    def __enter__(self) -> Self:
        super().__enter__()
        return self
