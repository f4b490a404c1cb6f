"""What the source of a function says, and pieces of new source."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def assigned(statements: Sequence[ast.AST]) -> dict[str, ast.expr]:
    """What they assign, by its text: names, attributes of names, items whose key stays the same."""
    stored = list(_stored(statements))
    names = frozenset(node.id for node in stored if isinstance(node, ast.Name))
    return {
        ast.unparse(node): node
        for node in stored
        if isinstance(node, ast.Name) or (is_place(node, names) and root(node) not in names)
    }


def _stored(statements: Sequence[ast.AST]) -> Iterator[ast.expr]:
    waiting = list(reversed(statements))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            yield ast.Name(node.name, ast.Store())
        if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            continue
        if isinstance(getattr(node, "ctx", None), ast.Store):
            yield cast(ast.expr, node)
        waiting += reversed(list(ast.iter_child_nodes(node)))


def is_place(node: ast.AST, changing: frozenset[str]) -> bool:
    """Whether it can be read and written again, while these names change."""
    if isinstance(node, ast.Subscript):
        key = node.slice
        fixed = isinstance(key, ast.Constant) or (
            isinstance(key, ast.Name) and key.id not in changing
        )
        return fixed and is_place(node.value, changing)
    return isinstance(node, ast.Name) or (
        isinstance(node, ast.Attribute) and is_place(node.value, changing)
    )


def root(node: ast.AST) -> str | None:
    """The name that an attribute or item is of."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


class Tails:
    """Moves what follows an `if` that may jump into its branches.

    So that `if a: return b` and `return c` become the two branches of one `if`. What follows an
    `if` that may or may not jump is there twice then, so there is a limit.
    """

    _LIMIT = 500

    def __init__(self, jump: type[ast.stmt]) -> None:
        self._jump = jump
        self._copies = 0

    def move(self, body: list[ast.stmt]) -> list[ast.stmt]:
        for number, statement in enumerate(body):
            if isinstance(statement, self._jump):
                return body[: number + 1]
            if isinstance(statement, ast.If) and _jumps(statement, self._jump):
                rest = body[number + 1 :]
                self._copies += 1
                if self._copies > self._LIMIT:
                    raise SyntaxError("too many branches that may or may not return")
                statement.body = self.move([*statement.body, *copy.deepcopy(rest)])
                statement.orelse = self.move([*statement.orelse, *rest])
                return body[: number + 1]
        return body


def _jumps(node: ast.stmt, jump: type[ast.stmt]) -> bool:
    """Whether a branch of an `if`, or of one in it, has such a statement."""
    if isinstance(node, jump):
        return True
    return isinstance(node, ast.If) and any(_jumps(s, jump) for s in [*node.body, *node.orelse])


def last_jumps(body: Sequence[ast.stmt], jump: type[ast.stmt], depth: int = 0) -> set[ast.stmt]:
    """The jumps that end a branch of the `if` at the end."""
    if not body:
        return set()
    last = body[-1]
    if isinstance(last, ast.If):
        branches = (last.body, last.orelse)
        return set().union(*(last_jumps(branch, jump, depth + 1) for branch in branches))
    return {last} if depth and isinstance(last, jump) else set()


def replaced(
    body: Sequence[ast.stmt], which: set[ast.stmt], by: Callable[[Any], ast.stmt]
) -> list[ast.stmt]:
    made = []
    for statement in body:
        if isinstance(statement, ast.If):
            statement.body = replaced(statement.body, which, by)
            statement.orelse = replaced(statement.orelse, which, by)
        made.append(by(statement) if statement in which else statement)
    return made


def as_pass(node: ast.Continue) -> ast.stmt:
    return at(node, ast.Pass())


def binds(node: ast.AST) -> bool:
    """Whether it does what a lambda around it would change."""
    kinds = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return any(isinstance(n, kinds) for n in ast.walk(node))


N = TypeVar("N", bound=ast.AST)


def at(where: ast.AST, made: N) -> N:
    return ast.copy_location(made, where)


def changed(target: ast.expr, context: ast.expr_context) -> ast.expr:
    made = copy.deepcopy(target)
    made.ctx = context  # type: ignore[attr-defined]  # targets have one
    return made


def assign(target: ast.expr, value: ast.expr, where: ast.AST) -> ast.stmt:
    return at(where, ast.Assign([changed(target, ast.Store())], value))


def thunk(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def call(holder: str, method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(
        ast.Attribute(ast.Name(holder, ast.Load()), method, ast.Load()), list(arguments), []
    )
