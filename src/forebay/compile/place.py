"""Pass 2: every node gets a device that is there."""

from __future__ import annotations

from collections.abc import Sequence

from forebay.define.node import Node
from forebay.errors import PlacementError
from forebay.operators._operator import RUNNABLE


def check_devices(nodes: Sequence[Node]) -> None:
    """Raise PlacementError for the first node that cannot run here, with what to change."""
    for node in nodes:
        if node.device in RUNNABLE:
            continue
        fed = node.inputs[0].node if node.operator.name == "to_device" else None
        if fed is not None and fed.is_source and fed.origin == node.origin:
            written = f"fn.{fed.operator.name}(device='gpu')"
            change = "write device='cpu' or leave it out"
        elif fed is not None:
            written, change = "a node's .gpu()", "remove .gpu()"
        else:
            written = f"fn.{node.operator.name}(device={node.device!r})"
            change = "write device='cpu' or leave it out"
        raise PlacementError(
            f"{written} at {node.origin} needs the GPU executor, which this version of forebay "
            f"does not have: {change} to run it on the CPU"
        )
