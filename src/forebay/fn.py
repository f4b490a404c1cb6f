"""Operators as functions: ``fn.resize(images, size=(224, 224))`` writes a node.

The functions are made from the operators' signatures, and the namespaces (``fn.decoders``, …) from
the folders that the operators' files are in.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from forebay.define.call import find_operator, generic_docs, write_node
from forebay.define.describe import describe
from forebay.define.external_source import external_source
from forebay.operators._operator import Operator, discover

__all__ = ["external_source"]


class Namespace(ModuleType):
    """A module of operators. A name that it lacks is an error that suggests the nearest one."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        find_operator(f"{self.__name__.partition('.fn.')[2]}.{name}")
        raise AttributeError(name)


def signature(operator: Operator) -> inspect.Signature:
    """The operator's inputs, all its arguments (those of groups too), and the generic ones."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = inspect.signature(operator.body).parameters.values()
    inputs = [parameter for parameter in own if parameter.kind is not keyword]
    arguments = [
        inspect.Parameter(a.name, keyword, default=a.default)
        for a in operator.schema.arguments.values()
    ]
    generic = [inspect.Parameter(name, keyword, default=None) for name in generic_docs(operator)]
    return inspect.Signature([*inputs, *arguments, *generic])


def _function(name: str, operator: Operator) -> Callable[..., Any]:
    def function(*inputs: Any, **arguments: Any) -> Any:
        return write_node(name, inputs, arguments)

    function.__name__ = name.rpartition(".")[2]
    function.__qualname__ = name
    function.__doc__ = describe(operator)
    function.__signature__ = signature(operator)  # type: ignore[attr-defined]  # read by inspect
    return function


def _fill(root: str) -> None:
    for name, operator in sorted(discover().items()):
        if operator.hidden or name == "external_source":
            continue
        home = sys.modules[root]
        for part in name.split(".")[:-1]:
            full = f"{home.__name__}.{part}"
            if full not in sys.modules:
                sys.modules[full] = Namespace(full, f"Operators of fn.{part}.")
                setattr(home, part, sys.modules[full])
            home = sys.modules[full]
        setattr(home, name.rpartition(".")[2], _function(name, operator))


_fill(__name__)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    find_operator(name)  # raises, and suggests the nearest name
    raise AttributeError(name)
