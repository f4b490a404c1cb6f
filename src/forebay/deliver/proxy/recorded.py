"""Operations on references: recorded where the data does not exist yet, done where it does.

A reference takes torch functions, operators, tensor methods and `map`; each gives a `Recorded`
reference: a function and its arguments, in which references stand for data to come. Collating the
recorded references of a batch's samples makes one `Mapped` reference where they record the same:
the function is then called once for each row, and the results are put together as the pipeline's
own rows would be.

In the server's process the data of a batch is there, or will be: an operation on a batch reference
there gives data at once, and so does a question about it, as `shape` and `len` are. So a training
loop that never asked for `produce_data` still computes with the right tensors.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Self

import numpy as np
import torch
from torch.utils._pytree import register_pytree_node

from forebay.deliver.proxy.in_place import OPERATORS, change
from forebay.deliver.proxy.sendable import why_not
from forebay.errors import NoValueYet, ProxyError

homes: dict[str, Callable[[Any], Any]] = {}
"""Server name → what gives the data of references, in the process in which that server lives."""

_NEEDS_VALUE = frozenset(("numpy", "item", "tolist", "size", "dim"))


def _not_made(*_: Any) -> NoReturn:
    raise AssertionError("no reference was ever taken apart")


def _asking(use: str, function: Callable[..., Any]) -> Any:
    return lambda self, *args, **kwargs: function(self.value(use), *args, **kwargs)


class Reference:
    """Stands for a tensor that does not exist yet, and records what is to be done with it."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        # Functions on nested structures pass over what they do not know. A transform of
        # torchvision's v2 would return a reference as it is, as if it had been done.
        register_pytree_node(cls, cls._looked_through, _not_made)

    def _looked_through(self) -> NoReturn:
        raise ProxyError(
            f"{self!r} is no tensor yet, and a transform of torchvision's v2, or another function "
            f"on nested structures, would leave it as it is: put the transform into the pipeline, "
            f"or call ref.map(transform)"
        )

    @property
    def server(self) -> str:
        """The name of the server that has the data."""
        raise NotImplementedError

    @property
    def at_home(self) -> bool:
        """Whether its rows were sent, and the server lives in this process."""
        return self.server in homes

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: Any) -> Self:
        return self

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return _record_torch(function, tuple(args), dict(kwargs or {}))

    def map(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `function(tensor, *args, **kwargs)` when the data is there.

        The function is called in the process of the training loop. It must be one that can be
        pickled, when the reference is made in a worker: a function of a module, not a lambda. The
        tensor is the function's own, to change as it likes. Other tensors, arrays and containers
        among its arguments are copied, as they are now, unless it is called at once.
        """
        owned = {name: _own(value) for name, value in kwargs.items()}
        return record(function, tuple(map(_own, (self, *args))), owned)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """`torch.Tensor.to`; loops that move batches to a device look for it in the class."""
        return record(torch.Tensor.to, (self, *args), kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(torch.Tensor, name):
            raise AttributeError(f"a reference has no attribute '{name}'")
        method = getattr(torch.Tensor, name)
        if name in _NEEDS_VALUE or not callable(method):
            return getattr(self.value(f"'.{name}'", NoValueYet), name)
        return lambda *args, **kwargs: _record_torch(method, (self, *args), kwargs)

    def value(self, use: str, error: type[ProxyError] = ProxyError) -> Any:
        """The data, if it is at home; `use` says in the error what it is needed for."""
        if all(leaf.at_home for leaf in leaves(self)):
            return homes[self.server](self)
        raise error(
            f"{use} needs the value of {self!r}, but it has no value here. In a Dataset or collate "
            f"function, return the reference: operations on it, and ref.map(function), are done in "
            f"the training process when the data is there. In the training loop, call "
            f"server.produce_data(batch), or use forebay's proxy.DataLoader(server, ...), which "
            f"gives data"
        )

    __bool__ = _asking("`if` or `bool`", bool)
    __float__ = _asking("`float`", float)
    __int__ = _asking("`int`", int)
    __index__ = _asking(  # torch asks for it where a worker collates a tensor and then references
        "an index, or the size of a batch that mixes tensors and references,", operator.index
    )
    __len__ = _asking("`len`", len)
    __iter__ = _asking("iteration", iter)
    __contains__ = _asking("`in`", operator.contains)
    __array__ = _asking("a numpy function", np.asarray)

    def __getitem__(self, key: Any) -> Any:
        return record(operator.getitem, (self, key), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        _record_torch(torch.Tensor.__setitem__, (self, key, value), {})

    def __round__(self, digits: int = 0) -> Any:
        return record(torch.round, (self,), {"decimals": digits})

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    __hash__ = object.__hash__  # `==` is recorded, as of tensors
    __array_ufunc__ = None  # so that numpy leaves `array + reference` to the reference


def _binary(function: Callable[[Any, Any], Any], *, reflected: bool = False) -> Any:
    if reflected:
        return lambda self, other: record(function, (other, self), {})
    return lambda self, other: record(function, (self, other), {})


def _unary(function: Callable[[Any], Any]) -> Any:
    return lambda self: record(function, (self,), {})


for _name in OPERATORS.split():
    _function = getattr(operator, f"__{_name}__")
    setattr(Reference, f"__{_name}__", _binary(_function))
    setattr(Reference, f"__r{_name}__", _binary(_function, reflected=True))
for _name in ["lt", "le", "gt", "ge", "eq", "ne"]:
    setattr(Reference, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ["neg", "pos", "invert", "abs"]:
    setattr(Reference, f"__{_name}__", _unary(getattr(operator, _name)))


class BrokenRef(Reference):
    """A reference that could not be sent when it left its process: its inputs, or its function."""

    __slots__ = ("_server", "error")

    def __init__(self, server: str, error: ProxyError) -> None:
        self._server = server
        self.error = error

    @property
    def server(self) -> str:
        return self._server

    def __repr__(self) -> str:
        return f"BrokenRef({self.error!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return BrokenRef, (self._server, self.error)


class Recorded(Reference):
    """A call to come. References among its arguments are data by then."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs

    @property
    def server(self) -> str:
        return leaves(self)[0].server

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.function, '__name__', self.function)})"

    def __reduce__(self) -> tuple[Any, ...]:
        reason = why_not(self.function, (self.args, self.kwargs), (Reference,))
        if reason is not None:
            return BrokenRef, (self.server, ProxyError(reason))
        return type(self), (self.function, self.args, self.kwargs)


class Mapped(Recorded):
    """The function will be called once for each row of the batch references among the arguments."""

    __slots__ = ()


class Listed(Reference):
    """References of single samples that record different things: a row each."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Reference, ...]) -> None:
        self.items = items

    @property
    def server(self) -> str:
        return leaves(self)[0].server

    def __repr__(self) -> str:
        return f"Listed({len(self.items)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Listed, (self.items,)


def leaves(ref: Any) -> list[Reference]:
    """The references to data in what was recorded."""
    if isinstance(ref, Recorded):
        return leaves([ref.args, ref.kwargs])
    if isinstance(ref, Listed):
        return leaves(ref.items)
    if isinstance(ref, Reference):
        return [ref]
    if isinstance(ref, dict):
        return leaves(list(ref.values()))
    if isinstance(ref, list | tuple):
        return [leaf for part in ref for leaf in leaves(part)]
    return []


def record(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The recorded call; its result, if all its references are at home and of whole batches."""
    recorded = Recorded(function, args, kwargs)
    found = leaves(recorded)
    if all(leaf.at_home for leaf in found):
        return homes[found[0].server](recorded)
    return Recorded(function, *copied((args, kwargs)))


def _record_torch(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The same for one of torch's functions. Refuses those that change what they get.

    A tensor of the user's can be changed by data that is there.
    """
    found = change(function, args, kwargs)
    if found is not None:
        refs = leaves([args, kwargs])
        if leaves([found.target]) or not all(ref.at_home for ref in refs):
            raise ProxyError(
                f"operations that change a tensor in place can't be recorded, because the data of "
                f"{refs[0]!r} does not exist yet, or is used elsewhere too, but got {found.what}: "
                f"{found.instead}. In the training loop, server.produce_data(batch) gives tensors"
            )
    return record(function, args, kwargs)


def copied(item: Any) -> Any:
    """The item, so that changes to it don't reach its copy.

    Tensors, arrays, and the containers that `leaves` looks into are copied; other objects are not.
    """
    if isinstance(item, torch.Tensor):
        return item if item.requires_grad else item.clone()  # a copy would not be the parameter
    if isinstance(item, np.ndarray | bytearray | set):
        return item.copy()
    return _rebuilt(item, copied) if isinstance(item, list | tuple | dict) else item


def _own(item: Any) -> Any:
    """The item, with copies in the place of the data that its references stand for."""
    if isinstance(item, Reference):
        return Recorded(copied, (item,), {})
    return _rebuilt(item, _own) if leaves(item) else item


def _rebuilt(item: Any, member: Callable[[Any], Any]) -> Any:
    """A container like this, with `member` of each of its members."""
    if isinstance(item, tuple):
        members = list(map(member, item))
        if all(new is old for new, old in zip(members, item, strict=True)):
            return item
        return type(item)(*members) if hasattr(item, "_fields") else type(item)(members)
    clone = copy.copy(item)
    for key in item if isinstance(item, dict) else range(len(item)):
        clone[key] = member(item[key])
    return clone
