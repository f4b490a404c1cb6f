"""One keyword argument of an operator: what it may be, how a value becomes that, and its words."""

from __future__ import annotations

import difflib
import enum
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.types import Between, DALIDataType, OneOf, ScalarConstant, data_type

REQUIRED: Any = inspect.Parameter.empty
ELEMENT_TYPES = tuple(kind for kind in DALIDataType if 0 <= kind <= DALIDataType.BOOL)
"""The types that the elements of arrays can have."""


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
            if _is_enum(wanted):
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
                    f"argument '{self.name}' must be one of {listed(limit.values)}, but got "
                    f"{shown(value)}{suggestion(str(value), map(str, limit.values))}"
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
            if _is_enum(self.type):
                value = self._one(value)
            self._check(value)
            return value
        value = tuple(value) if data.ndim else (value,)
        if self.limits:
            for element in value:
                self._check(element)
        return value

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values that it may have, if they are a few; of element types, those of arrays."""
        for limit in self.limits:
            if isinstance(limit, OneOf):
                return limit.values
        if self.type is DALIDataType:
            return ELEMENT_TYPES
        return tuple(self.type) if _is_enum(self.type) else ()

    def describe(self) -> str:
        """What it takes, in words: ``"a list of floats"``, ``"one of types.RGB, types.BGR"``."""
        if self.choices:
            few = listed(self.choices)
            return f"a list with values of {few}" if self.vector else f"one of {few}"
        return f"a list of {self._word}s" if self.vector else f"a value of type {self._word}"

    def summary(self) -> str:
        """Type, limits, whether it may differ per sample, and default, e.g. ``"float from 0 to 1,
        may differ per sample, default 0.5"``.
        """
        word = f"list of {self._word}s" if self.vector else self._word
        if self.choices and self.choices != ELEMENT_TYPES:
            word = f"one of {listed(self.choices)}"
        ranges = [_range(limit) for limit in self.limits if isinstance(limit, Between)]
        varies = ["may differ per sample"] if self.per_sample else []
        default = f"default {shown(self.default)}"
        if self.default is None or self.required:
            default = "required" if self.required else "optional"
        return "; ".join([" ".join([word, *ranges]), *varies, default])

    @property
    def _word(self) -> str:
        name = getattr(self.type, "__name__", str(self.type))
        return {
            "str": "string",
            "ndarray": "float array",
            "DALIDataType": "types.DALIDataType value",
        }.get(name, name)


def _is_enum(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, enum.Enum)


def shown(value: Any) -> str:
    """A value as users write it: ``"types.RGB"``, ``"[0.5, 1.0]"``."""
    if isinstance(value, enum.Enum):
        return f"types.{value.name}"
    return repr(list(value) if isinstance(value, tuple) else value)


def _range(limit: Between) -> str:
    end = "" if limit.high >= 2**31 - 1 else f" to {limit.high:g}"
    return f"from {limit.low:g}{end}"


def listed(values: Iterable[Any]) -> str:
    return ", ".join(map(shown, values))


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


def suggestion(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the known name nearest to `name`, else nothing."""
    near = nearest(name, known)
    return "" if near is None else f"; did you mean '{near}'?"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to `name`, if one is near."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)
