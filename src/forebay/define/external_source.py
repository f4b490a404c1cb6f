"""`fn.external_source`: data that the user's own Python code gives.

The source is a callable, an iterable, a generator function or None. With None the node is fed by
hand: by `Pipeline.feed_input`, `run(name=…)` or the proxy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from forebay.batch import Batch
from forebay.define.form import Form
from forebay.define.node import DataNode, Node
from forebay.define.origin import caller
from forebay.errors import ArgumentError, PlacementError, SourceError, UnknownArgumentError
from forebay.operators._argument import suggestion
from forebay.operators._source import Request, Source
from forebay.operators.external_source import external_source as operator
from forebay.types import BatchInfo, SampleInfo

_HINTS = ("cuda_stream", "use_copy_kernel", "prefetch_queue_depth", "bytes_per_sample_hint")


def external_source(
    source: Any = None,
    num_outputs: int | None = None,
    *,
    cycle: bool | str | None = None,
    name: str | None = None,
    device: str = "cpu",
    layout: str | Sequence[str] | None = None,
    dtype: Any = None,
    ndim: int | Sequence[int] | None = None,
    batch: bool | None = None,
    batch_info: bool | None = None,
    parallel: bool | None = None,
    no_copy: bool | None = None,
    blocking: bool | None = None,
    repeat_last: bool = False,
    preserve: bool | None = None,
    **hints: Any,
) -> DataNode | list[DataNode]:
    """Data from the user's Python code.

    A sample is an array, a tensor, a number, a list of numbers, a picture of Pillow's (height x
    width x channels, unless `ndim` or `layout` want two axes), bytes (taken as uint8), or a text or
    path (its UTF-8 bytes, as `fn.io.file.read` takes them). A batch is a list of samples, or an
    array with the batch as its first axis.

    Args:
        source: a callable, an iterable (list, generator, iterator, …) or a generator function. None
            for a node that is fed by hand. A callable takes no argument, the number of the batch
            (or a BatchInfo if `batch_info`), or a SampleInfo if not `batch`.
        num_outputs: the source gives a tuple of so many outputs. None: one output, no tuple.
        cycle: what an iterable does at its end: None, False or "no" ends the data, True or "quiet"
            starts it again, "raise" ends the epoch and starts it again after `reset`.
        name: of the node; the proxy's parameters and `feed_input` use it.
        device: "cpu". "gpu", to have the data copied to the GPU, is refused when the pipeline is
            built: this version has no GPU executor.
        layout, dtype, ndim: of the data; one for all outputs, or a list with one for each of the
            first outputs. Data of another type or number of axes is refused.
        batch: whether the source gives whole batches (default) or samples.
        batch_info: give the callable a BatchInfo rather than a number.
        parallel: run the source in worker processes: not in this version.
        no_copy: the data is not copied; it must not be changed until its batch is done.
        blocking: `run` waits until another thread has fed the data.
        repeat_last: when nothing new was fed, use the last batch again.
        preserve: read the source even if no output needs it.
        hints: cuda_stream, use_copy_kernel, prefetch_queue_depth and bytes_per_sample_hint are
            accepted and have no effect.

    Returns:
        A node; a list of nodes if `num_outputs` is given.

    Raises:
        ArgumentError: arguments that are unknown, or do not go together.
    """
    _check(source, num_outputs, cycle, device, hints, parallel=bool(parallel))
    count = num_outputs or 1
    forms = [
        Form(*each)
        for each in zip(
            _spread(layout, count, "layout"),
            _spread(dtype, count, "dtype"),
            _spread(ndim, count, "ndim"),
            strict=True,
        )
    ]
    feeder: Source | None = None
    if source is not None:
        feeder = PythonSource(
            _make_give(source, cycle, batch_info=bool(batch_info)),
            forms,
            as_tuple=num_outputs is not None,
            batch=batch is not False,
            copy=not no_copy,
        )
    node = Node(
        operator=operator,
        inputs=(),
        constants={
            "form": forms[0],
            "blocking": bool(blocking),
            "repeat_last": repeat_last,
            "no_copy": bool(no_copy),
        },
        varying={},
        device="cpu",
        outputs=count,
        origin=caller(),
        name=name,
        preserve=bool(preserve),
        source=feeder,
    )
    results = [r if device == "cpu" else r.gpu() for r in node.results()]
    return results[0] if num_outputs is None else results


def _check(
    source: Any,
    num_outputs: int | None,
    cycle: bool | str | None,
    device: str,
    hints: Mapping[str, Any],
    *,
    parallel: bool,
) -> None:
    for hint in hints:
        if hint not in _HINTS:
            known = (*inspect.signature(external_source).parameters, *_HINTS)
            raise UnknownArgumentError(
                f"external_source has no argument '{hint}'{suggestion(hint, known)}"
            )
    if device not in ("cpu", "gpu"):
        raise PlacementError(
            f"fn.external_source runs on {operator.where()}, but device={device!r}"
        )
    if parallel:
        raise ArgumentError(
            "external_source(parallel=True) is not in this version; leave it out, or load the data "
            "in DataLoader workers through forebay.torch.proxy"
        )
    if source is None and cycle:
        raise ArgumentError("'cycle' is for iterables, but there is no source")
    if source is None and num_outputs is not None:
        raise ArgumentError(
            "The parameter ``num_outputs`` is only valid when using ``source`` to provide data. "
            "Without a source, write one external_source for each input"
        )


def _spread(value: Any, count: int, what: str) -> list[Any]:
    """One value for each output, from one for all or a list, which may end early."""
    if isinstance(value, list | tuple):
        if len(value) > count:
            raise ArgumentError(f"{count} outputs, but {len(value)} values of '{what}'")
        return [*value, *[None] * (count - len(value))]
    return [value] * count


def _make_give(
    source: Any, cycle: bool | str | None, *, batch_info: bool
) -> _Iteration | _Callback:
    if cycle not in (None, False, "no", True, "quiet", "raise"):
        raise ArgumentError(
            f"cycle is None, False, 'no', True, 'quiet' or 'raise', but got {cycle!r}"
        )
    cycle = False if cycle == "no" else cycle
    if callable(source) and not inspect.isgeneratorfunction(source):
        if cycle:
            raise ArgumentError("'cycle' is for iterables; a callable raises StopIteration itself")
        return _Callback(source, batch_info=batch_info)
    if not callable(source) and not isinstance(source, Iterable):
        raise ArgumentError(
            f"a source is a callable or an iterable, but got {type(source).__name__}"
        )
    if cycle and inspect.isgenerator(source):
        raise ArgumentError(
            "a generator cannot be started again: give the function that makes it, or leave out "
            "'cycle'"
        )
    return _Iteration(source, cycle)


class _Iteration:
    """Items of an iterable, one a call, in cycles if wanted."""

    def __init__(self, source: Any, cycle: bool | str | None) -> None:
        self._make = source if callable(source) else lambda: source
        self._cycle = cycle
        self._items = iter(self._make())

    def __call__(self, request: Request, row: int | None) -> Any:
        try:
            return next(self._items)
        except StopIteration:
            if self._cycle not in (True, "quiet"):
                raise
        self.reset()
        return next(self._items)  # an empty iterable ends the data

    def reset(self) -> None:
        if self._cycle:
            self._items = iter(self._make())


class _Callback:
    """A callable that is asked for a batch, or for each of its rows.

    Attributes:
        takes_request: it is told which one.
    """

    def __init__(self, source: Callable[..., Any], *, batch_info: bool) -> None:
        self._source = source
        self._batch_info = batch_info
        self.takes_request = _takes_argument(source)

    def __call__(self, request: Request, row: int | None) -> Any:
        if not self.takes_request:
            return self._source()
        iteration, epoch = request.iteration, request.epoch
        if row is not None:
            place = iteration * request.batch_size + row
            return self._source(SampleInfo(place, row, iteration, epoch))
        return self._source(BatchInfo(iteration, epoch) if self._batch_info else iteration)

    def reset(self) -> None:
        """A callable is told the epoch's number; it has nothing to begin again."""


def _takes_argument(source: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(source).parameters.values()
    except (TypeError, ValueError):  # built-in functions without a signature
        return False
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    return any(p.kind in positional for p in parameters)


class PythonSource(Source):
    """Batches of the user's callable or iterable."""

    def __init__(
        self,
        give: _Iteration | _Callback,
        forms: Sequence[Form],
        *,
        as_tuple: bool,
        batch: bool,
        copy: bool,
    ) -> None:
        self._give = give
        self._forms = forms
        self._as_tuple = as_tuple
        self._batch = batch
        self._copy = copy
        self._over = False
        self.seekable = isinstance(give, _Callback) and give.takes_request

    def read(self, request: Request) -> Sequence[Batch]:
        if self._over:
            raise StopIteration
        data = self._give(request, None) if self._batch else self._read_rows(request)
        count = len(self._forms)
        if not self._as_tuple:
            columns: Sequence[Any] = [data]
        elif self._batch:
            columns = self._split(data, count)
        else:
            columns = list(zip(*(self._split(row, count) for row in data), strict=True))
        batches = [
            form.batch(column, copy=self._copy)
            for form, column in zip(self._forms, columns, strict=True)
        ]
        for batch in batches:
            if not 0 < len(batch) <= request.batch_size:
                raise SourceError(
                    f"the source gave {len(batch)} samples for a batch of 1 to "
                    f"{request.batch_size} (the pipeline's batch_size)"
                )
        return batches

    def _read_rows(self, request: Request) -> list[Any]:
        """As many samples as the source has, up to a batch; a partial batch ends the data."""
        rows: list[Any] = []
        try:
            for row in range(request.batch_size):
                rows.append(self._give(request, row))  # noqa: PERF401 - StopIteration ends generators
        except StopIteration:
            if not rows:
                raise
            self._over = True
        return rows

    @staticmethod
    def _split(data: Any, count: int) -> Sequence[Any]:
        sequence = isinstance(data, list | tuple | np.ndarray | torch.Tensor)
        if not sequence or len(data) != count:
            got = f"a {type(data).__name__}{f' of {len(data)}' if sequence else ''}"
            raise SourceError(f"the source must give a tuple of {count} outputs, but gave {got}")
        found: Sequence[Any] = data
        return found

    def reset(self) -> None:
        self._over = False
        self._give.reset()
