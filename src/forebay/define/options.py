"""The constructor arguments of a pipeline."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from forebay.errors import ArgumentError
from forebay.types import CPU_ONLY_DEVICE_ID, DALIDataType, data_type

_LATER = (
    "serialize",
    "deserialize",
    "deserialize_and_build",
    "output_stream",
    "save_graph_to_dot_file",
    "executor_statistics",
    "external_source_shm_statistics",
)


@dataclass(frozen=True)
class Options:
    """The constructor arguments of a pipeline that change what it does.

    Attributes:
        batch_size: the most samples in a batch.
        num_threads: threads of the pool in which per-sample work runs.
        device_id: the GPU; None for none.
        seed: of all random numbers that have no seed of their own.
        seeded: whether it was given; else it is a fresh one.
        prefetch: how many batches are prepared ahead.
        forms: what is demanded of the outputs: element type, number of axes and layout, each one
            for all or a list.
        hints: the arguments that change nothing, as they were given.
    """

    batch_size: int
    num_threads: int
    device_id: int | None
    seed: int
    seeded: bool
    prefetch: int
    forms: tuple[Any, Any, Any]
    hints: Mapping[str, Any]


def make_options(
    batch_size: int | None,
    num_threads: int | None,
    device_id: int | None,
    seed: int | None,
    prefetch_queue_depth: int | dict[str, int],
    forms: tuple[Any, Any, Any],
    hints: Mapping[str, Any],
) -> Options:
    """Check and complete the constructor arguments. Raises ArgumentError.

    Args:
        batch_size, num_threads, device_id, seed, prefetch_queue_depth: as in `Pipeline`.
        forms, hints: as in `Options`.
    """
    if batch_size is None:
        raise ArgumentError("batch_size must be given: the most samples in a batch")
    depth = _depth(prefetch_queue_depth)
    ahead = hints["exec_pipelined"] and hints["exec_async"]
    return Options(
        batch_size=_positive("batch_size", batch_size),
        num_threads=1 if num_threads is None else _positive("num_threads", num_threads),
        device_id=_device(device_id),
        seed=_seed(seed),
        seeded=seed is not None and seed >= 0,
        prefetch=depth if ahead else 1,
        forms=(_types(forms[0]), _checked_ndim(forms[1]), _checked_layout(forms[2])),
        hints={**hints, **_queues(prefetch_queue_depth, depth)},
    )


def _integer(name: str, value: Any, wanted: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is {wanted}, but got {value!r}") from None


def _positive(name: str, value: Any) -> int:
    number = _integer(name, value, "a positive number")
    if number < 1:
        raise ArgumentError(f"{name} is a positive number, but got {value!r}")
    return number


def _depth(given: int | dict[str, int]) -> int:
    if not isinstance(given, dict):
        return _positive("prefetch_queue_depth", given)
    if set(given) != {"cpu_size", "gpu_size"}:
        raise ArgumentError(
            f"prefetch_queue_depth is a number or {{'cpu_size': …, 'gpu_size': …}}, but got {given}"
        )
    return max(_positive("prefetch_queue_depth", depth) for depth in given.values())


def _queues(given: int | dict[str, int], depth: int) -> dict[str, int]:
    sizes = given if isinstance(given, dict) else {"cpu_size": depth, "gpu_size": depth}
    return {"cpu_queue_size": sizes["cpu_size"], "gpu_queue_size": sizes["gpu_size"]}


def _device(given: int | None) -> int | None:
    if given in (None, -1, CPU_ONLY_DEVICE_ID):
        return None
    return _integer("device_id", given, "the number of a GPU, or None for none")


def _seed(given: int | None) -> int:
    seed = -1 if given is None else _integer("seed", given, "an integer, or None for a fresh one")
    return secrets.randbits(31) if seed < 0 else seed


def _types(given: Any) -> Any:
    if isinstance(given, list | tuple):
        return [_types(one) for one in given]
    return None if given is None else data_type(given)


def _checked_ndim(given: Any) -> Any:
    for ndim in given if isinstance(given, list | tuple) else [given]:
        if ndim is not None and _integer("output_ndim", ndim, "a number of axes") < 0:
            raise ArgumentError(f"output_ndim is a number of axes, but got {ndim!r}")
    return given


def _checked_layout(given: Any) -> Any:
    for layout in given if isinstance(given, list | tuple) else [given]:
        if layout is not None and not isinstance(layout, str):
            raise ArgumentError(f"output_layout has a letter for each axis, but got {layout!r}")
    return given


class Configured:
    """What can be read of a pipeline's constructor arguments."""

    _options: Options

    @property
    def max_batch_size(self) -> int:
        return self._options.batch_size

    @property
    def batch_size(self) -> int:
        return self._options.batch_size

    @property
    def num_threads(self) -> int:
        return self._options.num_threads

    @property
    def device_id(self) -> int | None:
        return self._options.device_id

    @property
    def seed(self) -> int:
        return self._options.seed

    @property
    def seeded(self) -> bool:
        """Whether the seed was given; else it is a fresh one."""
        return self._options.seeded

    @property
    def prefetch_queue_depth(self) -> int:
        return self._options.prefetch

    def __getattr__(self, name: str) -> Any:
        hints = self._options.hints if "_options" in vars(self) else {}
        if name in hints:
            return hints[name]
        kind = type(self).__name__
        if name in _LATER:
            raise AttributeError(f"{kind}.{name} is not in this version of forebay")
        raise AttributeError(f"'{kind}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        options = self._options
        return (
            f"<{type(self).__name__} batch_size={options.batch_size} "
            f"num_threads={options.num_threads} device_id={options.device_id} seed={options.seed}>"
        )


def not_in_this_version(what: str, instead: str) -> NoReturn:
    """Refuse an argument of DALI's that forebay does not have yet."""
    raise ArgumentError(f"{what} is not in this version of forebay; {instead}")


def check_output_forms(
    count: int,
    dtype: Any,
    ndim: Any,
    layout: Any,
) -> list[tuple[DALIDataType | None, int | None, str | None]]:
    """What `output_dtype`, `output_ndim` and `output_layout` demand of each of `count` outputs."""
    columns = []
    for name, value in (("dtype", dtype), ("ndim", ndim), ("layout", layout)):
        column = list(value) if isinstance(value, list | tuple) else [value] * count
        if len(column) != count:
            raise ArgumentError(
                f"output_{name} has {len(column)} values, but the pipeline has {count} outputs"
            )
        columns.append(column)
    return list(zip(*columns, strict=True))
