"""The pipeline as the user holds it: a definition that runs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Self

from forebay.batch import Batch
from forebay.compile.cut import make_plan
from forebay.compile.plan import Plan
from forebay.define.definition import (
    Definition,
    check_output_forms,
    make_options,
    not_in_this_version,
)
from forebay.define.node import Node
from forebay.errors import ArgumentError, ForebayError, GraphError, SourceError, UnknownInputError
from forebay.execute.executor import Executor
from forebay.execute.run import EndOfData, Place, Run
from forebay.execute.scope import close_after
from forebay.operators._schema import suggestion
from forebay.types import PipelineAPIType


class Pipeline(Definition):
    """A graph of operators, and its execution.

    Batches are prepared ahead of their use, in threads that end when the pipeline is closed or
    dropped. Use it as a context manager while writing the graph, or derive from it and override
    `define_graph`, or decorate a function with `pipeline_def`.

    Args:
        batch_size: the most samples in a batch.
        num_threads: threads for the work on samples.
        device_id: the GPU. None or -1: the CPU alone; CUDA is not touched.
        seed: of all random numbers; None or -1 for a fresh one, which `repr` shows.
        prefetch_queue_depth: how many batches are prepared ahead.
        exec_pipelined, exec_async: False for either prepares no batch before it is asked for.
        output_dtype, output_ndim, output_layout: what each output must be; one for all, or a list.
        enable_checkpointing, checkpoint: not in this version; refused.
        bytes_per_sample, set_affinity, max_streams, default_cuda_stream_priority,
        enable_memory_stats, exec_dynamic, experimental_exec_dynamic, stream_policy, concurrency,
        py_num_workers, py_start_method, py_callback_pickler: accepted; they tune DALI's memory,
            streams and worker processes, which have no counterpart here.

    Raises:
        ArgumentError: an argument is out of range, or not in this version.
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
        checkpoint: str | None = None,
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
        if enable_checkpointing or checkpoint is not None:
            not_in_this_version("enable_checkpointing", "leave it out")
        self._options = make_options(
            batch_size,
            num_threads,
            device_id,
            seed,
            prefetch_queue_depth,
            ahead=exec_pipelined and exec_async,
        )
        self._output_forms = (output_dtype, output_ndim, output_layout)
        self._plan: Plan | None = None
        self._executor: Executor | None = None
        self._end: Callable[[], object] = lambda: None
        self._api: PipelineAPIType | None = None
        self._epoch = 0
        self._iteration = 0
        self._runs: deque[Run] = deque()
        self._fed: dict[str, deque[Batch]] = {}
        self._last_fed: dict[str, Batch] = {}
        self._was_fed = threading.Condition()

    # ── what it is ───────────────────────────────────────────────────────────────────────────────

    @property
    def max_batch_size(self) -> int:
        return self._options.batch_size

    @property
    def batch_size(self) -> int:
        return self._options.batch_size

    @property
    def num_threads(self) -> int:
        return self._options.num_threads

    @property
    def device_id(self) -> int | None:
        return self._options.device_id

    @property
    def seed(self) -> int:
        return self._options.seed

    @property
    def prefetch_queue_depth(self) -> int:
        return self._options.prefetch

    @property
    def num_outputs(self) -> int:
        return len(self.output_nodes)

    @property
    def plan(self) -> Plan:
        """What will run; ``print(pipeline.plan)`` shows it as a table."""
        if self._plan is None:
            nodes = self.output_nodes
            check_output_forms(len(nodes), *self._output_forms)
            self._plan = make_plan(nodes, self.sinks, self.seed)
        return self._plan

    @property
    def output_dtype(self) -> Any:
        """What was demanded of the outputs' element types: one each."""
        return [form[0] for form in check_output_forms(self.num_outputs, *self._output_forms)]

    @property
    def output_ndim(self) -> Any:
        return [form[1] for form in check_output_forms(self.num_outputs, *self._output_forms)]

    @property
    def output_layout(self) -> Any:
        return [form[2] for form in check_output_forms(self.num_outputs, *self._output_forms)]

    def __repr__(self) -> str:
        options = self._options
        return (
            f"<{type(self).__name__} batch_size={options.batch_size} "
            f"num_threads={options.num_threads} device_id={options.device_id} seed={options.seed}>"
        )

    # ── its life ─────────────────────────────────────────────────────────────────────────────────

    def build(self) -> None:
        """Compile the graph, and start its threads. Called by itself when data is first asked for.

        Raises:
            DefinitionError: what can be known to be wrong before data is there.
        """
        if self._executor is None:
            self._executor = self._make_executor()
            # The executor must not keep the pipeline alive, nor outlive it.
            self._end = close_after(self, self._executor.close)

    def close(self) -> None:
        """End the threads and drop what was prepared. Using the pipeline again starts it again."""
        self._executor = None
        self._end()
        self._runs.clear()
        self._fed.clear()

    def new_executor(self) -> Executor:
        """One more executor of the same plan, for a server. The caller feeds and closes it."""
        self._use(PipelineAPIType.SCHEDULED)
        return self._make_executor()

    def _make_executor(self) -> Executor:
        options = self._options
        return Executor(self.plan, options.batch_size, options.num_threads, options.prefetch)

    def reset(self) -> None:
        """Begin the next epoch, after StopIteration or in the middle of one."""
        for run in self._runs:
            run.passed[-1].wait()
        self._runs.clear()
        self._fed.clear()
        if self._executor is not None:
            self._executor.restart()
        self._epoch += 1
        self._iteration = 0

    def empty(self) -> bool:
        """Whether no batch is being prepared or waits to be taken."""
        return not self._runs

    # ── feeding ──────────────────────────────────────────────────────────────────────────────────

    def inputs(self) -> dict[str, Node]:
        """The sources that are fed by hand, by name, in the order of their definition."""
        return {slots.node.label: slots.node for slots in self.plan.fed}

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
        """
        name = data_node if isinstance(data_node, str) else data_node.node.label
        node = self._input(name)
        batch = node.constants["form"].batch(data, copy=not node.constants["no_copy"])
        if layout is not None:
            for sample in batch.samples:
                sample.layout = layout
        if not 0 < len(batch) <= self.max_batch_size:
            raise SourceError(
                f"input '{name}' was fed {len(batch)} samples for a batch of 1 to "
                f"{self.max_batch_size} (the pipeline's batch_size)"
            )
        with self._was_fed:
            self._fed.setdefault(name, deque()).append(batch)
            self._was_fed.notify_all()

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
        """The next batch of every output.

        Args:
            inputs: data for sources that are fed by hand, by name.

        Raises:
            StopIteration: the sources' epoch is over; `reset` begins the next one.
            OperatorError: an operator failed on a sample of this batch. The next call goes on.
            SourceError: a source failed, or an input was not fed.
        """
        self._use(PipelineAPIType.BASIC)
        for name, data in inputs.items():
            self.feed_input(name, data)
        self._prefetch()
        return self._take()

    def _prefetch(self) -> None:
        if not self._runs:
            self._schedule()
        while len(self._runs) < self._options.prefetch and self._can_schedule():
            self._schedule()

    def _can_schedule(self) -> bool:
        """Whether a batch can be prepared ahead: what is fed by hand must be there."""
        if type(self).iter_setup is not Pipeline.iter_setup:
            return True
        return all(self._fed.get(name) for name in self.inputs())

    def schedule_run(self) -> None:
        """Begin the next batch, without a wait for it."""
        self._use(PipelineAPIType.SCHEDULED)
        self._schedule()

    def share_outputs(self) -> tuple[Batch, ...]:
        """The oldest batch that was scheduled; wait for it. Raises as `run`."""
        self._use(PipelineAPIType.SCHEDULED)
        return self._take()

    def release_outputs(self) -> None:
        """Accepted: a batch's memory is used again when nobody reads it any more."""
        self._use(PipelineAPIType.SCHEDULED)

    def outputs(self) -> tuple[Batch, ...]:
        """`release_outputs`, then `share_outputs`."""
        self.release_outputs()
        return self.share_outputs()

    def _use(self, api: PipelineAPIType) -> None:
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
        self.iter_setup()
        fed = {node: self._next_fed(name, node) for name, node in self.inputs().items()}
        self._runs.append(self._executor.submit(Place(self._epoch, self._iteration), fed))
        self._iteration += 1

    def _next_fed(self, name: str, node: Node) -> Batch:
        with self._was_fed:
            waiting = self._fed.setdefault(name, deque())
            while not waiting and node.constants["blocking"]:
                self._was_fed.wait()
            if waiting:
                self._last_fed[name] = waiting.popleft()
            elif not (node.constants["repeat_last"] and name in self._last_fed):
                raise SourceError(
                    f"input '{name}' (external_source at {node.origin}) was not fed: call "
                    f"feed_input('{name}', data) or run({name}=data) before each batch"
                )
            return self._last_fed[name]

    def _take(self) -> tuple[Batch, ...]:
        if not self._runs:
            raise ForebayError("no batch was scheduled: call schedule_run first")
        run = self._runs[0]
        try:
            outputs = run.result()
        except EndOfData:  # it stays: what was scheduled after the end is at its end too
            raise StopIteration("the sources' epoch is over; reset() begins the next one") from None
        except BaseException:
            self._runs.popleft()
            raise
        finally:
            del run  # a traceback keeps this frame
        self._runs.popleft()
        self._check_outputs(outputs)
        return outputs

    def _check_outputs(self, outputs: tuple[Batch, ...]) -> None:
        for index, (batch, form) in enumerate(
            zip(outputs, check_output_forms(len(outputs), *self._output_forms), strict=True)
        ):
            dtype, ndim, layout = form
            for what, wanted, got in (
                ("Data type", dtype, batch.dtype),
                ("Number of dimensions", ndim, batch.ndim()),
                ("Layout", layout, batch.layout()),
            ):
                if wanted is not None and wanted != got:
                    raise ForebayError(
                        f"{what} in the output_idx={index} does not match. "
                        f"Expected: {wanted!r}. Received: {got!r}."
                    )

    # ── about readers ────────────────────────────────────────────────────────────────────────────

    def reader_meta(self, name: str | None = None) -> Any:
        """What is known of a reader's data (see `ReaderMeta`), or of all readers' by name."""
        sources = [slots for stage in self.plan.stages for slots in stage.sources]
        found = {s.node.label: s.source.meta() for s in sources if s.source is not None}
        readers = {label: meta for label, meta in found.items() if meta is not None}
        if name is not None and name not in readers:
            raise ArgumentError(f"there is no reader named '{name}'{suggestion(name, readers)}")
        return readers if name is None else readers[name]

    def epoch_size(self, name: str | None = None) -> Any:
        """The number of samples in an epoch of a reader, or of all readers by name."""
        if name is None:
            return {label: self.epoch_size(label) for label in self.reader_meta()}
        meta = self.reader_meta(name)
        return meta["epoch_size_padded" if meta["pad_last_batch"] else "epoch_size"]

    def __enter__(self) -> Self:
        super().__enter__()
        return self
