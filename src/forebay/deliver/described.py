"""What can be asked of a pipeline: its arguments, and its plan."""

from __future__ import annotations

from typing import Any

from forebay.batch import Batch
from forebay.compile.plan import Plan
from forebay.define.node import Node
from forebay.define.options import Configured, check_output_forms
from forebay.errors import ArgumentError, ForebayError
from forebay.operators._argument import suggestion


class Described(Configured):
    """What a pipeline tells of itself."""

    @property
    def plan(self) -> Plan:
        raise NotImplementedError

    @property
    def num_outputs(self) -> int:
        raise NotImplementedError

    def _output_forms(self) -> list[tuple[Any, ...]]:
        return check_output_forms(self.num_outputs, *self._options.forms)

    def output_dtype(self) -> list[Any]:
        """What was demanded of the outputs' element types: one each, None for nothing."""
        return [dtype for dtype, _, _ in self._output_forms()]

    def output_ndim(self) -> list[Any]:
        return [ndim for _, ndim, _ in self._output_forms()]

    def output_layout(self) -> list[Any]:
        return [layout for _, _, layout in self._output_forms()]

    def _check_outputs(self, outputs: tuple[Batch, ...]) -> None:
        for index, (batch, form) in enumerate(zip(outputs, self._output_forms(), strict=True)):
            dtype, ndim, layout = form
            for what, wanted, got in (
                ("Data type", dtype, batch.dtype),
                ("Number of dimensions", ndim, batch.ndim()),
                ("Layout", layout, batch.layout()),
            ):
                if wanted is not None and wanted != got:
                    raise ForebayError(
                        f"{what} in the output_idx={index} does not match. "
                        f"Expected: {wanted!r}. Received: {got!r}."
                    )

    def inputs(self) -> dict[str, Node]:
        """The sources that are fed by hand, by name, in the order of their definition."""
        return {slots.node.label: slots.node for slots in self.plan.fed}

    def reader_meta(self, name: str | None = None) -> Any:
        """What is known of a reader's data (see `ReaderMeta`), or of all readers' by name."""
        sources = [slots for stage in self.plan.stages for slots in stage.sources]
        found = {s.node.label: s.source.meta() for s in sources if s.source is not None}
        readers = {label: meta for label, meta in found.items() if meta is not None}
        if name is not None and name not in readers:
            raise ArgumentError(f"there is no reader named '{name}'{suggestion(name, readers)}")
        return readers if name is None else readers[name]

    def epoch_size(self, name: str | None = None) -> Any:
        """The number of samples in an epoch of a reader, or of all readers by name."""
        if name is None:
            return {label: self.epoch_size(label) for label in self.reader_meta()}
        meta = self.reader_meta(name)
        return meta["epoch_size_padded" if meta["pad_last_batch"] else "epoch_size"]
