"""What a pipeline is before it runs: its graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forebay.define.call import as_node
from forebay.define.current import current, stack
from forebay.define.node import DataNode
from forebay.errors import ArgumentError, GraphError


class Definition:
    """A graph in the making.

    Used as a context manager it becomes the current one, as DALI's pipelines do.
    """

    def __init__(self) -> None:
        self.token = object()  # nodes know whose they are by it, and do not keep the pipeline alive
        self._outputs: tuple[DataNode, ...] | None = None
        self._sinks: list[DataNode] = []

    def __enter__(self) -> Any:
        self.push_current(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert stack.entries.pop() is self

    @staticmethod
    def current() -> Definition | None:
        """The pipeline whose definition is being written, or None."""
        found: Definition | None = current()
        return found

    @staticmethod
    def push_current(definition: Definition) -> None:
        """Make a pipeline the current one, as ``with`` does."""
        stack.entries.append(definition)

    @staticmethod
    def pop_current() -> None:
        """Make the pipeline current that was so before."""
        stack.entries.pop()

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
            node = as_node(output)
        except ArgumentError as error:
            raise GraphError(f"output {index} of the pipeline: {error}") from None
        if node.node.guards:
            raise GraphError(
                f"output {index} of the pipeline is made at {node.node.origin} in a branch of an "
                f"`if`: assign it to a variable in both branches"
            )
        return node

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
            if outputs is None:
                raise GraphError(
                    f"{type(self).__name__}.define_graph returned None: return the nodes that are "
                    f"the pipeline's outputs"
                )
            self.set_outputs(*(outputs if isinstance(outputs, list | tuple) else (outputs,)))
        assert self._outputs is not None
        return self._outputs

    @property
    def sinks(self) -> Sequence[DataNode]:
        return self._sinks
