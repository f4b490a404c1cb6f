"""The signature is the schema: what an operator takes and gives, read from its function's hints."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import inspect
import types as pytypes
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NewType

import numpy as np
import torch

from forebay.batch import Batch, Sample
from forebay.errors import ArgumentError, UnknownArgumentError
from forebay.operators._rng import Rng
from forebay.operators._source import Source
from forebay.types import (
    Arguments,
    Between,
    DALIDataType,
    Hints,
    Into,
    OneOf,
    PerSampleMark,
    ScalarConstant,
    data_type,
)

REQUIRED: Any = inspect.Parameter.empty

BatchSize = NewType("BatchSize", int)
"""The hint of a parameter that a batch operator without inputs is told the batch's size by."""


@dataclass(frozen=True)
class Argument:
    """One keyword argument of an operator.

    `type` is the Python type of a value, or of one element if `vector`. `group` names the
    parameter whose dataclass this argument is a field of. A `hint` changes no result.
    """

    name: str
    type: Any
    vector: bool
    per_sample: bool
    default: Any
    limits: tuple[Between | OneOf, ...]
    group: str | None = None
    hint: bool = False
    doc: str = ""

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def constant(self, value: Any) -> Any:
        """`value` as the kernel gets it. Raises ArgumentError if the argument cannot be that."""
        if isinstance(value, ScalarConstant):
            value = value.value
        if not self.vector:
            result = self._one(value)
            self._check(result)
            return result
        if isinstance(value, str) or not isinstance(value, Iterable):
            value = (value,)
        result = tuple(self._one(v) for v in value)
        for element in result:
            self._check(element)
        return result

    def _one(self, value: Any) -> Any:
        wanted = self.type
        try:
            converter = _CONVERTERS.get(wanted)
            if converter is not None:
                return converter(value)
            if isinstance(wanted, type) and issubclass(wanted, enum.Enum):
                return data_type(value) if _is_dtype(wanted, value) else wanted(value)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"argument '{self.name}' takes {self.describe()}, but got {_show(value)}"
            ) from None
        return value

    def _check(self, value: Any) -> None:
        for limit in self.limits:
            if isinstance(limit, Between) and not limit.low <= value <= limit.high:
                raise ArgumentError(
                    f"argument '{self.name}' must lie in [{limit.low:g}, {limit.high:g}], "
                    f"but got {value:g}"
                )
            if isinstance(limit, OneOf) and value not in limit.values:
                raise ArgumentError(
                    f"argument '{self.name}' must be one of {list(limit.values)}, but got {value!r}"
                    f"{suggestion(str(value), map(str, limit.values))}"
                )

    def read(self, sample: Sample) -> Any:
        """The value that one sample of an argument node holds. A matrix is read row by row.

        Raises:
            ArgumentError: its element type is not exactly the argument's (there is no conversion,
                as in DALI), it has too many axes, or it is out of range.
        """
        wanted = _TENSOR_TYPES.get(self.type, (DALIDataType.INT32,))
        data = sample.data
        got = data_type(data.dtype)
        if got not in wanted:
            names = " or ".join(w.name for w in wanted)
            raise ArgumentError(
                f"argument '{self.name}' takes {names} values per sample, but got {got.name}; "
                f"convert them with fn.cast(…, dtype=types.{wanted[0].name})"
            )
        if self.type is np.ndarray:
            return sample.tensor.cpu().numpy()
        if data.ndim > 1 + self.vector or (
            not self.vector and data.ndim == 1 and data.shape[0] != 1
        ):
            raise ArgumentError(
                f"argument '{self.name}' takes {self.describe()} per sample, "
                f"but got a tensor of shape {list(data.shape)}"
            )
        value: Any = data.reshape(-1).tolist() if data.ndim == 2 else data.tolist()
        if not self.vector:
            value = value[0] if data.ndim else value
            if isinstance(self.type, type) and issubclass(self.type, enum.Enum):
                value = self.type(value)
            self._check(value)
            return value
        value = tuple(value) if data.ndim else (value,)
        if self.limits:
            for element in value:
                self._check(element)
        return value

    def describe(self) -> str:
        """The argument's type in words, e.g. ``"a list of floats"``."""
        name = getattr(self.type, "__name__", str(self.type))
        word = {"str": "string", "DALIDataType": "types.DALIDataType"}.get(name, name)
        return f"a list of {word}s" if self.vector else f"a value of type {word}"


def _is_dtype(wanted: type, value: Any) -> bool:
    return wanted is DALIDataType and (
        isinstance(value, torch.dtype | np.dtype) or inspect.isclass(value)
    )


def _show(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) < 80 else text[:77] + '…'} ({type(value).__name__})"


def _to_int(value: Any) -> int:
    if isinstance(value, str) or int(value) != value:
        raise ValueError
    return int(value)


def _to_float(value: Any) -> float:
    if isinstance(value, str):
        raise TypeError
    return float(value)


def _to_bool(value: Any) -> bool:
    if value not in (0, 1) or isinstance(value, str):
        raise ValueError
    return bool(value)


def _to_str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _to_array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, str):
        raise TypeError
    return np.asarray(value, np.float32)


_CONVERTERS: dict[Any, Callable[[Any], Any]] = {
    np.ndarray: _to_array,
    int: _to_int,
    float: _to_float,
    bool: _to_bool,
    str: _to_str,
}
_TENSOR_TYPES = {
    np.ndarray: (DALIDataType.FLOAT,),
    float: (DALIDataType.FLOAT,),
    int: (DALIDataType.INT32,),
    bool: (DALIDataType.BOOL, DALIDataType.INT32),
}


@dataclass(frozen=True)
class Schema:
    """What an operator takes and gives.

    Attributes:
        name: dotted, as under ``fn``.
        level: ``"sample"`` or ``"batch"``: what its kernels are called with; ``"source"`` if its
            function is called once, with its arguments, and gives a Source.
        min_inputs, max_inputs: how many positional inputs it takes.
        arguments: by name, those of argument groups among them.
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


def suggestion(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the known name nearest to `name`, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


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
    arguments: dict[str, Argument] = {}
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
            arguments.update(_group_arguments(parameter.name, hint))
        elif hint not in SPECIAL:
            arguments[parameter.name] = _argument(
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
        arguments=arguments,
        groups=groups,
        outputs=outputs,
        doc=inspect.cleandoc(function.__doc__ or ""),
    )


def _group_arguments(parameter: str, group: type[Arguments]) -> dict[str, Argument]:
    hints = typing.get_type_hints(group, include_extras=True)
    docs = argument_docs(group.__doc__)
    found = {}
    for item in dataclasses.fields(group):
        default = REQUIRED if item.default is dataclasses.MISSING else item.default
        argument = _argument(item.name, hints[item.name], default, docs.get(item.name, ""))
        hint = issubclass(group, Hints)
        found[item.name] = dataclasses.replace(argument, group=parameter, hint=hint)
    return found


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
