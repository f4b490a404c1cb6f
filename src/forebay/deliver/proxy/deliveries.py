"""What the server does for loaders: the data of whole batches."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any

from forebay.deliver.proxy.desk import Desk
from forebay.deliver.proxy.entry import Entry
from forebay.deliver.proxy.evaluate import Evaluation
from forebay.deliver.proxy.failures import Failures
from forebay.deliver.proxy.recorded import Reference
from forebay.deliver.proxy.report import Meter, Meters
from forebay.deliver.proxy.rows import parts, settle
from forebay.deliver.proxy.structure import replace
from forebay.deliver.ragged import Ragged
from forebay.errors import OperatorError


class Deliveries:
    """The side of a server that loaders see. Who uses it must keep the server.

    Attributes:
        desk: has the data, and numbers the epochs.
        failures: the samples that failed, and what becomes of their batches.
        meters: measure the time of epochs.
    """

    def __init__(self, desk: Desk, failures: Failures, ragged: Ragged) -> None:
        self.desk = desk
        self.failures = failures
        self.meters = Meters()
        self._ragged = ragged

    def owns(self, ref: Reference) -> bool:
        """Whether the reference is one of this server."""
        return ref.server == self.desk.name

    def produce(self, batch: Any, meter: Meter | Meters) -> Any:
        """`produce_data` of all that a loader gave at once; its time is told to the meter.

        Raises NoGoodRowError.
        """
        got = perf_counter()
        if self.failures.on_error != "raise":
            batch = settle(batch, self.owns, self.desk.entry, self.failures)
        return self.evaluate(batch, meter, got)

    def evaluate(self, obj: Any, meter: Meter | Meters, got: float) -> Any:
        """Put data in the place of references. `got`: when they were there.

        Raises what went wrong in the first row that failed.
        """
        evaluation = Evaluation(self.desk.entry, self.owns, self._ragged)
        try:
            produced = replace(obj, Reference, evaluation.own_value)
        except OperatorError as error:
            if self.failures.on_error == "raise":
                _suggest_skipping(error, evaluation.entries)
            raise
        meter.book(evaluation.entries, got, perf_counter(), evaluation.recorded)
        return produced

    def wait(self, batch: Any, timeout: float) -> None:
        """Wait until the pipeline's outputs for a batch are there.

        Raises:
            TimeoutError: they have not come within that many seconds.
            ServerStopped, WorkerDied: they will not come.
        """
        end = perf_counter() + timeout
        for part in parts(batch, self.owns):
            if not self.desk.entry(part, timeout).wait(max(0.0, end - perf_counter())):
                raise TimeoutError


def _suggest_skipping(error: OperatorError, entries: Iterable[Entry]) -> None:
    """Note it on the error of a sample, unless all those that it was run with failed too."""
    runs = [entry.run for entry in entries if entry.run is not None]
    failed = [run for run in runs if run.failures]
    if failed and all(len(run.failures) < run.size for run in failed):
        error.add_note("Server(..., on_error='skip') leaves such samples out and goes on")
