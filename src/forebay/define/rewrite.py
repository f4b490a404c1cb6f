"""User code with `if` on nodes becomes code that writes both branches.

A function's source is parsed, and its `if` statements, conditional expressions, `and`, `or`, `not`
and calls are replaced by what calls `conditional`; then it is compiled again with its own globals,
closure, file and lines. So tracebacks and debuggers show the user's code. For

    if test: y = a
    else: y = b

the function gets

    c = conditional.If(test, ['y']); c.note(lambda: y)
    if c.takes(True):
        c.enter(True); y = a; c.note(lambda: y); c.leave()
    if c.on_node: y = c.value(0)              # as before the `if`
    if c.takes(False):
        c.enter(False); y = b; c.note(lambda: y); c.leave()
    if c.on_node: y = c.value(0)              # merged

and wherever an exception may be caught, the guards that were left are set again.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any, TypeVar, cast

from forebay.define import conditional, syntax
from forebay.define.call import guards, set_guards

_NAME = "__forebay__"
_RESULT = "__forebay_result__"
_KEEP = "__forebay_do_not_convert__"
F = TypeVar("F", bound=Callable[..., Any])


def do_not_convert(function: F) -> F:
    """Mark a function whose `if` statements are never on nodes: it is called as it is written."""
    setattr(function, _KEEP, True)
    return function


def converted(function: Any) -> Any:
    """The function with conditionals, if it is one of the user's own; else what was given."""
    if isinstance(function, MethodType):
        return MethodType(converted(function.__func__), function.__self__)
    called = getattr(type(function), "__call__", None)  # noqa: B004 - it is the function that counts
    if isinstance(called, FunctionType) and not isinstance(function, type):
        return function if (made := converted(called)) is called else MethodType(made, function)
    if isinstance(function, functools.partial):
        return functools.partial(converted(function.func), *function.args, **function.keywords)
    if not isinstance(function, FunctionType) or not _is_users(function):
        return function
    try:
        return convert(function)
    except (OSError, SyntaxError):  # it may have no `if` on a node
        return function


def _is_users(function: FunctionType) -> bool:
    done = _NAME in function.__code__.co_freevars
    if done or hasattr(function, _KEEP) or function.__name__ == "<lambda>":
        return False
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        return False
    root = function.__module__.partition(".")[0] if function.__module__ else ""
    installed = "site-packages" in function.__code__.co_filename
    return root not in sys.stdlib_module_names and root != "forebay" and not installed


def convert(function: FunctionType) -> FunctionType:
    """The function with conditionals.

    Raises:
        OSError: its source cannot be found.
        SyntaxError: it has too many branches that may or may not return.
    """
    code = _converted_code(function.__code__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[_NAME] = _cell(_RUNTIME)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made = cast(FunctionType, functools.update_wrapper(made, function))
    del made.__wrapped__  # type: ignore[attr-defined]  # it is no wrapper
    setattr(made, _KEEP, True)
    return made


@functools.lru_cache(maxsize=1024)
def _converted_code(code: CodeType) -> CodeType:
    lines, first = inspect.getsourcelines(code)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, first - 1)
    (definition,) = tree.body
    if not isinstance(definition, ast.FunctionDef):
        raise OSError(f"the source of {code.co_name} is no function definition")
    definition.decorator_list = []
    parents = code.co_qualname.split(".")[:-1]
    owner = parents[-1] if parents and parents[-1] != "<locals>" else None
    definition = _Rewriter(owner).function(definition)
    # Within a function that has the free names as parameters they are free again.
    factory = ast.parse(f"def factory({', '.join((*code.co_freevars, _NAME))}): pass").body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body = [definition]
    module = ast.fix_missing_locations(ast.Module([factory], []))
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True, flags=_futures(code))
    return _code_named(definition.name, _code_named("factory", compiled))


def _code_named(name: str, code: CodeType) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def _futures(code: CodeType) -> int:
    import __future__

    flags = (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names)
    return sum(flag & code.co_flags for flag in flags)


@dataclass(frozen=True)
class _Open:
    """An `if` around what is visited: the variable that it has, and the names assigned in it."""

    name: str
    assigned: frozenset[str]


class _Rewriter(ast.NodeTransformer):
    """Rewrites one function, and those within it.

    Args:
        owner: the class whose method it is, for names that Python mangles.
    """

    def __init__(self, owner: str | None) -> None:
        self._owner = owner
        self._self: str | None = None  # the function's first parameter
        self._open: list[_Open] = []
        self._outside = 0  # so many of them are outside the innermost loop
        self._count = 0

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        state = self._open, self._outside, self._self
        parameters = [*node.args.posonlyargs, *node.args.args]
        self._open, self._outside = [], 0
        self._self = parameters[0].arg if parameters else None
        node.body = syntax.Tails(ast.Return).move(node.body)
        results = syntax.last_jumps(node.body, ast.Return)
        if results:
            begin = syntax.assign(ast.Name(_RESULT), ast.Constant(None), node)
            end = syntax.at(node.body[-1], ast.Return(ast.Name(_RESULT, ast.Load())))
            node.body = [begin, *syntax.replaced(node.body, results, _as_result), end]
        node.body = self._statements(node.body)
        self._open, self._outside, self._self = state
        return node

    def _variable(self, kind: str) -> str:
        self._count += 1
        return f"__forebay_{kind}_{self._count}__"

    def _statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            made = self.visit(statement)
            result += made if isinstance(made, list) else [made]
        return result

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return self.function(node)

    def visit_AsyncFunctionDef(self, node: ast.AST) -> ast.AST:
        return node

    visit_ClassDef = visit_AsyncFunctionDef  # noqa: N815

    # ── statements ───────────────────────────────────────────────────────────────────────────────

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        name = self._variable("if")
        found = syntax.assigned([*node.body, *node.orelse])
        targets = list(found.values())
        texts = ast.List([ast.Constant(text) for text in found], ast.Load())
        note = [syntax.thunk(syntax.changed(target, ast.Load())) for target in targets]
        made: list[ast.stmt] = [
            syntax.assign(
                ast.Name(name), syntax.call(_NAME, "If", self.visit(node.test), texts), node.test
            ),
            syntax.at(node.test, ast.Expr(syntax.call(name, "note", *note))),
        ]
        self._open.append(_Open(name, frozenset(t.id for t in targets if isinstance(t, ast.Name))))
        for branch, body in ((True, node.body), (False, node.orelse)):
            chosen = ast.Constant(branch)
            written = self._statements(body)
            last = written[-1] if written else node.test
            steps = [
                syntax.at(node.test, ast.Expr(syntax.call(name, "enter", chosen))),
                *written,
                syntax.at(last, ast.Expr(syntax.call(name, "note", *copy.deepcopy(note)))),
                syntax.at(last, ast.Expr(syntax.call(name, "leave"))),
            ]
            made.append(syntax.at(node.test, ast.If(syntax.call(name, "takes", chosen), steps, [])))
            if targets:
                values: list[ast.stmt] = [
                    syntax.assign(
                        syntax.changed(target, ast.Store()),
                        syntax.call(name, "value", ast.Constant(number)),
                        node.test,
                    )
                    for number, target in enumerate(targets)
                ]
                on_node = ast.Attribute(ast.Name(name, ast.Load()), "on_node", ast.Load())
                made.append(syntax.at(node.test, ast.If(on_node, values, [])))
        self._open.pop()
        return made

    def _visit_loop(self, node: ast.For | ast.While) -> ast.AST:
        outside, self._outside = self._outside, len(self._open)
        node.body = syntax.Tails(ast.Continue).move(node.body)
        skips = syntax.last_jumps(node.body, ast.Continue)
        node.body = self._statements(syntax.replaced(node.body, skips, syntax.as_pass))
        self._outside = outside
        node.orelse = self._statements(node.orelse)
        for field in ("test", "iter"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        return node

    visit_For = visit_While = _visit_loop  # noqa: N815

    def _visit_catching(self, node: ast.Try | ast.With) -> list[ast.stmt]:
        """Where an exception may be caught, it may have left branches."""
        self.generic_visit(node)
        name = self._variable("guards")
        before = syntax.assign(ast.Name(name), syntax.call(_NAME, "guards"), node)

        def again(at: ast.AST) -> ast.stmt:
            guards = ast.Name(name, ast.Load())
            return syntax.at(at, ast.Expr(syntax.call(_NAME, "set_guards", guards)))

        if isinstance(node, ast.With):
            return [before, node, again(node)]
        for handler in node.handlers:
            handler.body.insert(0, again(handler.body[0]))
        if node.finalbody:
            node.finalbody.insert(0, again(node.finalbody[0]))
        return [before, node]

    visit_Try = visit_With = _visit_catching  # noqa: N815

    def _visit_store(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> list[ast.stmt]:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        checks = []
        for target in [node for given in targets for node in ast.walk(given)]:
            stored = isinstance(getattr(target, "ctx", None), ast.Store)
            if not stored or not isinstance(target, ast.Subscript | ast.Attribute):
                continue
            root = syntax.root(target)
            checks += [
                syntax.at(
                    node,
                    ast.Expr(syntax.call(o.name, "storing", ast.Constant(ast.unparse(target)))),
                )
                for o in self._open
                if not syntax.is_place(target, o.assigned) and root not in o.assigned
            ]
        self.generic_visit(node)
        return [*checks, node]

    visit_Assign = visit_AugAssign = visit_AnnAssign = _visit_store  # noqa: N815

    def _visit_jump(self, node: ast.stmt) -> list[ast.stmt]:
        inner = self._open if isinstance(node, ast.Return) else self._open[self._outside :]
        word = type(node).__name__.lower()
        checks = [ast.Expr(syntax.call(o.name, "leaving", ast.Constant(word))) for o in inner]
        self.generic_visit(node)
        return [*(syntax.at(node, check) for check in checks), node]

    visit_Return = visit_Break = visit_Continue = _visit_jump  # noqa: N815

    # ── expressions ──────────────────────────────────────────────────────────────────────────────

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if syntax.binds(node):
            return node
        name = "both" if isinstance(node.op, ast.And) else "either"
        return syntax.at(node, syntax.call(_NAME, name, *map(syntax.thunk, node.values)))

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if syntax.binds(node):
            return node
        return syntax.at(
            node,
            syntax.call(
                _NAME, "choose", node.test, syntax.thunk(node.body), syntax.thunk(node.orelse)
            ),
        )

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return syntax.at(node, syntax.call(_NAME, "negated", node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """``a < b < c`` is ``a < b and b < c``."""
        self.generic_visit(node)
        if len(node.ops) == 1 or syntax.binds(node):
            return node
        pairs = zip(node.ops, node.comparators, strict=True)
        rest = [
            part for op, b in pairs for part in (ast.Constant(type(op).__name__), syntax.thunk(b))
        ]
        return syntax.at(node, syntax.call(_NAME, "compare", node.left, *rest))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name == "super" and not node.args and self._self is not None:
            # Within a lambda Python would not find them.
            node.args = [ast.Name("__class__", ast.Load()), ast.Name(self._self, ast.Load())]
        if name not in _IN_PLACE:
            node.func = syntax.at(node.func, syntax.call(_NAME, "converted", node.func))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if self._owner and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self._owner.lstrip('_')}{node.attr}"
        return node


_IN_PLACE = ("super", "locals", "globals", "vars", "dir", "eval", "exec")
"""They look at the function that calls them."""


def _as_result(node: ast.Return) -> ast.stmt:
    return syntax.assign(ast.Name(_RESULT), node.value or ast.Constant(None), node)


_RUNTIME = SimpleNamespace(
    If=conditional.If,
    both=conditional.both,
    either=conditional.either,
    negated=conditional.negated,
    choose=conditional.choose,
    compare=conditional.compare,
    guards=guards,
    set_guards=set_guards,
    converted=converted,
)
"""What rewritten code finds under its own name."""


def _cell(value: Any) -> Any:
    cells = (lambda: value).__closure__
    assert cells is not None
    return cells[0]
