"""What an operator is: a function, its schema, and faster kernels beside it.

An operator is written as one function in a file of its name:

    @operator
    def flip(data: Sample, *, horizontal: PerSample[int] = 1) -> Sample: ...

Its body is plain torch, runs on every device and *defines* the result. Kernels for one device are
registered in the same file; if one returns NotImplemented for a sample, the body does it:

    @flip.kernel("cpu")
    def _flip_cpu(data: Sample, *, horizontal: int) -> Any: ...
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

from forebay.batch import Batch, Sample
from forebay.errors import ArgumentError
from forebay.operators._argument import REQUIRED, Argument
from forebay.operators._rng import Rng
from forebay.operators._schema import BatchSize, Schema, read_schema, specials
from forebay.types import Into

Kernel = Callable[..., Any]
K = TypeVar("K", bound=Kernel)

RUNNABLE = ("cpu",)
"""The devices that this version has an executor for."""

registry: dict[str, Operator] = {}
"""All operators by dotted name, aliases among them."""


class SamplesFailedError(Exception):
    """What an operator over batches raises where single samples are to blame.

    Attributes:
        causes: position of a sample in the operator's inputs → what went wrong with it.
        results: what the operator returns for the others.
    """

    def __init__(self, causes: Mapping[int, Exception], results: tuple[Batch, ...]) -> None:
        super().__init__(causes)
        self.causes = causes
        self.results = results


class Operator:
    """One operator: its name, schema and kernels.

    Calling it runs the defining body on data, at once: ``flip(sample, horizontal=1)``.

    Attributes:
        name: dotted, as under ``fn``: ``"decoders.image"``.
        aliases: older names of the same operator. A mapping also has the names of their classes
            where these are irregular (``{"coco_reader": "COCOReader"}``).
        ops_name: the class's name under ``ops``, e.g. ``"ImageDecoder"``.
        ops_names: the same by name, for the aliases too.
        devices: the values of ``device=`` that it accepts, as DALI's does. Those that are not
            RUNNABLE are refused when a pipeline is built.
        ordered: it has hidden state, so its runs must happen one by one, in order.
        hidden: it is written by syntax (``a + b``), so ``fn`` does not list it.
        kernels: device → kernel.
    """

    def __init__(
        self,
        body: Kernel,
        name: str,
        *,
        aliases: Sequence[str] | Mapping[str, str] = (),
        ops_name: str | None = None,
        devices: Sequence[str] = ("cpu", "gpu"),
        ordered: bool = False,
        hidden: bool = False,
        outputs: Callable[[Mapping[str, Any]], int] | None = None,
        names: Callable[[Mapping[str, Any]], Sequence[str]] | None = None,
        check: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.name = name
        self.body = body
        self.schema: Schema = read_schema(name, body)
        self.aliases = tuple(aliases)
        self.ops_name = ops_name or class_name(name)
        irregular = aliases if isinstance(aliases, Mapping) else {}
        self.ops_names = {
            name: self.ops_name,
            **{alias: irregular.get(alias, class_name(alias)) for alias in self.aliases},
        }
        self.devices = tuple(devices)
        self.ordered = ordered
        self.hidden = hidden
        self.kernels: dict[str, Kernel] = {}
        self._outputs = outputs
        self._names = names
        self._check = check
        functools.update_wrapper(self, body)

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        return self.body(*inputs, **arguments)

    def kernel(self, device: str) -> Callable[[K], K]:
        """Register the decorated function as the kernel for a device ("cpu", "cuda")."""

        def register(function: K) -> K:
            self.kernels[device] = function
            return function

        return register

    @property
    def uses_rng(self) -> bool:
        """Whether it draws random numbers; every source may."""
        return self.schema.level == "source" or Rng in specials(self.body)

    def where(self) -> str:
        """Where it runs, in words, e.g. ``"cpu (in DALI also gpu)"``."""
        elsewhere = " or ".join(d for d in self.devices if d not in RUNNABLE)
        here = " or ".join(d for d in self.devices if d in RUNNABLE)
        return f"{here} (in DALI also {elsewhere})" if elsewhere else here

    def outputs(self, arguments: Mapping[str, Any]) -> int:
        """How many outputs it has, given its constant arguments."""
        names = self.output_names(arguments)
        if names is not None:
            return len(names)
        if self._outputs is not None:
            return self._outputs(arguments)
        assert self.schema.outputs is not None, f"{self.name} must say how many outputs it has"
        return self.schema.outputs

    def output_names(self, arguments: Mapping[str, Any]) -> Sequence[str] | None:
        """The names of its outputs, if a call gives a dict of them; else None."""
        return None if self._names is None else self._names(arguments)

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise ArgumentError for arguments that exclude each other. `given` lacks the defaults."""
        if self._check is not None:
            self._check(given)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


def class_name(name: str) -> str:
    """``"decoders.image_crop"`` → ``"ImageCrop"``."""
    return "".join(word[:1].upper() + word[1:] for word in name.rpartition(".")[2].split("_"))


@overload
def operator(body: Kernel) -> Operator: ...
@overload
def operator(**options: Any) -> Callable[[Kernel], Operator]: ...
def operator(body: Kernel | None = None, **options: Any) -> Operator | Callable[[Kernel], Operator]:
    """Make an operator of a function. Its name is its file's; `options` are those of `Operator`."""

    def make(function: Kernel) -> Operator:
        made = Operator(function, function.__module__.removeprefix(f"{__package__}."), **options)
        for name in (made.name, *made.aliases):
            registry[name] = made
        return made

    return make if body is None else make(body)


@functools.cache
def discover() -> dict[str, Operator]:
    """Import every file of this folder, once, and give all operators by name."""
    package = importlib.import_module(__package__)
    for module in pkgutil.walk_packages(package.__path__, f"{__package__}."):
        if not module.name.rpartition(".")[2].startswith("_"):
            importlib.import_module(module.name)
    return registry


class Call:
    """An operator with its arguments fixed: what is run on one sample after another.

    Args:
        operator: the operator.
        constants: validated values of the arguments that are the same for all samples.
        varying: names of the arguments that have a value per sample, in the order in which `run`
            gets them.
        device: "cpu" or "cuda".
    """

    def __init__(
        self,
        operator: Operator,
        constants: Mapping[str, Any],
        varying: Sequence[str] = (),
        device: str = "cpu",
    ) -> None:
        schema = operator.schema
        self.operator = operator
        self.batch_level = schema.level == "batch"
        self.varying: list[Argument] = [schema.argument(name) for name in varying]
        self._constants: dict[str, Any] = {}
        self._grouped: dict[str, dict[str, Any]] = {name: {} for name in schema.groups}
        for argument in schema.arguments.values():
            if argument.hint or argument.name in varying:
                continue
            value = constants.get(argument.name)
            if value is None:
                value = argument.default
            if value is REQUIRED:
                raise ArgumentError(f"{operator.name} needs the argument '{argument.name}'")
            home = self._constants if argument.group is None else self._grouped[argument.group]
            home[argument.name] = value
        varying_groups = {argument.group for argument in self.varying}
        for name in [name for name in self._grouped if name not in varying_groups]:
            self._constants[name] = schema.groups[name](**self._grouped.pop(name))
        kernel = operator.kernels.get(device)
        self._steps = [(f, specials(f)) for f in (kernel, operator.body) if f is not None]
        self.uses_rng = any(Rng in wants for _, wants in self._steps)

    def run(
        self,
        inputs: Sequence[Any],
        values: Sequence[Any] = (),
        rng: Rng | None = None,
        into: Into | None = None,
        batch_size: int | None = None,
    ) -> Any:
        """Run on one sample, or on one batch if `batch_level`.

        Args:
            inputs: a Sample per input; a Batch per input at batch level.
            values: the same for each varying argument.
            rng, into, batch_size: given to kernels that ask for them.

        Returns:
            A Sample (or Batch), or a tuple of them if the operator has several outputs.
        """
        arguments = self._constants
        if self.varying:
            arguments = self._with_values(values)
        for function, wants in self._steps:
            extra = arguments
            if wants:
                extra = dict(arguments)
                for hint, given in ((Rng, rng), (Into, into), (BatchSize, batch_size)):
                    if hint in wants:
                        extra[wants[hint]] = given
            result = function(*inputs, **extra)
            if result is not NotImplemented:
                return result
        raise AssertionError(f"the defining body of {self.operator.name} returned NotImplemented")

    def _with_values(self, values: Sequence[Any]) -> dict[str, Any]:
        arguments = dict(self._constants)
        grouped = {name: dict(fields) for name, fields in self._grouped.items()}
        for argument, value in zip(self.varying, values, strict=True):
            read: Any
            if self.batch_level:
                read = [argument.read(sample) for sample in value.samples]
            else:
                read = argument.read(value)
            home = arguments if argument.group is None else grouped[argument.group]
            home[argument.name] = read
        for name, fields in grouped.items():
            arguments[name] = self.operator.schema.groups[name](**fields)
        return arguments


def as_outputs(result: Any) -> tuple[Sample, ...] | tuple[Batch, ...]:
    """What a kernel returned, always as a tuple."""
    return result if isinstance(result, tuple) else (result,)
