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
from forebay.deliver.pipeline_def import check_pipeline
from forebay.deliver.proxy import reference
from forebay.deliver.proxy.client import Client, Proxy, clients
from forebay.deliver.proxy.deliveries import Deliveries
from forebay.deliver.proxy.desk import Desk
from forebay.deliver.proxy.failures import BadSample, Failures, OnError
from forebay.deliver.proxy.protocol import Submit
from forebay.deliver.proxy.recorded import Reference, homes
from forebay.deliver.proxy.reference import Part, Ticket
from forebay.deliver.proxy.report import Report
from forebay.deliver.proxy.rows import NoGoodRowError
from forebay.deliver.ragged import Ragged
from forebay.errors import ArgumentError, GraphError, OperatorError, ProxyError, ServerStopped
from forebay.execute.kept import forgetful, fresh
from forebay.execute.scope import Scope, close_after

servers: weakref.WeakValueDictionary[str, Server] = weakref.WeakValueDictionary()
"""Those of this process, by the names that references have."""


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
        on_error: what becomes of a batch in which a sample fails. "raise" raises its error; "skip"
            leaves the sample out, with its labels and everything else of it; "substitute" puts
            another sample of the batch in its place. A batch of which nothing is left is passed
            over by the proxy's DataLoader, which also takes errors of the Dataset so, and samples
            that are None; without it the error is raised.
        max_errors: how many samples may fail in the server's life; one that fails in every epoch
            counts each time.

    Attributes:
        pipeline: what it runs.
        deliveries: what loaders use of it.

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
        on_error: OnError = "raise",
        max_errors: int | None = None,
    ) -> None:
        check_pipeline(pipeline)
        if ragged not in ("error", "list", "pad", "nested"):
            raise ArgumentError(f"ragged is 'error', 'list', 'pad' or 'nested', but got {ragged!r}")
        if on_error not in ("raise", "skip", "substitute"):
            raise ArgumentError(
                f"on_error is 'raise', 'skip' or 'substitute', but got {on_error!r}"
            )
        counts = isinstance(max_errors, int) and max_errors >= 0
        if max_errors is not None and (on_error == "raise" or not counts):
            raise ArgumentError(
                f"max_errors is a number from 0, and on_error is 'skip' or 'substitute' with it, "
                f"but got {max_errors!r} with {on_error!r}"
            )
        inputs = pipeline.inputs()
        if not inputs:
            raise GraphError("The provided pipeline doesn't have any inputs")
        self.pipeline = pipeline
        self._desk = desk = Desk(pipeline, deterministic=deterministic)
        self.deliveries = Deliveries(desk, Failures(on_error, max_errors), ragged)
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
        servers[desk.name] = self
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
        self.deliveries.failures.warn()

    def __enter__(self) -> Self:
        self.start_thread()
        return self

    def __exit__(self, *_: object) -> Literal[False]:
        self.stop_thread()
        return False

    def __repr__(self) -> str:
        state = "not running" if self._desk.scope is None else "running"
        return (
            f"<proxy.Server {state} inputs={list(self.pipeline.inputs())} "
            f"on_error={self.deliveries.failures.on_error!r} errors={len(self.errors)} "
            f"pipeline={self.pipeline!r}>"
        )

    @property
    def _thread(self) -> Scope | None:
        # What is there while the server runs, and None else: scripts written for DALI look at it.
        return self._desk.scope

    def _take(self, message: Submit, columns: list[list[Sample]]) -> Part:
        return self._desk.take_local(message, columns)

    def _receive(self, ticket: Ticket, rows: Sequence[int]) -> Part:
        return self._desk.receive(ticket, rows)

    def __reduce__(self) -> NoReturn:
        raise ProxyError(
            "a Server stays in its process: give the Dataset `server.proxy`, not the server"
        )

    @property
    def errors(self) -> tuple[BadSample, ...]:
        """The samples that were skipped or substituted, in the order in which that was found."""
        return self.deliveries.failures.all()

    @forgetful
    def produce_data(self, obj: Any) -> Any:
        """The same structure with data in the place of references.

        Args:
            obj: anything: lists, tuples, dicts, dataclasses and objects are looked through, and
                what is no reference of this server stays as it is. `obj` itself is not changed.

        Returns:
            A tensor for each batch reference, batch first; see `ragged` for other shapes.

        Raises:
            OperatorError: an operator failed on a sample of the batch, and `on_error` is "raise" or
                nothing would be left of the batch.
            TooManyErrors: more than `max_errors` samples have failed.
            ServerStopped, WorkerDied: the data will not come.
        """
        deliveries = self.deliveries
        if isinstance(obj, Reference) and deliveries.failures.on_error != "raise":
            try:
                return deliveries.evaluate(obj, deliveries.meters, perf_counter())
            except OperatorError as error:
                error.add_note(
                    "A reference alone is not skipped or substituted, because what belongs to it "
                    "is not known: give produce_data the whole batch. If this is all, give it in "
                    "a list"
                )
                raise
        try:
            return deliveries.produce(obj, deliveries.meters)
        except NoGoodRowError as error:
            first = error.first
        assert first is not None
        raise fresh(first)

    def report(self) -> Report:
        """Where the time of the epoch that was begun last went, and which stage limits.

        A loop over another loader than forebay's does not say when its epochs begin, nor when it
        asks for a batch. An epoch is then what the same workers sent, since the last report. Work
        before a batch's first call of the proxy is estimated from that before the other calls, and
        the loop is taken to wait until a batch is there, if it was not when the last one was done.
        """
        return self.deliveries.meters.report()


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
