"""A layer imports only from layers to its left; files and functions stay small."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import forebay

SOURCE = Path(forebay.__file__).parent
LAYERS = [
    ("errors", "types", "batch"),
    ("operators",),
    ("define", "fn", "ops", "math", "tfrecord"),
    ("compile",),
    ("execute",),
    ("deliver",),
    ("torch",),
    ("compat", "demo", "testing"),
    ("index",),
    ("cli", "__main__"),
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
ROOT_RANK = RANK["deliver"]  # what `forebay` itself re-exports

FILES = sorted(SOURCE.rglob("*.py"))
MODULES = [path for path in FILES if path != SOURCE / "__init__.py"]


def layer(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def imported_names(tree: ast.AST, path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that is imported, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = ("forebay", *path.relative_to(SOURCE).parent.parts)
                package = parents[: len(parents) - node.level + 1]
                base = ".".join((*package, base)).strip(".")
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def rank_of(name: str) -> int | None:
    """The rank of an imported name; None if it is not ours."""
    first, _, rest = name.partition(".")
    if first != "forebay":
        return None
    return RANK.get(rest.partition(".")[0], ROOT_RANK)


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_from_its_left(path: Path) -> None:
    own = RANK[layer(path)]  # a KeyError: a new folder, or file, has no layer yet
    for line, name in imported_names(parse(path), path):
        rank = rank_of(name)
        assert rank is None or rank <= own, f"{name_of(path)}:{line} imports {name}"


def test_the_front_door_imports_nothing_right_of_deliver() -> None:
    path = SOURCE / "__init__.py"
    for line, name in imported_names(parse(path), path):
        assert (rank_of(name) or 0) <= ROOT_RANK, f"__init__.py:{line} imports {name}"


MAY_IMPORT_LATE = {
    "define/node.py": "the syntax of nodes writes nodes; both are of one layer",
    "cli.py": "a command imports what it runs, so that the others start fast",
}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_function_hides_an_import_of_ours(path: Path) -> None:
    if name_of(path) in MAY_IMPORT_LATE:
        return
    for function in ast.walk(parse(path)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for line, name in imported_names(function, path):
                assert rank_of(name) is None, f"{name_of(path)}:{line} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400, f"{name_of(path)} is too long"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert code_lines(node) <= 50, f"{name_of(path)}:{node.lineno} {node.name} is too long"


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, without the docstring: signatures and docs are the schema."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body:
        return 0
    return (function.end_lineno or 0) - body[0].lineno + 1


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("from forebay import fn", RANK["fn"]),
        ("from forebay import pipeline_def", ROOT_RANK),
        ("import forebay.errors", RANK["errors"]),
        ("from ..deliver import pipeline", RANK["deliver"]),
        ("from . import node", RANK["define"]),
        ("def f():\n    from forebay.cli import main", RANK["cli"]),
        ("import torch.utils", None),
    ],
)
def test_every_form_of_import_is_seen(line: str, rank: int | None) -> None:
    [(_, name)] = imported_names(ast.parse(line), SOURCE / "define" / "call.py")
    assert rank_of(name) == rank
