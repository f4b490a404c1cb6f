"""Pass 1: the nodes that the outputs need, in an order in which they can run."""

from __future__ import annotations

from collections.abc import Sequence

from forebay.define.node import DataNode, Node
from forebay.errors import GraphError


def needed_nodes(outputs: Sequence[DataNode], owner: object = None) -> list[Node]:
    """All nodes that the outputs depend on, in the order of their creation.

    Args:
        outputs: of the pipeline; and nodes that are kept besides.
        owner: the pipeline's token.

    Raises:
        GraphError: two nodes have one name, one was written in the definition of another pipeline,
            or there are no outputs; a node is used outside the branch of `if` that it is made in.
    """
    if not outputs:
        raise GraphError("the pipeline has no outputs; return at least one node")
    found: dict[Node, None] = {}
    waiting = [output.node for output in outputs]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += [needed.node for needed in node.needs]
    nodes = sorted(found, key=lambda node: node.serial)
    names: dict[str, Node] = {}
    for node in nodes:
        if node.owner not in (None, owner):
            raise GraphError(
                f"{node.operator.name} at {node.origin} belongs to another pipeline; write the "
                f"node in the definition of the pipeline that uses it"
            )
        for used in node.needs:
            _check_branch(used.node, node)
        if node.name is not None and names.setdefault(node.name, node) is not node:
            raise GraphError(
                f"two nodes are named '{node.name}': at {names[node.name].origin} and {node.origin}"
            )
    return nodes


def _check_branch(used: Node, user: Node) -> None:
    """A value is there for the samples that took its branches; a merge has one of two."""
    needed, taken = _branches(used), _branches(user)
    if user.operator.name == "merge" and len(needed) > len(taken):
        chosen = user.inputs[0]
        if needed[len(taken)][:2] == (chosen.node, chosen.index):
            taken.append(needed[len(taken)])
    if needed != taken[: len(needed)]:
        raise GraphError(
            f"{used.operator.name} at {used.origin} is made in a branch of an `if`, and used at "
            f"{user.origin} by samples that may not have taken it: assign it to a variable in both "
            f"branches"
        )


def _branches(node: Node) -> list[tuple[Node, int, bool]]:
    return [(predicate.node, predicate.index, value) for predicate, value in node.guards]
