"""What the server keeps of a part."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from forebay.batch import Batch
from forebay.deliver.proxy.report import Trip
from forebay.errors import ProxyError, ServerStopped, SourceError
from forebay.execute.channel import Closed
from forebay.execute.kept import fresh, kept
from forebay.execute.run import EndOfData, Run

STOPPED = "the server was stopped before this batch was done"


class Entry:
    """How to run a part, then its run.

    Attributes:
        epoch: the number of its epoch.
        indices: of each row in the dataset; None where it is not known.
        missing: the rows of which no reference has come out of the worker yet.
        tensors: what was made of its outputs, so that asking again gives the same.
        noted: the rows whose failure the server has counted.
        trip: how it came here, until it is first used.
    """

    def __init__(
        self, start: Callable[[], Run], epoch: int = 0, indices: Sequence[Any] = ()
    ) -> None:
        self._start: Callable[[], Run] | None = start
        self.epoch = epoch
        self.indices = indices
        self._lock = threading.Lock()
        self._run: Run | None = None
        self._error: Exception | None = None
        self.missing: set[int] = set()
        self.tensors: dict[Any, Any] = {}
        self.noted: dict[int, object] = {}
        self.trip: Trip | None = None

    @property
    def run(self) -> Run | None:
        """Its run, if it has begun."""
        return self._run

    def begin(self) -> None:
        """Begin the run, once. What goes wrong is kept for who asks for the result."""
        with self._lock:
            start, self._start = self._start, None
            if start is not None:
                try:
                    self._run = start()
                except Exception as error:
                    self._error = kept(error)

    def batch(self, output: int, rows: Sequence[int]) -> Batch:
        """One output of these rows. Waits; raises the error of the first row that failed."""
        run = self.finished()
        run.check(rows)
        batch = run.outputs[output]
        if run.failures:
            position = {row: i for i, row in enumerate(run.good)}
            rows = [position[row] for row in rows]
        if list(rows) == list(range(len(batch))):
            return batch
        return Batch([batch.samples[row] for row in rows])

    def wait(self, timeout: float) -> bool:
        """Wait for the run's end, or that many seconds; whether it has ended."""
        self.begin()
        return self._run is None or self._run.passed[-1].wait(timeout)

    def finished(self) -> Run:
        """Wait for the run. Raises what ended it as a whole; ServerStopped if it was ended."""
        self.begin()
        try:
            if self._error is not None:
                raise fresh(self._error)
            assert self._run is not None
            self._run.outcome()
        except Closed:
            raise ServerStopped(STOPPED) from None
        except EndOfData:
            raise SourceError(
                "an external source with a callback has no more data for this batch of the proxy; "
                "let it go on for ever (cycle=True)"
            ) from None
        return self._run


class Lost(Entry):
    """In the place of what will not come: raises why. It is long-lived, its errors are not."""

    def __init__(self, kind: type[ProxyError], text: str) -> None:
        super().__init__(self._refuse)
        self._kind = kind
        self._text = text

    def _refuse(self) -> NoReturn:
        raise self._kind(self._text)

    def finished(self) -> Run:
        self._refuse()
