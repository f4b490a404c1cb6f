"""User code with `if` on nodes becomes code that writes both branches.

A function's source is parsed, and its `if` statements, conditional expressions, `and`, `or`, `not`
and calls are replaced by what calls `conditional`; then it is compiled again with its own globals,
closure, file and lines. So tracebacks and debuggers show the user's code. For

    if test: y = a
    else: y = b

the function gets

    c = conditional.If(test, ['y']); c.note(lambda: y)
    if c.takes(True):
        with c.branch(True): y = a; c.note(lambda: y)
    if c.takes(False):
        if c.on_node: y = c.value(0)          # as before the `if`
        with c.branch(False): y = b; c.note(lambda: y)
    if c.on_node: y = c.value(0)              # merged
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any, TypeVar, cast

from forebay.define import conditional

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
    if isinstance(function, functools.partial):
        return functools.partial(converted(function.func), *function.args, **function.keywords)
    if not isinstance(function, FunctionType) or not _is_users(function):
        return function
    try:
        return convert(function)
    except OSError:  # no source: it may have no `if` on a node
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
    """The function with conditionals. Raises OSError if its source cannot be found."""
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


class _Rewriter(ast.NodeTransformer):
    """Rewrites one function, and those within it.

    Args:
        owner: the class whose method it is, for names that Python mangles.
    """

    def __init__(self, owner: str | None) -> None:
        self._owner = owner
        self._open: list[str] = []  # the variables of the `if`s around what is visited
        self._outside = 0  # so many of them are outside the innermost loop
        self._count = 0

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        state, self._open, self._outside = (self._open, self._outside), [], 0
        node.body = _to_the_end(node.body, ast.Return)
        results = _last_jumps(node.body, ast.Return)
        if results:
            begin = _assign(ast.Name(_RESULT), ast.Constant(None), node)
            end = _at(node.body[-1], ast.Return(ast.Name(_RESULT, ast.Load())))
            node.body = [begin, *_replaced(node.body, results, _as_result), end]
        node.body = self._statements(node.body)
        self._open, self._outside = state
        return node

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
        self._count += 1
        name = f"__forebay_if_{self._count}__"
        targets = list(_assigned([*node.body, *node.orelse]).values())
        texts = ast.List([ast.Constant(ast.unparse(target)) for target in targets], ast.Load())
        note = [_lambda(_changed(target, ast.Load())) for target in targets]
        made: list[ast.stmt] = [
            _assign(ast.Name(name), _call(_NAME, "If", self.visit(node.test), texts), node.test),
            _at(node.test, ast.Expr(_call(name, "note", *note))),
        ]
        self._open.append(name)
        for branch, body in ((True, node.body), (False, node.orelse)):
            written = self._statements(body)
            last = written[-1] if written else node.test
            noted = _at(last, ast.Expr(_call(name, "note", *copy.deepcopy(note))))
            context = ast.withitem(_call(name, "branch", ast.Constant(branch)))
            taken = _at(node.test, ast.With([context], [*written, noted]))
            takes = _call(name, "takes", ast.Constant(branch))
            made.append(_at(node.test, ast.If(takes, [taken], [])))
            if targets:
                values: list[ast.stmt] = [
                    _assign(
                        _changed(target, ast.Store()),
                        _call(name, "value", ast.Constant(number)),
                        node.test,
                    )
                    for number, target in enumerate(targets)
                ]
                on_node = ast.Attribute(ast.Name(name, ast.Load()), "on_node", ast.Load())
                made.append(_at(node.test, ast.If(on_node, values, [])))
        self._open.pop()
        return made

    def _visit_loop(self, node: ast.For | ast.While) -> ast.AST:
        outside, self._outside = self._outside, len(self._open)
        node.body = _to_the_end(node.body, ast.Continue)
        skips = _last_jumps(node.body, ast.Continue)
        node.body = self._statements(_replaced(node.body, skips, _as_pass))
        self._outside = outside
        node.orelse = self._statements(node.orelse)
        for field in ("test", "iter"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        return node

    visit_For = visit_While = _visit_loop  # noqa: N815

    def _visit_jump(self, node: ast.stmt) -> list[ast.stmt]:
        inner = self._open if isinstance(node, ast.Return) else self._open[self._outside :]
        word = type(node).__name__.lower()
        checks = [ast.Expr(_call(name, "leaving", ast.Constant(word))) for name in inner]
        self.generic_visit(node)
        return [*(_at(node, check) for check in checks), node]

    visit_Return = visit_Break = visit_Continue = _visit_jump  # noqa: N815

    # ── expressions ──────────────────────────────────────────────────────────────────────────────

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if _binds(node):
            return node
        name = "both" if isinstance(node.op, ast.And) else "either"
        return _at(node, _call(_NAME, name, *map(_lambda, node.values)))

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if _binds(node):
            return node
        return _at(
            node, _call(_NAME, "choose", node.test, _lambda(node.body), _lambda(node.orelse))
        )

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return _at(node, _call(_NAME, "negated", node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """``a < b < c`` is ``a < b and b < c``, where `b` can be evaluated twice."""
        self.generic_visit(node)
        simple = (ast.Name, ast.Constant, ast.Attribute)
        if len(node.ops) == 1 or not all(isinstance(c, simple) for c in node.comparators[:-1]):
            return node
        operands = [node.left, *node.comparators]
        pairs = [
            _lambda(ast.Compare(copy.deepcopy(operands[i]), [op], [operands[i + 1]]))
            for i, op in enumerate(node.ops)
        ]
        return _at(node, _call(_NAME, "both", *pairs))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id in _IN_PLACE):
            node.func = _at(node.func, _call(_NAME, "converted", node.func))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if self._owner and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self._owner.lstrip('_')}{node.attr}"
        return node


_IN_PLACE = ("super", "locals", "globals", "vars", "dir", "eval", "exec")
"""They look at the function that calls them."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _assigned(statements: Sequence[ast.AST]) -> dict[str, ast.expr]:
    """What they assign, by its text: names, attributes of names, items with a constant key."""
    found: dict[str, ast.expr] = {}
    waiting = list(reversed(statements))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            found[node.name] = ast.Name(node.name)
        if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            continue
        if isinstance(getattr(node, "ctx", None), ast.Store) and _is_place(node):
            found[ast.unparse(node)] = cast(ast.expr, node)
        waiting += reversed(list(ast.iter_child_nodes(node)))
    return found


def _is_place(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and _is_place(node.value)
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_place(node.value))


def _to_the_end(body: list[ast.stmt], jump: type[ast.stmt]) -> list[ast.stmt]:
    """The same with what follows an `if` that may jump moved into its branches.

    So that `if a: return b` and `return c` become the two branches of one `if`.
    """
    for number, statement in enumerate(body):
        if isinstance(statement, jump):
            return body[: number + 1]
        if isinstance(statement, ast.If) and _jumps(statement, jump):
            rest = body[number + 1 :]
            statement.body = _to_the_end([*statement.body, *copy.deepcopy(rest)], jump)
            statement.orelse = _to_the_end([*statement.orelse, *rest], jump)
            return body[: number + 1]
    return body


def _jumps(node: ast.stmt, jump: type[ast.stmt]) -> bool:
    """Whether a branch of an `if`, or of one in it, has such a statement."""
    if isinstance(node, jump):
        return True
    return isinstance(node, ast.If) and any(_jumps(s, jump) for s in [*node.body, *node.orelse])


def _last_jumps(body: Sequence[ast.stmt], jump: type[ast.stmt], depth: int = 0) -> set[ast.stmt]:
    """The jumps that end a branch of the `if` at the end."""
    if not body:
        return set()
    last = body[-1]
    if isinstance(last, ast.If):
        branches = (last.body, last.orelse)
        return set().union(*(_last_jumps(branch, jump, depth + 1) for branch in branches))
    return {last} if depth and isinstance(last, jump) else set()


def _replaced(
    body: Sequence[ast.stmt], which: set[ast.stmt], by: Callable[[Any], ast.stmt]
) -> list[ast.stmt]:
    made = []
    for statement in body:
        if isinstance(statement, ast.If):
            statement.body = _replaced(statement.body, which, by)
            statement.orelse = _replaced(statement.orelse, which, by)
        made.append(by(statement) if statement in which else statement)
    return made


def _as_result(node: ast.Return) -> ast.stmt:
    return _assign(ast.Name(_RESULT), node.value or ast.Constant(None), node)


def _as_pass(node: ast.Continue) -> ast.stmt:
    return _at(node, ast.Pass())


def _binds(node: ast.AST) -> bool:
    """Whether it does what a lambda around it would change."""
    kinds = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return any(isinstance(n, kinds) for n in ast.walk(node))


N = TypeVar("N", bound=ast.AST)


def _at(where: ast.AST, made: N) -> N:
    return ast.copy_location(made, where)


def _changed(target: ast.expr, context: ast.expr_context) -> ast.expr:
    made = copy.deepcopy(target)
    made.ctx = context  # type: ignore[attr-defined]  # targets have one
    return made


def _assign(target: ast.expr, value: ast.expr, where: ast.AST) -> ast.stmt:
    return _at(where, ast.Assign([_changed(target, ast.Store())], value))


def _lambda(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def _call(holder: str, method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(
        ast.Attribute(ast.Name(holder, ast.Load()), method, ast.Load()), list(arguments), []
    )


_RUNTIME = SimpleNamespace(
    If=conditional.If,
    both=conditional.both,
    either=conditional.either,
    negated=conditional.negated,
    choose=conditional.choose,
    converted=converted,
)
"""What rewritten code finds under its own name."""


def _cell(value: Any) -> Any:
    cells = (lambda: value).__closure__
    assert cells is not None
    return cells[0]
