"""The server as the user holds it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Literal, NoReturn, Self

from forebay.batch import Sample
from forebay.deliver.pipeline import Pipeline
from forebay.deliver.proxy import reference
from forebay.deliver.proxy.client import Client, Proxy, clients
from forebay.deliver.proxy.desk import Desk
from forebay.deliver.proxy.entry import Entry
from forebay.deliver.proxy.evaluate import Evaluation
from forebay.deliver.proxy.protocol import Submit
from forebay.deliver.proxy.recorded import Reference, homes
from forebay.deliver.proxy.reference import Part, Ticket
from forebay.deliver.proxy.report import Meter, Meters, Report
from forebay.deliver.proxy.structure import replace
from forebay.deliver.ragged import Ragged
from forebay.errors import ArgumentError, GraphError, ProxyError, ServerStopped
from forebay.execute.scope import close_after


class Server:
    """Runs a pipeline for samples that a Dataset hands over, mostly in DataLoader workers.

    Use it as a context manager, or let it start when data is first asked for.

    Args:
        pipeline: its external sources without a callback are the proxy's parameters.
        deterministic: also fix the order in which batches are run: each begins only when it is
            asked for. Only operators with hidden state (Python functions) can tell the difference.
        ragged: what a batch whose samples differ in shape becomes: "error" raises, "list" is a list
            of tensors, "pad" a named tuple of zero-padded data and lengths, "nested" a nested
            tensor.
        on_error: "raise"; "skip" and "substitute" are not in this version.
        max_errors: not in this version.

    Raises:
        TypeError: `pipeline` is not a Pipeline.
        GraphError: the pipeline has no inputs.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        deterministic: bool = False,
        *,
        ragged: Ragged = "error",
        on_error: Literal["raise"] = "raise",
        max_errors: int | None = None,
    ) -> None:
        if not isinstance(pipeline, Pipeline):
            raise ArgumentError(f"Expected a forebay pipeline, got: {pipeline}")
        if ragged not in ("error", "list", "pad", "nested"):
            raise ArgumentError(f"ragged is 'error', 'list', 'pad' or 'nested', but got {ragged!r}")
        if on_error != "raise" or max_errors is not None:
            raise ArgumentError(
                "on_error and max_errors are not in this version of forebay; leave them out"
            )
        inputs = pipeline.inputs()
        if not inputs:
            raise GraphError("The provided pipeline doesn't have any inputs")
        self._ragged: Ragged = ragged
        self._meters = Meters()
        self._desk = desk = Desk(pipeline, deterministic=deterministic)
        limit = pipeline.max_batch_size
        outbox = partial(_take_local, weakref.WeakMethod(self._take))
        client = Client(desk.name, list(inputs), limit, outbox)
        clients[desk.name] = os.getpid(), client
        reference.receivers[desk.name] = partial(_receive, weakref.WeakMethod(self._receive))
        homes[desk.name] = partial(_at_home, weakref.WeakMethod(self.produce_data))
        forms = {name: (n.constants["form"], n.constants["no_copy"]) for name, n in inputs.items()}
        self._proxy = Proxy(
            desk.name, desk.listener.address, desk.key, forms, pipeline.num_outputs, limit
        )
        close_after(self, partial(_end, desk))

    @property
    def proxy(self) -> Proxy:
        """The callable to give to the Dataset."""
        return self._proxy

    def start_thread(self) -> None:
        """Start the server's threads. Idempotent, and called when data is first asked for."""
        self._desk.start()

    def stop_thread(self) -> None:
        """Stop the server's threads. References that were not used yet lose their data."""
        self._desk.stop()

    def __enter__(self) -> Self:
        self.start_thread()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_thread()

    def _take(self, message: Submit, columns: list[list[Sample]]) -> Part:
        return self._desk.take_local(message, columns)

    def _receive(self, ticket: Ticket, rows: Sequence[int]) -> Part:
        return self._desk.receive(ticket, rows)

    def __reduce__(self) -> NoReturn:
        raise ProxyError(
            "a Server stays in its process: give the Dataset `server.proxy`, not the server"
        )

    def begin_epoch(self) -> int:
        """The number of a new epoch. Random numbers depend on it; loaders call it."""
        return self._desk.begin_epoch()

    def produce_data(self, obj: Any) -> Any:
        """The same structure with data in the place of references.

        Args:
            obj: anything: lists, tuples, dicts, dataclasses and objects are looked through, and
                what is no reference of this server stays as it is. `obj` itself is not changed.

        Returns:
            A tensor for each batch reference, batch first; see `ragged` for other shapes.

        Raises:
            OperatorError: an operator failed on a sample of the batch.
            ServerStopped, WorkerDied: the data will not come.
        """
        return self.produce_measured(obj, self._meters)

    def report(self) -> Report:
        """Where the time of the epoch that was begun last went, and which stage limits.

        A loop over another loader than forebay's does not say when its epochs begin, nor when it
        asks for a batch. An epoch is then what the same workers sent, since the last report. Work
        before a batch's first call of the proxy is estimated from that before the other calls, and
        the loop is taken to wait until a batch is there, if it was not when the last one was done.
        """
        return self._meters.report()

    def measure_epoch(self) -> Meter:
        """The meter of a new epoch; loaders call it."""
        return self._meters.begin()

    def produce_measured(self, obj: Any, meter: Meter | Meters) -> Any:
        """`produce_data`, whose time the meter is told."""
        got = perf_counter()
        desk = self._desk
        entries: dict[Entry, None] = {}

        def entry(part: Part) -> Entry:
            found = desk.entry(part)
            entries[found] = None
            return found

        evaluation = Evaluation(entry, self._ragged)

        def value(ref: Reference) -> Any:
            return evaluation.value(ref) if ref.server == desk.name else ref

        produced = replace(obj, Reference, value)
        meter.book(entries, got, perf_counter(), evaluation.recorded)
        return produced


# What is called is a method of the whole server, so that it is not found to be garbage, and ended,
# while one of its locks is held.


def _take_local(
    method: weakref.WeakMethod[Callable[[Submit, list[list[Sample]]], Part]],
    message: Submit,
    columns: list[list[Sample]],
) -> Part:
    take = method()
    if take is None:
        raise ServerStopped("the server of this proxy is gone")
    return take(message, columns)


def _receive(
    method: weakref.WeakMethod[Callable[[Ticket, Sequence[int]], Part]],
    ticket: Ticket,
    rows: Sequence[int],
) -> Part:
    receive = method()
    return Part(ticket) if receive is None else receive(ticket, rows)


def _at_home(method: weakref.WeakMethod[Callable[[Any], Any]], ref: Reference) -> Any:
    produce = method()
    if produce is None:
        raise ServerStopped("the server of this reference is gone")
    return produce(ref)


def _end(desk: Desk) -> None:
    homes.pop(desk.name, None)
    clients.pop(desk.name, None)
    reference.receivers.pop(desk.name, None)
    desk.stop()
    desk.listener.close()
