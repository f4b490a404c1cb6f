"""What `help` shows of an operator: its docstring, with every argument that it takes.

An operator's own docstring describes the arguments that are its own, the classes of argument groups
describe theirs, and the types tell the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from forebay.define.call import generic_docs
from forebay.operators._operator import Operator
from forebay.operators._schema import argument_docs

_WIDTH = 92


@functools.cache
def describe(operator: Operator) -> str:
    """The operator's docstring, whose section ``Args:`` has its inputs and all its arguments."""
    before, after = _around_arguments(operator.schema.doc)
    return "\n\n".join(filter(None, (before, "\n".join(["Args:", *_entries(operator)]), after)))


def _around_arguments(doc: str) -> tuple[str, str]:
    """What a docstring says before its section of arguments, or where that would be, and after."""
    lines = doc.splitlines()
    sections = [i for i, line in enumerate(lines) if line in ("Args:", "Returns:", "Raises:")]
    start = end = sections[0] if sections else len(lines)
    if sections and lines[start] == "Args:":
        end = sections[1] if len(sections) > 1 else len(lines)
    return "\n".join(lines[:start]).strip(), "\n".join(lines[end:]).strip()


def _entries(operator: Operator) -> Iterator[str]:
    """A paragraph for each input that is described, and for each argument; equal ones share one.

    Those that change no result come last.
    """
    arguments = operator.schema.arguments
    names: dict[tuple[str, str], list[str]] = {}
    for name, text in argument_docs(operator.schema.doc).items():
        if name not in arguments:
            names.setdefault(("", text), []).append(name)
    for argument in sorted(arguments.values(), key=lambda argument: argument.hint):
        names.setdefault((f" ({argument.summary()})", argument.doc), []).append(argument.name)
    for name, text in generic_docs(operator).items():
        names[" (optional)", text] = [name]
    for (summary, text), those in names.items():
        yield _paragraph(f"{', '.join(those)}{summary}: {text}")


def _paragraph(text: str) -> str:
    """In lines of `_WIDTH`. (`textwrap` would take a tenth of the time that `import` takes.)"""
    first, *words = text.split()
    lines = [f"    {first}"]
    for word in words:
        if len(lines[-1]) + len(word) < _WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(f"        {word}")
    return "\n".join(lines)
