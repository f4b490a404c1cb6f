"""How a call of an operator becomes a node. `fn`, `ops` and the syntax of nodes all end here."""

from __future__ import annotations

import operator as builtin_operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch

from forebay.define.constant import check_fits, constant_array, scalar_array
from forebay.define.names import unknown_operator
from forebay.define.node import DataNode, Node
from forebay.define.origin import caller
from forebay.errors import (
    ArgumentError,
    PlacementError,
    UnknownArgumentError,
)
from forebay.operators._argument import Argument, suggestion
from forebay.operators._operator import Operator, discover
from forebay.operators._schema import Schema
from forebay.types import DALIDataType, ScalarConstant, is_number, writes_constants

GENERIC = {
    "name": "the node's name, unique within the pipeline.",
    "device": "where the operator runs",
    "seed": "the seed of a random operator; nodes with equal seeds draw equal numbers.",
    "preserve": "keep the node even if no output needs it.",
    "bytes_per_sample_hint": "no effect: memory is sized from the data.",
}
"""The arguments that every operator has, and what they do."""


def generic_docs(operator: Operator) -> dict[str, str]:
    """Those of them that an operator takes: a seed is for random ones."""
    docs = {**GENERIC, "device": f"{GENERIC['device']}: {operator.where()}."}
    return {name: doc for name, doc in docs.items() if name != "seed" or operator.uses_rng}


def find_operator(name: str) -> Operator:
    """The operator of this name. Raises UnknownOperatorError that suggests the nearest name."""
    known = discover()
    if name not in known:
        raise unknown_operator(name)
    return known[name]


def find_argument(operator: Operator, name: str) -> Argument:
    """The argument of this name. Raises UnknownArgumentError that suggests the nearest name."""
    known = operator.schema.arguments
    if name not in known:
        near = suggestion(name, [*known, *GENERIC])
        raise UnknownArgumentError(f"{operator.name} has no argument '{name}'{near}")
    return known[name]


def write_node(name: str, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> Any:
    """Write one call of an operator into the graph.

    Args:
        name: the operator's name.
        inputs: nodes, or values that are the same for all samples (numbers, arrays, constants). If
            an input is a list of nodes, the operator is called once for each.
        arguments: keyword arguments, the generic ones included.

    Returns:
        A DataNode; a list of them for several outputs; an empty list for none; a dict if the
        operator's outputs have names.

    Raises:
        ArgumentError: an argument is unknown, missing, of a wrong type or out of range, or the
            number of inputs is wrong.
        PlacementError: the operator does not run on that device.
    """
    operator = find_operator(name)
    if any(isinstance(i, list) and i and isinstance(i[0], DataNode) for i in inputs):
        return _for_each(name, inputs, arguments)
    try:
        node = _make(operator, inputs, arguments)
    except ArgumentError as error:
        raise type(error)(f"fn.{name}: {error}") from error.__cause__
    results = list(node.results())
    names = operator.output_names(node.constants)
    if names is not None:
        return dict(zip(names, results, strict=True))
    return results[0] if len(results) == 1 else results


def _for_each(name: str, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> list[Any]:
    counts = {len(i) for i in inputs if isinstance(i, list)}
    if len(counts) != 1:
        raise ArgumentError(f"fn.{name}: lists of inputs have different lengths {sorted(counts)}")
    sets = zip(*(i if isinstance(i, list) else [i] * min(counts) for i in inputs), strict=True)
    return [write_node(name, list(one), arguments) for one in sets]


def _make(operator: Operator, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> Node:
    check_count(operator.schema, len(inputs))
    given = {k: v for k, v in arguments.items() if v is not None}
    generic = {k: given.pop(k) for k in GENERIC if k in given}
    if "seed" in generic and "seed" not in generic_docs(operator):
        raise ArgumentError("takes no 'seed': it draws no random numbers")
    constants, varying = _arguments(operator, given)
    nodes = tuple(as_node(value) for value in inputs)
    return Node(
        operator=operator,
        inputs=nodes,
        constants=constants,
        varying=varying,
        device=_device(operator, nodes, generic.get("device")),
        outputs=operator.outputs(constants),
        origin=caller(),
        name=generic.get("name"),
        seed=None if generic.get("seed", -1) == -1 else builtin_operator.index(generic["seed"]),
        preserve=bool(generic.get("preserve", False)),
        guards=() if operator.schema.level == "source" else _guards.get(),
    )


def check_count(schema: Schema, count: int) -> None:
    """Raise ArgumentError if an operator does not take so many inputs."""
    least, most = schema.min_inputs, schema.max_inputs
    if not least <= count <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise ArgumentError(f"takes {wanted} inputs, but got {count}")


def _arguments(
    operator: Operator, given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, DataNode]]:
    schema = operator.schema
    constants: dict[str, Any] = {}
    varying: dict[str, DataNode] = {}
    for name, value in given.items():
        argument = find_argument(operator, name)
        if isinstance(value, DataNode):
            if not argument.per_sample:
                raise ArgumentError(f"argument '{name}' must be a constant, but got {value!r}")
            varying[name] = value
        else:
            constants[name] = argument.constant(value)
    for argument in schema.arguments.values():
        if argument.required and argument.name not in given:
            raise ArgumentError(f"needs the argument '{argument.name}'")
    operator.check({**constants, **varying})
    return constants, varying


_default_device: ContextVar[str | None] = ContextVar("device", default=None)


@contextmanager
def default_device(device: str | None) -> Iterator[None]:
    """While a graph is written, the device of operators that say none."""
    token = _default_device.set(device)
    try:
        yield
    finally:
        _default_device.reset(token)


Guard = tuple[DataNode, bool]
_guards: ContextVar[tuple[Guard, ...]] = ContextVar("guards", default=())


def guards() -> tuple[Guard, ...]:
    """Under which conditions nodes that are written now will run."""
    return _guards.get()


def set_guards(under: tuple[Guard, ...]) -> None:
    """Have nodes that are written from now on run for samples whose predicates are as said."""
    _guards.set(under)


@contextmanager
def guarded(*more: Guard) -> Iterator[None]:
    """Nodes written meanwhile run for the samples whose predicates have these values too."""
    before = _guards.get()
    _guards.set((*before, *more))
    try:
        yield
    finally:
        _guards.set(before)


def _device(operator: Operator, inputs: Sequence[DataNode], device: str | None) -> str:
    default = _default_device.get()
    if device is None and default in operator.devices:
        return default
    if device is None:
        on_gpu = any(node.device == "gpu" for node in inputs) and "gpu" in operator.devices
        return "gpu" if on_gpu else "cpu"
    if device not in operator.devices:
        raise PlacementError(
            f"fn.{operator.name} runs on {operator.where()}, but device={device!r}"
        )
    return device


def write_arithmetic(operation: str, *operands: Any) -> DataNode:
    """Write one operation on numbers. Raises ArgumentError, also for a constant out of range."""
    for operand in operands:
        if isinstance(operand, ScalarConstant):
            check_fits(operand)
    node: DataNode = write_node("arithmetic", operands, {"operation": operation})
    return node


def as_node(value: Any) -> DataNode:
    """`value` if it is a node; else a node of the constant that it is. Raises ArgumentError."""
    if isinstance(value, DataNode):
        return value
    if not isinstance(
        value, ScalarConstant | int | float | list | tuple | np.ndarray | np.generic | torch.Tensor
    ):
        raise ArgumentError(
            f"a node, a number or an array is needed, but got {value!r} ({type(value).__name__})"
        )
    if is_number(value):
        value = ScalarConstant(value)
    if isinstance(value, ScalarConstant):
        return _literal(scalar_array(value))
    return _literal(constant_array(value))


@writes_constants
def write_constant(
    value: Any,
    dtype: DALIDataType | None,
    shape: Sequence[int] | None,
    layout: str | None,
    device: str | None,
    arguments: Mapping[str, Any],
) -> DataNode:
    """Write the node of a constant. See `types.Constant`."""
    for name in arguments:
        if name not in GENERIC:
            near = suggestion(name, ["dtype", "shape", "layout", *GENERIC])
            raise UnknownArgumentError(f"types.Constant has no argument '{name}'{near}")
    array = constant_array(value, dtype, shape, layout)
    return _literal(array, layout=layout, device=device, **arguments)


def _literal(array: np.ndarray[Any, Any], **arguments: Any) -> DataNode:
    node: DataNode = write_node("literal", (), {"value": array, **arguments})
    return node
