"""`if`, `and`, `or` and `not` on nodes: what rewritten user code calls.

Both branches of an `if` on a node are written into the graph. The nodes of a branch carry its
*guard*, so that they run for the samples that take it and for no others. Where the two branches
leave different values in a variable, the variable becomes a node that gives each sample the value
of its branch. With a condition that is no node everything is as in Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from forebay.define.call import as_node, guarded, guards, set_guards, write_node
from forebay.define.node import DataNode
from forebay.define.origin import Origin, caller
from forebay.errors import ArgumentError, NodeUseError
from forebay.types import ScalarConstant

Value = Callable[[], Any]
"""An expression of the user's code, not evaluated yet."""


class If:
    """One `if` statement, on its way through its branches.

    Args:
        condition: the value of its test.
        names: the variables that its branches assign, as they are written.
    """

    def __init__(self, condition: Any, names: Sequence[str] = ()) -> None:
        self.on_node = isinstance(condition, DataNode)
        self._chosen: Any = _predicate(condition) if self.on_node else bool(condition)
        self._names = names
        self._noted: list[list[Any]] = []
        self._outside = guards()
        self._origin = caller()

    def takes(self, branch: bool) -> bool:
        """Whether the branch is to be written."""
        return self.on_node or self._chosen is branch

    def enter(self, branch: bool) -> None:
        """The nodes of a branch follow."""
        self._outside = guards()
        if self.on_node:
            set_guards((*self._outside, (self._chosen, branch)))

    def leave(self) -> None:
        """The branch is written."""
        set_guards(self._outside)

    def note(self, *values: Value) -> None:
        """Note the variables: before the branches, and at the end of each."""
        if self.on_node:
            self._noted.append(list(map(self._evaluated, values, self._names)))

    def _evaluated(self, value: Value, name: str) -> Any:
        try:
            return value()
        except (NameError, AttributeError, LookupError):
            return Missing(f"'{name}' has no value in one branch of the `if` at {self._origin}")

    def value(self, number: int) -> Any:
        """What a variable is to be: after the first branch as before it, at the end merged."""
        values = [noted[number] for noted in self._noted]
        if len(values) == 2:
            return values[0]
        return _merge(self._chosen, values[1], values[2], self._names[number], self._origin)

    def leaving(self, statement: str) -> None:
        """Refuse to leave the branch by a statement that some samples would not take."""
        if self.on_node:
            raise NodeUseError(
                f"`{statement}` in a loop, `with` or `try` inside the `if` on a node at "
                f"{self._origin}: some samples would take it and others not"
            )

    def storing(self, target: str) -> None:
        """Refuse an assignment that cannot be undone for the other branch."""
        if self.on_node:
            raise NodeUseError(
                f"an assignment to `{target}` in the `if` on a node at {self._origin} cannot be "
                f"followed: some samples would see it and others not. Assign to a variable, or to "
                f"an item whose key does not change in the branch"
            )


def choose(condition: Any, then: Value, otherwise: Value) -> Any:
    """``then if condition else otherwise``."""
    if not isinstance(condition, DataNode):
        return then() if condition else otherwise()
    return _either(_predicate(condition), then, otherwise, "the conditional expression")


def both(first: Value, *others: Value) -> Any:
    """``first and …``. A node's operands are bools; later ones run where the earlier are true."""
    return _logical(first, others, goes_on=True)


def either(first: Value, *others: Value) -> Any:
    """``first or …``; as `both`."""
    return _logical(first, others, goes_on=False)


def compare(left: Any, name: str, right: Value, *rest: Any) -> Any:
    """``left < right() < …``: the names of comparisons and their operands follow each other."""
    value = right()
    first = _COMPARISONS[name](left, value)
    if not rest:
        return first
    return both(lambda: first, lambda: compare(value, *rest))


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda item, container: item in container,
    "NotIn": lambda item, container: item not in container,
}
"""By the names of the classes in Python's `ast`."""


def negated(operand: Any) -> Any:
    """``not operand``."""
    return _predicate(operand, negate=True) if isinstance(operand, DataNode) else not operand


def _logical(first: Value, others: Sequence[Value], *, goes_on: bool) -> Any:
    result = first()
    for other in others:
        if isinstance(result, DataNode):
            known = _predicate(result, only_bool=True)
            with guarded((known, goes_on)):
                rest = _predicate(as_node(other()), only_bool=True)
            pair = (rest, known) if goes_on else (known, rest)
            result = write_node("merge", (known, *pair), {})
        elif bool(result) is goes_on:
            result = other()
        else:
            return result
    return result


def _either(chosen: DataNode, then: Value, otherwise: Value, name: str) -> Any:
    values = []
    for value, branch in ((then, True), (otherwise, False)):
        with guarded((chosen, branch)):
            values.append(value())
    return _merge(chosen, values[0], values[1], name, caller())


def _predicate(node: DataNode, **options: bool) -> DataNode:
    result: DataNode = write_node("predicate", (node,), options)
    return result


def _merge(chosen: DataNode, then: Any, otherwise: Any, name: str, origin: Origin) -> Any:
    """What stands for `then` or `otherwise`, sample by sample."""
    for missing in (then, otherwise):
        if isinstance(missing, Missing):
            return missing
    if then is otherwise or _equal(then, otherwise):
        return then
    pair = (then, otherwise)
    if all(type(v) in (list, tuple) for v in pair) and any(map(_has_node, pair)):
        if type(then) is type(otherwise) and len(then) == len(otherwise):
            members = zip(then, otherwise, strict=True)
            return type(then)(_merge(chosen, a, b, name, origin) for a, b in members)
    elif all(type(v) is dict for v in pair):
        if then.keys() == otherwise.keys():
            return {k: _merge(chosen, then[k], otherwise[k], name, origin) for k in then}
    else:
        try:
            nodes = []
            for value, branch in ((then, True), (otherwise, False)):
                with guarded((chosen, branch)):
                    nodes.append(as_node(value))
            return write_node("merge", (chosen, *nodes), {})
        except ArgumentError:
            pass
    return Missing(
        f"'{name}' is {_called(then)} in one branch of the `if` at {origin} and "
        f"{_called(otherwise)} in the other"
    )


def _equal(a: Any, b: Any) -> bool:
    """Whether both are the same plain value."""
    plain = (bool, int, float, str, type(None))
    return type(a) is type(b) and isinstance(a, plain) and a == b


def _has_node(value: Sequence[Any]) -> bool:
    return any(
        isinstance(v, DataNode | dict) or (isinstance(v, list | tuple) and _has_node(v))
        for v in value
    )


def _called(value: Any) -> str:
    if isinstance(value, DataNode):
        return repr(value)
    shown = isinstance(value, int | float | str | ScalarConstant | None)
    return repr(value) if shown else f"a {type(value).__name__}"


def _refuse(self: Missing, *_: Any, **__: Any) -> NoReturn:
    raise NodeUseError(self.reason)


class Missing:
    """In the place of a variable that an `if` on a node left without a value. Its use raises."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"<{self.reason}>"

    def __getattr__(self, name: str) -> NoReturn:
        raise NodeUseError(self.reason) if not name.startswith("__") else AttributeError(name)

    __bool__ = __len__ = __iter__ = __getitem__ = __call__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __pow__ = __rpow__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
    __eq__ = __ne__ = _refuse
    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __pos__ = __invert__ = __abs__ = _refuse
