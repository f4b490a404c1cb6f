"""What is fed to a pipeline by hand, until its batch is scheduled."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from forebay.batch import Batch
from forebay.define.node import DataNode, Node
from forebay.errors import ArgumentError, SourceError


class Feed:
    """Batches in the order in which they were fed, for each input. Any thread may put some."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Batch]] = {}
        self._last: dict[str, Batch] = {}
        self._changed = threading.Condition()

    def put(self, name: str, batch: Batch) -> None:
        with self._changed:
            self._waiting.setdefault(name, deque()).append(batch)
            self._changed.notify_all()

    def is_there(self, inputs: Mapping[str, Node]) -> bool:
        """Whether something new waits for every input."""
        return all(self._waiting.get(name) for name in inputs)

    def take(self, inputs: Mapping[str, Node]) -> dict[Node, Batch]:
        """A batch of each input; none is taken if one is missing.

        Inputs that are `blocking` are waited for; those that `repeat_last` give what they gave last
        if there is nothing new.

        Raises:
            SourceError: an input was not fed.
        """
        with self._changed:
            for name, node in inputs.items():
                while not self._waiting.get(name) and node.constants["blocking"]:
                    self._changed.wait()
                if not self._waiting.get(name) and name not in self._last:
                    raise SourceError(
                        f"input '{name}' (external_source at {node.origin}) was not fed: call "
                        f"feed_input('{name}', data) or run({name}=data) before each batch"
                    )
            return {node: self._take_one(name, node) for name, node in inputs.items()}

    def _take_one(self, name: str, node: Node) -> Batch:
        waiting = self._waiting.get(name)
        batch = waiting.popleft() if waiting else self._last[name]
        if node.constants["repeat_last"]:
            self._last[name] = batch
        return batch

    def clear(self) -> None:
        """Forget what waits."""
        with self._changed:
            self._waiting.clear()


def label_of(data_node: Any) -> str:
    """The name of the source that a name or a node stands for."""
    if isinstance(data_node, DataNode):
        return data_node.node.label
    if isinstance(data_node, str):
        return data_node
    raise ArgumentError(
        f"data_node is the name or the node of an external source, but got {data_node!r} "
        f"({type(data_node).__name__})"
    )


def fed_batch(name: str, node: Node, data: Any, layout: str | None, most: int) -> Batch:
    """The batch that was fed to an input. Raises SourceError if it cannot be one."""
    try:
        batch: Batch = node.constants["form"].batch(data, copy=not node.constants["no_copy"])
    except SourceError as error:
        raise type(error)(f"input '{name}': {error}") from error.__cause__
    if layout is not None:
        _set_layout(name, batch, layout)
    if not 0 < len(batch) <= most:
        raise SourceError(
            f"input '{name}' was fed {len(batch)} samples for a batch of 1 to {most} "
            f"(the pipeline's batch_size)"
        )
    return batch


def _set_layout(name: str, batch: Batch, layout: str) -> None:
    """Give a batch the layout that it was fed with."""
    if not isinstance(layout, str) or len(layout) != batch.ndim():
        raise SourceError(f"input '{name}': {layout!r} is no layout of {batch.ndim()} axes")
    if batch.layout() not in ("", layout):
        raise SourceError(
            f"input '{name}' was fed the layout {layout!r}, but is defined with {batch.layout()!r}"
        )
    for sample in batch.samples:
        sample.layout = layout
