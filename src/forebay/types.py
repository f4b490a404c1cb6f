"""The words that signatures are made of.

The enums and their numbers are DALI's, because scripts use them by name and by number. The second
half are the words that operator signatures use: ``PerSample[float]``, ``Ints``, ``Between`` …
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np
import torch

from forebay.errors import ArgumentError

T = TypeVar("T")


class DALIDataType(enum.IntEnum):
    """The type of a tensor's elements."""

    NO_TYPE = -1
    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    UINT64 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    FLOAT16 = 8
    FLOAT = 9
    FLOAT64 = 10
    BOOL = 11
    STRING = 12
    FEATURE = 17
    IMAGE_TYPE = 20
    DATA_TYPE = 21
    INTERP_TYPE = 22
    TENSOR_LAYOUT = 23
    PYTHON_OBJECT = 24

    @property
    def numpy(self) -> np.dtype[Any]:
        """The same type in numpy. Raises ArgumentError for types that arrays cannot have."""
        try:
            return _NUMPY[self]
        except KeyError:
            raise ArgumentError(f"{self.name} is not a type of tensor elements") from None

    @property
    def torch(self) -> torch.dtype:
        """The same type as a torch dtype."""
        return _TORCH[self.numpy]

    @property
    def is_float(self) -> bool:
        return self in (DALIDataType.FLOAT16, DALIDataType.FLOAT, DALIDataType.FLOAT64)

    @property
    def is_signed(self) -> bool:
        return self.numpy.kind in "if"


class DALIImageType(enum.IntEnum):
    """The colour space of an image."""

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4

    @property
    def channels(self) -> int | None:
        """Number of channels, None for ANY_DATA (as many as the file has)."""
        return {DALIImageType.GRAY: 1, DALIImageType.ANY_DATA: None}.get(self, 3)


class DALIInterpType(enum.IntEnum):
    """How values between pixels are found."""

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5


class PipelineAPIType(enum.Enum):
    """Which of the three ways of running a pipeline is in use; they cannot be mixed."""

    BASIC = 0
    ITERATOR = 1
    SCHEDULED = 2


_NUMPY: dict[DALIDataType, np.dtype[Any]] = {
    DALIDataType.UINT8: np.dtype(np.uint8),
    DALIDataType.UINT16: np.dtype(np.uint16),
    DALIDataType.UINT32: np.dtype(np.uint32),
    DALIDataType.UINT64: np.dtype(np.uint64),
    DALIDataType.INT8: np.dtype(np.int8),
    DALIDataType.INT16: np.dtype(np.int16),
    DALIDataType.INT32: np.dtype(np.int32),
    DALIDataType.INT64: np.dtype(np.int64),
    DALIDataType.FLOAT16: np.dtype(np.float16),
    DALIDataType.FLOAT: np.dtype(np.float32),
    DALIDataType.FLOAT64: np.dtype(np.float64),
    DALIDataType.BOOL: np.dtype(np.bool_),
}
_TORCH: dict[np.dtype[Any], torch.dtype] = {
    dtype: torch.bool if dtype == np.bool_ else getattr(torch, dtype.name)
    for dtype in _NUMPY.values()
}
_FROM: dict[Any, DALIDataType] = {
    **{dtype: dali for dali, dtype in _NUMPY.items()},
    **{_TORCH[dtype]: dali for dali, dtype in _NUMPY.items()},
}


def data_type(dtype: int | np.dtype[Any] | torch.dtype | type) -> DALIDataType:
    """The DALIDataType of its number, or of a numpy or torch dtype; else raises ArgumentError."""
    if isinstance(dtype, int):
        if dtype in set(DALIDataType):
            return DALIDataType(dtype)
        raise ArgumentError(f"{dtype} is not the number of an element type")
    found = _FROM.get(dtype)
    if found is None and not isinstance(dtype, torch.dtype):
        try:
            found = _FROM.get(np.dtype(dtype).newbyteorder("="))
        except TypeError:
            found = None
    if found is None:
        raise ArgumentError(f"elements of type {dtype} are not supported")
    return found


def to_numpy_type(dtype: DALIDataType) -> type:
    """The numpy scalar type of a DALIDataType."""
    return dtype.numpy.type


NO_TYPE, STRING, FEATURE = DALIDataType.NO_TYPE, DALIDataType.STRING, DALIDataType.FEATURE
UINT8, UINT16, UINT32, UINT64 = (
    DALIDataType.UINT8,
    DALIDataType.UINT16,
    DALIDataType.UINT32,
    DALIDataType.UINT64,
)
INT8, INT16, INT32, INT64 = (
    DALIDataType.INT8,
    DALIDataType.INT16,
    DALIDataType.INT32,
    DALIDataType.INT64,
)
FLOAT16, FLOAT, FLOAT64, BOOL = (
    DALIDataType.FLOAT16,
    DALIDataType.FLOAT,
    DALIDataType.FLOAT64,
    DALIDataType.BOOL,
)
RGB, BGR, GRAY, YCbCr, ANY_DATA = tuple(DALIImageType)
(
    INTERP_NN,
    INTERP_LINEAR,
    INTERP_CUBIC,
    INTERP_LANCZOS3,
    INTERP_TRIANGULAR,
    INTERP_GAUSSIAN,
) = tuple(DALIInterpType)
NCHW, NHWC, NFHWC, NFCHW = "CHW", "HWC", "FHWC", "FCHW"  # a sample has no N
CPU_ONLY_DEVICE_ID = -99999


@dataclass
class SampleInfo:
    """What a sample-mode source callback is told about the sample it is asked for."""

    idx_in_epoch: int
    idx_in_batch: int
    iteration: int
    epoch_idx: int


@dataclass
class BatchInfo:
    """What a batch-mode source callback is told when it asked for `batch_info`."""

    iteration: int
    epoch_idx: int


@dataclass(frozen=True, init=False)
class ScalarConstant:
    """One number that is the same in every sample, and its element type.

    Python numbers are int32, float32 or bool, as in DALI; numpy's scalars, arrays and tensors
    without axes keep their type. ``types.Constant(1).uint8()`` and its siblings change the type:
    integers are cut off as by ``int``, and bools are the number's truth.

    In arithmetic with nodes an integer must fit its type; by itself it is clamped to the type's
    range, but refused by int32, which is the type if nothing is said.

    Raises:
        ArgumentError: `value` is not a number, or one that the type cannot have.
    """

    value: bool | int | float
    dtype: DALIDataType
    shape: ClassVar[Sequence[int]] = ()

    def __init__(self, value: Any, dtype: DALIDataType | None = None) -> None:
        number, own = _number(value)
        kept = own if dtype is None else data_type(dtype)
        kind = {"b": bool, "f": float}.get(kept.numpy.kind, int)
        try:
            object.__setattr__(self, "value", kind(number))
        except (ValueError, OverflowError):  # NaN and infinity
            raise ArgumentError(f"{number!r} cannot be {kept.name}") from None
        object.__setattr__(self, "dtype", kept)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def _as(self, dtype: DALIDataType) -> ScalarConstant:
        return ScalarConstant(self.value, dtype)

    def bool(self) -> ScalarConstant:
        return self._as(BOOL)

    def int8(self) -> ScalarConstant:
        return self._as(INT8)

    def int16(self) -> ScalarConstant:
        return self._as(INT16)

    def int32(self) -> ScalarConstant:
        return self._as(INT32)

    def int64(self) -> ScalarConstant:
        return self._as(INT64)

    def uint8(self) -> ScalarConstant:
        return self._as(UINT8)

    def uint16(self) -> ScalarConstant:
        return self._as(UINT16)

    def uint32(self) -> ScalarConstant:
        return self._as(UINT32)

    def uint64(self) -> ScalarConstant:
        return self._as(UINT64)

    def float16(self) -> ScalarConstant:
        return self._as(FLOAT16)

    def float32(self) -> ScalarConstant:
        return self._as(FLOAT)

    def float64(self) -> ScalarConstant:
        return self._as(FLOAT64)


def _number(value: Any) -> tuple[Any, DALIDataType]:
    """A single number as Python has it, and its element type."""
    if not is_number(value):
        raise ArgumentError(f"a constant takes numbers, but got {value!r} ({type(value).__name__})")
    if isinstance(value, np.generic | np.ndarray | torch.Tensor):
        return value.item(), data_type(value.dtype)
    return value, next(d for k, d in _OF_NUMBERS.items() if isinstance(value, k))


_OF_NUMBERS = {bool: BOOL, int: INT32, float: FLOAT}


def is_number(value: Any) -> bool:
    """Whether it is a single number: Python's, numpy's, or an array or tensor without axes."""
    if isinstance(value, np.generic | np.ndarray):
        return not value.ndim and value.dtype.kind in "biuf"
    return isinstance(value, int | float) or (isinstance(value, torch.Tensor) and not value.ndim)


_write_constant: Callable[..., Any]


def writes_constants(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register what writes the node of a constant; it is in define, right of this file."""
    global _write_constant
    _write_constant = function
    return function


def Constant(  # noqa: N802 - DALI's name
    value: Any,
    dtype: DALIDataType | None = None,
    shape: int | Sequence[int] | None = None,
    layout: str | None = None,
    device: str | None = None,
    **arguments: Any,
) -> Any:
    """A value that is the same in every sample.

    Args:
        value: a number, a flat list of numbers, an array or a tensor. Nested lists are refused:
            make an array of them.
        dtype: the element type. Numbers are rounded half away from zero and clamped to its range;
            a ScalarConstant's are cut off. By default integers are int32, floats float32 and bools
            bool; of arrays, int64 becomes int32, uint64 uint32 and float64 float32; tensors keep
            their type.
        shape: repeats a single number, or reshapes the value.
        layout: a letter for each axis.
        device: where the data is: "cpu" in this version.
        arguments: those that every operator has, such as `name`.

    Returns:
        A `ScalarConstant` for a single number of which nothing but the type is said (shapes ``()``
        and ``(1,)`` are taken so too, as in DALI); else a node.

    Raises:
        ArgumentError: `value` is neither number, flat list nor array; integers do not fit their
            type and no `dtype` is given; a shape or layout does not fit; an argument is unknown.
    """
    if not arguments and layout is None and device is None and is_number(value):
        extents = () if shape is None else tuple(np.atleast_1d(shape))
        if extents in ((), (1,)):
            return ScalarConstant(value, dtype)
    return _write_constant(value, dtype, shape, layout, device, arguments)


# ── words of operator signatures ──────────────────────────────────────────────────────────────────


class PerSampleMark:
    """Marks an argument whose value may be a node, with one value per sample."""


PerSample: TypeAlias = Annotated[T, PerSampleMark()]
"""``PerSample[T]``: one constant for all samples, or a node that has a value for each."""

Ints: TypeAlias = tuple[int, ...]
Floats: TypeAlias = tuple[float, ...]
Strings: TypeAlias = tuple[str, ...]
"""Vectors. A single value is taken as a vector of one."""

Layout: TypeAlias = Annotated[str, "layout"]
"""A letter per axis: ``"HWC"``, ``"CHW"``, ``"FHWC"`` …; empty if unknown."""


@dataclass(frozen=True)
class Between:
    """The closed range that an argument's numbers must lie in."""

    low: float
    high: float


@dataclass(frozen=True)
class OneOf:
    """The values that an argument may have."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Arguments:
    """Base of argument groups: a frozen dataclass whose fields are arguments of several operators.

    An operator that names such a class as the type of a keyword-only parameter has all its fields
    as arguments, and its kernel gets one object with their values for the sample.
    """


@dataclass(frozen=True)
class Hints(Arguments):
    """Base of groups of arguments that are accepted, change no result and reach no kernel."""


class Into(Protocol):
    """Where a CPU kernel writes its result: gives an array of that shape and type, uninitialised.

    It is the sample's place in the batch when the batch is uniform and this operator is the last,
    so a kernel that asks for it saves a copy.
    """

    def __call__(
        self, shape: Sequence[int], dtype: np.dtype[Any] | type
    ) -> np.ndarray[Any, Any]: ...
