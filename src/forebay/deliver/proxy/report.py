"""Where the time of an epoch went, and which stage sets its pace.

The stages work at the same time: the Dataset makes the inputs of a batch, the transfer brings them,
the pipeline runs them, the consumer, which is the loop, uses them. So the slowest one limits. What
a batch costs a stage is the time that the stage worked on it, or that the loop waited for the stage
if that is more: work of a worker is divided by the number of workers, and a pipeline may be busy
with another loader's batches.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forebay.deliver.proxy.entry import Entry

STAGES = ("dataset", "pipeline", "transfer", "consumer")

_KEPT = 8
"""So many epochs of loops that are not our loader's are told apart at a time."""


@dataclass(frozen=True)
class Report:
    """Where the time of an epoch went. `print` shows it as a table.

    Attributes:
        batches: how many were handed out.
        seconds: from the epoch's begin until the last of them.
        startup: of these, those until the first batch.
        waiting: the share of the time after the first batch in which the loop waited.
        dataset: seconds a batch of the Dataset's code, divided by the workers that run it.
        pipeline: seconds a batch in which the pipeline was busy.
        transfer: seconds a batch in which inputs, references or results were on their way; what is
            collated after the references is among it.
        consumer: seconds a batch of the loop's own code, with what was recorded on references.
        workers: processes that sent data; 0 if the Dataset runs in the loop's.
        persistent: whether the loader keeps its workers; None if that is not known, which it is of
            forebay's own.
    """

    batches: int = 0
    seconds: float = 0.0
    startup: float = 0.0
    waiting: float = 0.0
    dataset: float = 0.0
    pipeline: float = 0.0
    transfer: float = 0.0
    consumer: float = 0.0
    workers: int = 0
    persistent: bool | None = None

    @property
    def limit(self) -> str | None:
        """The stage that takes longest for a batch; None before the second batch."""
        if self.batches < 2:
            return None
        return max(STAGES, key=lambda stage: getattr(self, stage))

    @property
    def advice(self) -> str:
        """What to change, in words."""
        limit = self.limit
        if limit is None:
            return "Nothing can be told before the second batch of an epoch."
        if limit == "dataset" and self.workers == 0:
            text = "The Dataset's code runs in the loop: give the loader num_workers."
        else:
            text = _ADVICE[limit]
        if self.workers and not self.persistent and self.startup > self.seconds / 2:
            known = "" if self.persistent is False else ", if the loader does not have it yet,"
            text += (
                f" More than half of the time passed before the first batch: with"
                f" persistent_workers=True{known} later epochs begin at once."
            )
        return text

    def __str__(self) -> str:
        if self.batches == 0:
            return "No batch was handed out yet."
        head = (
            f"{self.batches} batches in {self.seconds:.2f} s, the first after {self.startup:.2f} "
            f"s; since then the loop waited {self.waiting:.0%} of the time"
        )
        lines = [head]
        for stage in STAGES:
            mark = "  <- limits" if stage == self.limit else ""
            lines.append(f"  {stage:<10}{getattr(self, stage) * 1000:9.2f} ms a batch{mark}")
        return "\n".join([*lines, self.advice])


_ADVICE = {
    "dataset": "Raise num_workers of the loader, or move work from the Dataset into the pipeline.",
    "pipeline": "Raise num_threads of the pipeline as long as cores are free, or do less in it. "
    "Python functions in it run one batch at a time, whatever the number of threads.",
    "transfer": "Move less: give the proxy paths or encoded files rather than decoded arrays, and "
    "return little else from the Dataset.",
    "consumer": "Data is not what the loop waits for, so loading it faster would change little. "
    "What takes the time is the loop's own code, with what was recorded on references.",
}


@dataclass(frozen=True)
class Trip:
    """When a part was where, by `perf_counter`, which all processes of a machine share.

    Attributes:
        client: its connection; "" if it was made in this process.
        epoch, batch: see `Submit`.
        begun, sent: when the Dataset began it, and had done it.
        ready: when the server began to wait for it.
        arrived: when it could be run.
    """

    client: str
    epoch: int | str
    batch: int
    begun: float
    sent: float
    ready: float
    arrived: float


class Meter:
    """Sums up one epoch as one loop sees it: an interval from each batch to the next.

    Args:
        persistent: whether the loader keeps its workers, if it is known.
    """

    def __init__(self, persistent: bool | None = None) -> None:
        self._persistent = persistent
        self._begun = perf_counter()
        self._lock = threading.Lock()
        self._batches = 0
        self._batch: int | None = None
        self._intervals = 0
        self._work = dict.fromkeys(STAGES, 0.0)
        self._loop = dict.fromkeys(STAGES, 0.0)  # the intervals, by what the loop did or waited for
        self._clients: set[str] = set()
        self._asked: float | None = None
        self._first = self._last = self._begun
        self._whole = False  # whether the interval from the last batch is known

    def ask(self) -> None:
        """The loop asks for its next batch. What is booked without, was asked for unseen."""
        if self._asked is not None:
            self._whole = False  # the time since the last batch has an error in it
        self._asked = perf_counter()

    def book(self, entries: Iterable[Entry], got: float, done: float, recorded: float) -> None:
        """A batch was handed out.

        Args:
            entries: what it was made of. An entry counts once.
            got: when its references were there.
            done: when its data was.
            recorded: seconds in what was recorded on references.
        """
        with self._lock:
            asked, self._asked = self._asked, None
            slowest, ended = None, got
            for entry in entries:
                trip, run, entry.trip = entry.trip, entry.run, None
                if trip is None or run is None:
                    continue
                self._clients.add(trip.client)
                self._work["dataset"] += trip.sent - trip.begun
                self._work["transfer"] += trip.arrived - max(trip.sent, trip.ready)
                self._work["pipeline"] += run.busy
                if slowest is None or run.ended > ended:
                    slowest, ended = trip, run.ended
            if asked is None and slowest is None:
                return  # the loop asked once more for data that it has had
            if self._whole:
                self._intervals += 1
                self._divide(slowest, asked, got, ended, done, recorded)
            if not self._batches:
                self._begun, self._first = min(self._begun, got), done
            if asked is not None or slowest is None or slowest.batch != self._batch:
                self._batches += 1
            self._batch = None if slowest is None else slowest.batch
            self._last = done
            self._whole = True

    def _divide(
        self,
        trip: Trip | None,
        asked: float | None,
        got: float,
        ended: float,
        done: float,
        recorded: float,
    ) -> None:
        """Give each piece of an interval to the stage that the loop waited for in it."""
        at, sent, ready, arrived = asked, got, got, got
        if trip is not None:
            sent, ready, arrived = trip.sent, trip.ready, trip.arrived
        on_the_way = [("transfer", got)]
        if at is None:
            # Another loader gave the references. It was waited for if they came only after the
            # last batch; in this process it was from the first call of the proxy on.
            assert trip is not None
            at = self._last if trip.client else max(self._last, trip.begun)
            on_the_way = [("pipeline", ready), ("transfer", arrived), ("consumer", got)]
        self._loop["consumer"] += at - self._last + recorded
        for stage, until in (
            ("dataset", sent),
            *on_the_way,
            ("pipeline", ready),  # it took in no more
            ("transfer", arrived),
            ("pipeline", ended),
            ("transfer", done - recorded),
        ):
            if until > at:
                self._loop[stage] += until - at
                at = until

    def report(self) -> Report:
        with self._lock:
            if not self._batches:
                return Report()
            senders = max(1, len(self._clients))
            looped = sum(self._loop.values())

            def cost(stage: str, workers: int) -> float:
                worked = self._work[stage] / workers / self._batches
                return max(worked, self._loop[stage] / max(1, self._intervals))

            return Report(
                batches=self._batches,
                seconds=self._last - self._begun,
                startup=self._first - self._begun,
                waiting=1 - self._loop["consumer"] / looped if looped else 0.0,
                dataset=cost("dataset", senders),
                pipeline=cost("pipeline", 1),
                transfer=cost("transfer", senders),
                consumer=cost("consumer", 1),
                workers=len(self._clients - {""}),
                persistent=self._persistent,
            )


class Meters:
    """The meters of a server.

    Our loader has one for each of its epochs. For other loops there is one for each epoch that
    their workers name, and the one after a report begins with the next batch.
    """

    def __init__(self) -> None:
        self._latest = Meter()
        self._others: dict[int | str, Meter] = {}

    def begin(self, *, persistent: bool) -> Meter:
        """The meter of a new epoch of a loader that keeps its workers, or not."""
        self._latest = Meter(persistent)
        return self._latest

    def book(self, entries: Iterable[Entry], got: float, done: float, recorded: float) -> None:
        """A batch was handed out to a loop without a meter."""
        entries = [entry for entry in entries if entry.trip is not None]
        if entries:
            assert entries[0].trip is not None
            self._of(entries[0].trip.epoch).book(entries, got, done, recorded)

    def _of(self, epoch: int | str) -> Meter:
        meter = self._others.get(epoch)
        if meter is None:
            meter = self._latest = self._others.setdefault(epoch, Meter())
            for old in list(self._others)[:-_KEPT]:
                self._others.pop(old, None)
        return meter

    def report(self) -> Report:
        """The report of the epoch that was begun last."""
        latest = self._latest
        for epoch, meter in list(self._others.items()):
            if meter is latest:
                self._others.pop(epoch, None)
        return latest.report()
