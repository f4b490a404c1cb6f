"""Pipelines that run in step, one epoch after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forebay.batch import Batch
from forebay.deliver.last_batch import Epochs
from forebay.deliver.pipeline import Pipeline
from forebay.deliver.pipeline_def import check_pipeline
from forebay.errors import ArgumentError, ForebayError, OperatorError

Outputs = list[tuple[Batch, ...]]


def check_pipelines(pipelines: Sequence[Pipeline]) -> None:
    """Raise ArgumentError for what is no pipeline, or for none."""
    for pipeline in pipelines:
        check_pipeline(pipeline)
    if not pipelines:
        raise ArgumentError("Number of provided pipelines has to be at least 1")


def align(pipeline: Pipeline, reader: str) -> None:
    """Have every epoch of a reader, and of those with the same data, begin a batch."""
    meta = pipeline.reader_meta(reader)
    for stage in pipeline.plan.stages:
        for slots in stage.sources:
            if slots.source is not None and slots.source.meta() == meta:
                slots.source.align()


def _restored(pipelines: Sequence[Pipeline]) -> Mapping[str, int] | None:
    """The place in the checkpoints that the pipelines were given, or None. Raises ArgumentError."""
    given = [pipeline.restored for pipeline in pipelines]
    if not any(given):
        return None
    places = [None if checkpoint is None else checkpoint.iterator for checkpoint in given]
    if places[0] is None or any(place != places[0] for place in places):
        raise ArgumentError(
            "the pipelines of an iterator go on with the checkpoints that checkpoints() of an "
            "iterator gave together, and not with those of pipelines by themselves"
        )
    for pipeline, checkpoint in zip(pipelines, given, strict=True):
        assert checkpoint is not None
        pipeline.restore(checkpoint)
    return places[0]


class Lockstep:
    """Pipelines that run in step, and the place in their epochs.

    Args:
        pipelines: what runs.
        epochs: where epochs end; None if only the sources know.
        seekable: the pipelines have readers, so that any batch can be gone to.

    Attributes:
        epoch, step: of the batch that comes next, numbers from 0.
        source_epoch, source_step: the same, as sources that are not readers count: only their own
            end, or leaving an epoch early, begins another one.
    """

    def __init__(
        self, pipelines: Sequence[Pipeline], epochs: Epochs | None, *, seekable: bool
    ) -> None:
        self.pipelines = pipelines
        self.epochs = epochs
        self.epoch = self.step = 0
        self.source_epoch = self.source_step = 0
        self._seekable = seekable
        self._ended = False
        taken = max(pipeline.taken for pipeline in pipelines)
        place = _restored(pipelines)
        if place is not None:
            self.go_to(**place)
        elif taken and seekable:  # the user has run them before: what was begun is left
            assert epochs is not None
            self.go_to(next(e for e in range(taken + 1) if epochs.begin(e) >= taken))
        elif taken:
            self.go_to(0, 0, max(pipeline.epoch for pipeline in pipelines) + 1)

    @property
    def over(self) -> bool:
        """Whether nothing is left of the epoch, as far as is known."""
        return self._ended or (self.epochs is not None and self.step >= self.length)

    @property
    def length(self) -> int:
        """How many batches the epoch has. Only where it is known."""
        assert self.epochs is not None
        return self.epochs.length(self.epoch)

    def take(self) -> Outputs:
        """The next batch of every pipeline, with all its rows.

        Raises:
            StopIteration: the epoch is over; `advance` begins the next one.
        """
        if self.over:
            raise StopIteration
        try:
            return self._run()
        except StopIteration:
            if self.step == 0 and self.source_step:
                # The epoch before ended by its size, and the sources with it, as is seen only now.
                self._reset()
                return self.take()
            self._ended = True
            raise

    def rows(self, batch: Batch, pipeline: int = 0) -> int:
        """How many rows of a batch that was just taken belong to the epoch."""
        if self.epochs is None:
            return len(batch)
        return self.epochs.rows(self.epoch, self.step - 1, pipeline)

    def advance(self) -> None:
        """Begin the next epoch, after the last batch of this one."""
        if self._ended:
            self._reset()
        elif self.epochs is not None:
            begin, end = self.epochs.begin(self.epoch), self.epochs.begin(self.epoch + 1)
            self._pass_over(end - begin - self.step)
        self.epoch += 1
        self.step = 0

    def leave(self) -> None:
        """Begin the next epoch in the middle of this one."""
        self.go_to(self.epoch + 1, 0, self.source_epoch + 1)

    def place(self, *, ahead: bool) -> dict[str, int]:
        """The arguments of `go_to` for this place; `ahead`: for one batch before."""
        return {
            "epoch": self.epoch,
            "step": self.step - ahead,
            "source_epoch": self.source_epoch,
            "source_step": self.source_step - ahead,
        }

    def go_to(self, epoch: int, step: int = 0, source_epoch: int = 0, source_step: int = 0) -> None:
        """Go on at another place; what was prepared is dropped."""
        self._ended = False
        if self._seekable:
            assert self.epochs is not None
            place = self.epochs.begin(epoch) + step
            for pipeline in self.pipelines:
                pipeline.seek(place, 0, place)
            self.source_epoch, self.source_step = source_epoch, source_step
        else:
            for pipeline in self.pipelines:
                pipeline.seek(pipeline.taken, source_epoch, 0)
            self.source_epoch, self.source_step = source_epoch, 0
            self._pass_over(source_step)
        self.epoch, self.step = epoch, step

    def _run(self) -> Outputs:
        """Run each pipeline once, even if one fails: they must stay in step."""
        before = self.pipelines[0].taken
        outputs, failed = [], None
        for pipeline in self.pipelines:
            try:
                outputs.append(pipeline.run())
            except ForebayError as error:
                failed = failed or error
        passed = self.pipelines[0].taken - before  # none if an input was not fed
        self.step += passed
        self.source_step += passed
        if failed is None:
            return outputs
        try:
            raise failed
        finally:
            del failed  # the traceback keeps this frame

    def _pass_over(self, batches: int) -> None:
        for _ in range(batches):
            try:
                self._run()
            except OperatorError:
                continue
            except StopIteration:
                self._reset()
                return

    def _reset(self) -> None:
        for pipeline in self.pipelines:
            pipeline.reset()
        self._ended = False
        self.source_epoch, self.source_step = self.pipelines[0].epoch, 0
