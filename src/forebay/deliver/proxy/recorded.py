"""Operations on references: recorded where the data does not exist yet, done where it does.

A reference takes torch functions, operators, tensor methods and `map`; each gives a `Recorded`
reference: a function and its arguments, in which references stand for data to come. Collating the
recorded references of a batch's samples makes one `Mapped` reference where they record the same:
the function is then called once for each row, and the results are put together as the pipeline's
own rows would be.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import torch

from forebay.errors import ProxyError

_NEEDS_VALUE = frozenset(
    ("numpy", "item", "tolist", "cpu_numpy", "shape", "size", "dtype", "device", "ndim", "data")
)


class Reference:
    """Stands for a tensor that does not exist yet, and records what is to be done with it."""

    __slots__ = ()

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Recorded:
        return Recorded(function, tuple(args), dict(kwargs or {}))

    def map(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Recorded:
        """Call `function(tensor, *args, **kwargs)` when the data is there.

        The function is called in the process of the training loop. It must be one that can be
        pickled, when the reference is made in a worker: a function of a module, not a lambda.
        """
        return Recorded(function, (self, *args), kwargs)

    def __getattr__(self, name: str) -> Callable[..., Recorded]:
        if name.startswith("_") or not hasattr(torch.Tensor, name):
            raise AttributeError(f"a reference has no attribute '{name}'")
        method = getattr(torch.Tensor, name)
        if name in _NEEDS_VALUE or not callable(method):
            self._refuse(f"'.{name}'")

        def record(*args: Any, **kwargs: Any) -> Recorded:
            return Recorded(method, (self, *args), kwargs)

        return record

    def _refuse(self, use: str) -> NoReturn:
        raise ProxyError(
            f"{use} needs the value of {self!r}, which does not exist here: the pipeline runs in the "
            f"process of the training loop. Return the reference from the Dataset; operations on "
            f"it, and ref.map(function), are done when the data is there"
        )

    def __bool__(self) -> bool:
        self._refuse("`if` or `bool`")

    def __float__(self) -> float:
        self._refuse("`float`")

    def __int__(self) -> int:
        self._refuse("`int`")

    def __len__(self) -> int:
        self._refuse("`len`")

    def __iter__(self) -> NoReturn:
        self._refuse("iteration")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("a numpy function")

    def __getitem__(self, key: Any) -> Recorded:
        return Recorded(operator.getitem, (self, key), {})

    __array_ufunc__ = None  # so that numpy leaves `array + reference` to the reference


def _binary(function: Callable[[Any, Any], Any], *, reflected: bool = False) -> Any:
    if reflected:
        return lambda self, other: Recorded(function, (other, self), {})
    return lambda self, other: Recorded(function, (self, other), {})


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
):
    _function = getattr(operator, f"__{_name}__")
    setattr(Reference, f"__{_name}__", _binary(_function))
    setattr(Reference, f"__r{_name}__", _binary(_function, reflected=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Reference, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ("neg", "pos", "invert", "abs"):
    setattr(
        Reference,
        f"__{_name}__",
        lambda self, function=getattr(operator, _name): Recorded(function, (self,), {}),
    )
Reference.__hash__ = object.__hash__  # type: ignore[method-assign]  # `==` records, as tensors' does


class Recorded(Reference):
    """A function that will be called with these arguments; references among them are data by then."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.function, '__name__', self.function)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.function, self.args, self.kwargs)


class Mapped(Recorded):
    """The function will be called once for each row of the batch references among the arguments."""

    __slots__ = ()


class Listed(Reference):
    """References of single samples that record different things: a row each."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Reference, ...]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"Listed({len(self.items)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Listed, (self.items,)


def leaves(ref: Any) -> list[Reference]:
    """The references to data in what was recorded."""
    if isinstance(ref, Recorded):
        return [leaf for part in (*ref.args, *ref.kwargs.values()) for leaf in leaves(part)]
    if isinstance(ref, Listed):
        return [leaf for item in ref.items for leaf in leaves(item)]
    if isinstance(ref, Reference):
        return [ref]
    if isinstance(ref, list | tuple):
        return [leaf for part in ref for leaf in leaves(part)]
    return []


def merge(refs: Sequence[Any], collate: Callable[[Sequence[Any]], Any]) -> Any:
    """One batch reference for the rows' references; None if they do not record the same.

    Args:
        refs: a reference, or an argument that was recorded, for each row.
        collate: makes a batch reference of references to data.
    """
    first = refs[0]
    if isinstance(first, Recorded):
        return _merge_recorded(refs, collate)
    if isinstance(first, Reference):
        kind = type(first)
        same = all(type(ref) is kind and ref.output == first.output for ref in refs)  # type: ignore[attr-defined]
        return collate(refs) if same else None
    if isinstance(first, list | tuple) and leaves(first):
        if any(type(ref) is not type(first) or len(ref) != len(first) for ref in refs):
            return None
        parts = [merge(column, collate) for column in zip(*refs, strict=True)]
        return None if any(part is None for part in parts) else type(first)(parts)
    return _Same(first) if all(equal(ref, first) for ref in refs) else None


class _Same:
    """An argument that is the same for all rows; wrapped, so that None is not taken for a failure."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _merge_recorded(refs: Sequence[Any], collate: Callable[[Sequence[Any]], Any]) -> Mapped | None:
    first = refs[0]
    for ref in refs:
        if (
            type(ref) is not type(first)
            or ref.function is not first.function
            or len(ref.args) != len(first.args)
            or ref.kwargs.keys() != first.kwargs.keys()
        ):
            return None
    args = [merge(column, collate) for column in zip(*(ref.args for ref in refs), strict=True)]
    kwargs = {name: merge([ref.kwargs[name] for ref in refs], collate) for name in first.kwargs}
    if any(part is None for part in (*args, *kwargs.values())):
        return None
    return Mapped(
        first.function,
        tuple(_unwrap(part) for part in args),
        {name: _unwrap(part) for name, part in kwargs.items()},
    )


def _unwrap(part: Any) -> Any:
    if isinstance(part, _Same):
        return part.value
    return type(part)(_unwrap(p) for p in part) if isinstance(part, list | tuple) else part


def equal(a: Any, b: Any) -> bool:
    """Whether two recorded arguments are the same."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)
