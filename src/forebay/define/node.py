"""Nodes: what user code writes when it calls operators, and what it holds in its hands."""

from __future__ import annotations

import itertools
import operator as builtin_operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from forebay.define.current import current
from forebay.define.origin import Origin
from forebay.errors import NodeUseError
from forebay.operators._operator import Operator
from forebay.operators._source import Source
from forebay.types import INT64, DALIDataType, ScalarConstant

_serial = itertools.count()


@dataclass(frozen=True, eq=False)
class Node:
    """One call of an operator.

    Attributes:
        operator: what is called.
        inputs: the positional inputs.
        constants: validated arguments that are the same for all samples.
        varying: arguments that are nodes: a value per sample.
        device: "cpu", "gpu" or "mixed".
        outputs: how many it has.
        name: unique within a pipeline; None for a name made of the operator's and a number.
        seed: of its random numbers; None to follow the pipeline's.
        preserve: keep it even if no output needs it. Operators with hidden state are always kept.
        origin: the user's line.
        guards: predicates and the values that they must have for a sample, for it to be run.
        source: for an external source, where its data comes from; None if it is fed by hand.
        serial: order of creation.
        owner: the token of the pipeline in whose definition it was written, or None.
    """

    operator: Operator
    inputs: tuple[DataNode, ...]
    constants: Mapping[str, Any]
    varying: Mapping[str, DataNode]
    device: str
    outputs: int
    origin: Origin
    name: str | None = None
    seed: int | None = None
    preserve: bool = False
    guards: tuple[tuple[DataNode, bool], ...] = ()
    source: Source | None = None
    serial: int = field(default_factory=lambda: next(_serial))
    owner: object = field(default_factory=lambda: getattr(current(), "token", None))

    def __post_init__(self) -> None:
        pipeline = current()
        if pipeline is not None and (self.preserve or self.operator.ordered):
            pipeline.add_sink(DataNode(self))

    @property
    def is_source(self) -> bool:
        return self.operator.schema.level == "source"

    @property
    def needs(self) -> tuple[DataNode, ...]:
        """What must be there before it is run."""
        return (*self.inputs, *self.varying.values(), *(predicate for predicate, _ in self.guards))

    @property
    def label(self) -> str:
        """Its name, or its operator's."""
        return self.name or f"{self.operator.name}_{self.serial}"

    def results(self) -> tuple[DataNode, ...]:
        return tuple(DataNode(self, index) for index in range(self.outputs))


def _bound(value: Any) -> Any:
    """A number of an index, which may be a node."""
    if isinstance(value, DataNode):
        return value
    number: Any = value.value if isinstance(value, ScalarConstant) else value
    try:
        return builtin_operator.index(number)
    except TypeError:
        raise NodeUseError(
            f"an index is made of integers, ranges, '...', None and nodes of integer scalars, but "
            f"got {value!r} ({type(value).__name__})"
        ) from None


def _write(operator: str, *inputs: Any, **arguments: Any) -> DataNode:
    from forebay.define.call import write_node  # it imports this module

    return write_node(operator, inputs, arguments)  # type: ignore[no-any-return]


def _compute(symbol: str, *operands: Any) -> DataNode:
    from forebay.define.call import write_arithmetic  # it imports this module

    return write_arithmetic(symbol, *operands)


def _binary(symbol: str, *, reflected: bool = False) -> Callable[[DataNode, Any], DataNode]:
    def method(self: DataNode, other: Any) -> DataNode:
        pair = (other, self) if reflected else (self, other)
        return _compute(symbol, *pair)

    return method


def _unary(symbol: str) -> Callable[[DataNode], DataNode]:
    return lambda self: _compute(symbol, self)


def _unusable(use: str) -> Any:
    def refuse(self: DataNode, *_: Any, **__: Any) -> NoReturn:
        raise NodeUseError(
            f"{self!r} has no value yet when the graph is written, so it cannot be used in {use}. "
            f"It stands for one tensor per sample at run time: compute with it, give it to an "
            f"operator, or use types.Constant for a value that is the same for all samples"
        )

    return refuse


class DataNode:
    """One output of a node: a tensor per sample, once the pipeline runs.

    Arithmetic, comparison, bitwise operators and indexing write further nodes. They work element
    by element, with DALI's type promotion.
    """

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int = 0) -> None:
        self.node = node
        self.index = index

    @property
    def name(self) -> str:
        label = self.node.label
        return label if self.node.outputs == 1 else f"{label}[{self.index}]"

    @property
    def device(self) -> str:
        """Where the data will be: "cpu" or "gpu"."""
        return "cpu" if self.node.device == "cpu" else "gpu"

    def __repr__(self) -> str:
        return f"DataNode(name={self.name!r}, device={self.device!r}, line={self.node.origin})"

    # ── moving and asking ────────────────────────────────────────────────────────────────────────

    def gpu(self) -> DataNode:
        """The same data on the GPU: refused when the pipeline is built, in this version."""
        return self if self.device == "gpu" else _write("to_device", self, device="gpu")

    def cpu(self) -> DataNode:
        """The same data on the CPU."""
        return self if self.device == "cpu" else _write("to_device", self, device="cpu")

    def shape(self, *, dtype: DALIDataType = INT64) -> DataNode:
        """The shape of each sample, as a 1-D tensor."""
        return _write("shapes", self, dtype=dtype)

    def property(self, key: str) -> DataNode:
        """A property of each sample: "source_info" or "layout", as 1-D uint8."""
        return _write("get_property", self, key=key)

    def source_info(self) -> DataNode:
        """Where each sample came from, as 1-D uint8."""
        return self.property("source_info")

    # ── indexing ─────────────────────────────────────────────────────────────────────────────────

    def __getitem__(self, key: Any) -> DataNode:
        pattern: list[str] = []
        bounds: list[Any] = []
        for item in key if isinstance(key, tuple) else (key,):
            if item is Ellipsis:
                pattern.append("...")
            elif item is None:
                pattern.append("newaxis")
            elif isinstance(item, slice):
                given = {n: getattr(item, n) for n in ("start", "stop", "step")}
                pattern.append(":".join("" if v is None else n for n, v in given.items()))
                bounds += [value for value in given.values() if value is not None]
            else:
                pattern.append("index")
                bounds.append(item)
        bounds = [_bound(value) for value in bounds]
        return _write("subscript", self, *bounds, pattern=pattern)

    # ── arithmetic, element by element ───────────────────────────────────────────────────────────

    __add__ = _binary("+")
    __radd__ = _binary("+", reflected=True)
    __sub__ = _binary("-")
    __rsub__ = _binary("-", reflected=True)
    __mul__ = _binary("*")
    __rmul__ = _binary("*", reflected=True)
    __truediv__ = _binary("/")
    __rtruediv__ = _binary("/", reflected=True)
    __floordiv__ = _binary("//")
    __rfloordiv__ = _binary("//", reflected=True)
    __mod__ = _binary("%")
    __rmod__ = _binary("%", reflected=True)
    __pow__ = _binary("**")
    __rpow__ = _binary("**", reflected=True)
    __and__ = _binary("&")
    __rand__ = _binary("&", reflected=True)
    __or__ = _binary("|")
    __ror__ = _binary("|", reflected=True)
    __xor__ = _binary("^")
    __rxor__ = _binary("^", reflected=True)
    __lshift__ = _binary("<<")
    __rlshift__ = _binary("<<", reflected=True)
    __rshift__ = _binary(">>")
    __rrshift__ = _binary(">>", reflected=True)
    __eq__ = _binary("==")  # type: ignore[assignment]  # object's gives a bool
    __ne__ = _binary("!=")  # type: ignore[assignment]  # object's gives a bool
    __lt__ = _binary("<")
    __le__ = _binary("<=")
    __gt__ = _binary(">")
    __ge__ = _binary(">=")
    __neg__ = _unary("-")
    __pos__ = _unary("+")
    __invert__ = _unary("~")
    __abs__ = _unary("abs")

    # ── what a node cannot do ────────────────────────────────────────────────────────────────────

    __bool__ = _unusable(
        "`if`, `while`, `and`, `or`, `not`, unless @pipeline_def has "
        "enable_conditionals=True: then each sample takes its own branch of an `if`"
    )
    __len__ = _unusable("`len`")
    __float__ = _unusable("`float`")
    __int__ = _unusable("`int`")
    __index__ = _unusable("`range` or as an index of a Python list")
    __contains__ = _unusable("`in`")
    __setitem__ = _unusable("an assignment to its elements")
    __array__ = _unusable("numpy functions")
    __array_ufunc__ = None  # so that numpy leaves `array + node` to the node

    def __iter__(self) -> Iterator[Any]:
        raise NodeUseError(
            f"{self!r} is one output, so it cannot be unpacked or iterated over; "
            f"split it with indexing: x[0], x[1]"
        )

    __hash__ = object.__hash__
