"""The signature is the schema: what an operator takes and gives, read from its function's hints."""

from __future__ import annotations

import dataclasses
import inspect
import types as pytypes
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NewType

import numpy as np

from forebay.batch import Batch, Sample
from forebay.errors import UnknownArgumentError
from forebay.operators._argument import REQUIRED, Argument, suggestion
from forebay.operators._rng import Rng
from forebay.operators._source import Source
from forebay.types import (
    Arguments,
    Between,
    Hints,
    Into,
    OneOf,
    PerSampleMark,
)

BatchSize = NewType("BatchSize", int)
"""The hint of a parameter that a batch operator without inputs is told the batch's size by."""


@dataclass(frozen=True)
class Schema:
    """What an operator takes and gives.

    Attributes:
        name: dotted, as under ``fn``.
        level: ``"sample"`` or ``"batch"``: what its kernels are called with; ``"source"`` if its
            function is called once, with its arguments, and gives a Source.
        min_inputs, max_inputs: how many positional inputs it takes.
        arguments: by name: its own in the order of its docstring, then those of argument groups.
        groups: parameter name → dataclass, for the argument groups that kernels get.
        outputs: how many tensors it gives; for None it depends on the arguments.
        doc: the docstring.
    """

    name: str
    level: str
    min_inputs: int
    max_inputs: int
    arguments: Mapping[str, Argument]
    groups: Mapping[str, type[Arguments]]
    outputs: int | None
    doc: str

    def argument(self, name: str) -> Argument:
        """The argument of this name. Raises UnknownArgumentError that suggests the nearest name."""
        try:
            return self.arguments[name]
        except KeyError:
            raise UnknownArgumentError(
                f"{self.name} has no argument '{name}'{suggestion(name, self.arguments)}"
            ) from None


SPECIAL = (Rng, Into, BatchSize)
"""Hints of parameters that the executor fills in, not the user."""


def specials(function: Callable[..., Any]) -> dict[Any, str]:
    """Which of the executor's own values `function` asks for: hint → parameter name."""
    hints = typing.get_type_hints(function)
    return {hint: name for name, hint in hints.items() if hint in SPECIAL}


def read_schema(name: str, function: Callable[..., Any]) -> Schema:
    """The schema of an operator's function. Raises TypeError where a hint is missing or unknown."""
    hints = typing.get_type_hints(function, include_extras=True)
    kinds: list[type] = []
    least = most = 0
    own: dict[str, Argument] = {}
    grouped: dict[str, Argument] = {}
    groups: dict[str, type[Arguments]] = {}
    docs = argument_docs(function.__doc__)
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name)
        if hint is None:
            raise TypeError(f"operator {name}: parameter '{parameter.name}' needs a type hint")
        if parameter.kind is not parameter.KEYWORD_ONLY:
            kinds.append(_unwrap(hint)[0])
            variadic = parameter.kind is parameter.VAR_POSITIONAL
            least += parameter.default is REQUIRED and not variadic
            most = 999 if variadic else most + 1
        elif isinstance(hint, type) and issubclass(hint, Arguments):
            if not issubclass(hint, Hints):
                groups[parameter.name] = hint
            grouped.update(_group_arguments(parameter.name, hint))
        elif hint not in SPECIAL:
            own[parameter.name] = _argument(
                parameter.name, hint, parameter.default, docs.get(parameter.name, "")
            )
    returned = hints["return"]
    outputs, result = _outputs(returned)
    level = "batch" if Batch in (*kinds, result) else "sample"
    if isinstance(result, type) and issubclass(result, Source):
        level = "source"
    if any(kind not in (Sample, Batch) for kind in kinds):
        raise TypeError(f"operator {name}: positional parameters are Sample or Batch")
    return Schema(
        name=name,
        level=level,
        min_inputs=least,
        max_inputs=most,
        arguments={**_in_order(own, docs), **grouped},
        groups=groups,
        outputs=outputs,
        doc=inspect.cleandoc(function.__doc__ or ""),
    )


def _group_arguments(parameter: str, group: type[Arguments]) -> dict[str, Argument]:
    hints = typing.get_type_hints(group, include_extras=True)
    docs: dict[str, str] = {}
    for base in reversed(group.__mro__):  # a group that extends another documents what it adds
        docs |= argument_docs(base.__doc__)
    found = {}
    for item in dataclasses.fields(group):
        default = REQUIRED if item.default is dataclasses.MISSING else item.default
        argument = _argument(item.name, hints[item.name], default, docs.get(item.name, ""))
        hint = issubclass(group, Hints)
        found[item.name] = dataclasses.replace(argument, group=parameter, hint=hint)
    return _in_order(found, docs)


def _in_order(arguments: Mapping[str, Argument], docs: Iterable[str]) -> dict[str, Argument]:
    """In the order in which they are described: "the same by letters" follows what it speaks of."""
    order = [*docs, *arguments]
    return {name: arguments[name] for name in sorted(arguments, key=order.index)}


def _argument(name: str, hint: Any, default: Any, doc: str) -> Argument:
    kind, metadata = _unwrap(hint)
    vector = typing.get_origin(kind) is tuple
    if vector:
        kind, inner = _unwrap(typing.get_args(kind)[0])
        metadata += inner
    if typing.get_origin(kind) is np.ndarray:  # a float32 tensor of any shape, as it is
        kind = np.ndarray
    return Argument(
        name=name,
        type=kind,
        vector=vector,
        per_sample=any(isinstance(m, PerSampleMark) for m in metadata),
        default=default,
        limits=tuple(m for m in metadata if isinstance(m, Between | OneOf)),
        doc=doc,
    )


def _unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A hint without ``| None`` and ``Annotated``, and what was annotated."""
    metadata: tuple[Any, ...] = ()
    while True:
        origin = typing.get_origin(hint)
        if origin is typing.Annotated:
            metadata += hint.__metadata__
            hint = hint.__origin__
        elif origin in (typing.Union, pytypes.UnionType):
            rest = [a for a in typing.get_args(hint) if a is not type(None)]
            if len(rest) != 1:
                return hint, metadata
            hint = rest[0]
        else:
            return hint, metadata


def _outputs(returned: Any) -> tuple[int | None, Any]:
    """How many outputs a return hint means, and of which class."""
    if typing.get_origin(returned) is not tuple:
        return 1, returned
    members = typing.get_args(returned)
    return (None if members[-1] is Ellipsis else len(members)), members[0]


def argument_docs(doc: str | None) -> dict[str, str]:
    """The entries of the ``Args:`` (or ``Attributes:``) section of a Google-style docstring."""
    found: dict[str, str] = {}
    inside, current = False, ""
    for line in inspect.cleandoc(doc or "").splitlines():
        if line in ("Args:", "Attributes:"):
            inside = True
        elif line and not line.startswith(" "):
            inside = False
        elif inside and line.startswith("    ") and not line.startswith("     "):
            names, _, text = line.strip().partition(":")
            current = names
            for name in names.split(","):
                found[name.strip()] = text.strip()
        elif inside and line.strip():
            for name in current.split(","):
                found[name.strip()] += " " + line.strip()
    return found
