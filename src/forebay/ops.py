"""Operators as classes: ``ops.Resize(size=(224, 224))(images)`` writes the node that ``fn`` writes.

A class is constructed with arguments that are the same for all samples, then called with inputs,
and with arguments that are nodes.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar, NoReturn

from forebay.define.call import GENERIC, find_argument, write_node
from forebay.define.describe import describe
from forebay.define.external_source import external_source
from forebay.define.names import unknown_class
from forebay.fn import Namespace as _FnNamespace
from forebay.fn import signature
from forebay.operators._operator import Operator, discover


class OperatorClass:
    """Base of the classes. Arguments given in the call take precedence."""

    _name: ClassVar[str]
    _operator: ClassVar[Operator]

    def __init__(self, **arguments: Any) -> None:
        for name in arguments:
            if name not in GENERIC:
                find_argument(self._operator, name)
        self._arguments = arguments

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Write the node. Arguments given here take precedence over the class's."""
        return write_node(self._name, inputs, {**self._arguments, **arguments})

    @property
    def device(self) -> str:
        return self._arguments.get("device") or "cpu"


class ExternalSource:
    __doc__ = external_source.__doc__

    def __init__(
        self, source: Any = None, num_outputs: int | None = None, **arguments: Any
    ) -> None:
        self._arguments = {"source": source, "num_outputs": num_outputs, **arguments}

    def __call__(self, **arguments: Any) -> Any:
        return external_source(**{**self._arguments, **arguments})


class Namespace(_FnNamespace):
    """A module of operator classes."""

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(f"{self.__name__.partition('.ops.')[2]}.{name}")


def _refuse(name: str) -> NoReturn:
    if name.rpartition(".")[2].startswith("__"):
        raise AttributeError(name)
    raise unknown_class(name)


def _fill(root: str) -> None:
    for name, operator in sorted(discover().items()):
        if operator.hidden or name == "external_source":
            continue
        home = sys.modules[root]
        for part in name.split(".")[:-1]:
            full = f"{home.__name__}.{part}"
            if full not in sys.modules:
                sys.modules[full] = Namespace(full, f"Operator classes of ops.{part}.")
                setattr(home, part, sys.modules[full])
            home = sys.modules[full]
        own = operator.ops_names[name]
        members = {
            "_name": name,
            "_operator": operator,
            "__doc__": describe(operator),
            "__module__": home.__name__,
            "__signature__": signature(operator),
        }
        setattr(home, own, type(own, (OperatorClass,), members))


_fill(__name__)


def __getattr__(name: str) -> Any:
    _refuse(name)
