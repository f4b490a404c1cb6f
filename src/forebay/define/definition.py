"""What a pipeline is before it runs: its options and its graph."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from forebay.define.call import as_node
from forebay.define.node import DataNode
from forebay.errors import ArgumentError, GraphError
from forebay.types import CPU_ONLY_DEVICE_ID, DALIDataType


@dataclass(frozen=True)
class Options:
    """The constructor arguments of a pipeline that change what it does.

    Attributes:
        batch_size: the most samples in a batch.
        num_threads: threads of the pool in which per-sample work runs.
        device_id: the GPU; None for none.
        seed: of all random numbers that have no seed of their own.
        prefetch: how many batches are prepared ahead.
    """

    batch_size: int
    num_threads: int
    device_id: int | None
    seed: int
    prefetch: int


def make_options(
    batch_size: int | None,
    num_threads: int | None,
    device_id: int | None,
    seed: int | None,
    prefetch_queue_depth: int | dict[str, int],
    *,
    ahead: bool,
) -> Options:
    """Check and complete the constructor arguments. Raises ArgumentError.

    Args:
        batch_size, num_threads, device_id, seed, prefetch_queue_depth: as in `Pipeline`.
        ahead: False to prepare no batch before it is asked for.
    """
    if isinstance(prefetch_queue_depth, dict):
        if set(prefetch_queue_depth) != {"cpu_size", "gpu_size"}:
            raise ArgumentError(
                "prefetch_queue_depth is a number or {'cpu_size': …, 'gpu_size': …}, but got "
                f"{prefetch_queue_depth}"
            )
        prefetch_queue_depth = max(prefetch_queue_depth.values())
    for name, value in (("batch_size", batch_size), ("num_threads", num_threads)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ArgumentError(f"{name} is a positive number, but got {value!r}")
    if not isinstance(prefetch_queue_depth, int) or prefetch_queue_depth < 1:
        raise ArgumentError(
            f"prefetch_queue_depth is a positive number, but got {prefetch_queue_depth!r}"
        )
    return Options(
        batch_size=1 if batch_size is None else batch_size,
        num_threads=1 if num_threads is None else num_threads,
        device_id=None if device_id in (None, -1, CPU_ONLY_DEVICE_ID) else device_id,
        seed=secrets.randbits(31) if seed is None or seed < 0 else int(seed),
        prefetch=prefetch_queue_depth if ahead else 1,
    )


class _Stack(threading.local):
    """The pipelines whose definition is being written in this thread."""

    def __init__(self) -> None:
        self.entries: list[Definition] = []


_stack = _Stack()


class Definition:
    """A graph in the making.

    Used as a context manager it becomes the current one, as DALI's pipelines do.
    """

    def __init__(self) -> None:
        self._outputs: tuple[DataNode, ...] | None = None
        self._sinks: list[DataNode] = []

    def __enter__(self) -> Any:
        _stack.entries.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert _stack.entries.pop() is self

    @staticmethod
    def current() -> Definition | None:
        """The pipeline whose definition is being written, or None."""
        return _stack.entries[-1] if _stack.entries else None

    def set_outputs(self, *outputs: Any) -> None:
        """Say what the pipeline gives: nodes, or values that are the same for all samples.

        Raises:
            GraphError: an output is neither.
        """
        self._outputs = tuple(self._as_output(i, output) for i, output in enumerate(outputs))

    @staticmethod
    def _as_output(index: int, output: Any) -> DataNode:
        if isinstance(output, list | tuple) and any(isinstance(o, DataNode) for o in output):
            raise GraphError(
                f"output {index} of the pipeline is a list of nodes; return a tuple of nodes, "
                f"or stack them with fn.stack"
            )
        try:
            return as_node(output)
        except ArgumentError as error:
            raise GraphError(f"output {index} of the pipeline: {error}") from None

    def add_sink(self, node: DataNode) -> None:
        """Keep a node although no output needs it."""
        self._sinks.append(node)

    def define_graph(self) -> Any:
        """Return the outputs. Subclasses override it; `set_outputs` makes it unnecessary."""
        raise GraphError("the pipeline has no outputs: call set_outputs, or override define_graph")

    @property
    def output_nodes(self) -> tuple[DataNode, ...]:
        """The outputs, written by `define_graph` when first asked for."""
        if self._outputs is None:
            with self:
                outputs = self.define_graph()
            self.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
        assert self._outputs is not None
        return self._outputs

    @property
    def sinks(self) -> Sequence[DataNode]:
        return self._sinks


def not_in_this_version(what: str, instead: str) -> NoReturn:
    """Refuse an argument of DALI's that forebay does not have yet."""
    raise ArgumentError(f"{what} is not in this version of forebay; {instead}")


def check_output_forms(
    count: int,
    dtype: Any,
    ndim: Any,
    layout: Any,
) -> list[tuple[DALIDataType | None, int | None, str | None]]:
    """What `output_dtype`, `output_ndim` and `output_layout` demand of each of `count` outputs."""
    columns = []
    for name, value in (("dtype", dtype), ("ndim", ndim), ("layout", layout)):
        column = list(value) if isinstance(value, list | tuple) else [value] * count
        if len(column) != count:
            raise ArgumentError(
                f"output_{name} has {len(column)} values, but the pipeline has {count} outputs"
            )
        columns.append(column)
    return list(zip(*columns, strict=True))
