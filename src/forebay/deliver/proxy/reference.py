"""References: what the proxy gives in the place of data that does not exist yet.

A `Call` is one call of the proxy: one row of inputs. Each of its outputs is a `SampleRef`.
Collating sample references makes a `BatchRef`: rows of one or more `Part`s, the units that go
through the pipeline. A part has a ticket, by which the server knows it wherever it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.utils.data._utils.collate import default_collate_fn_map

from forebay.batch import Sample
from forebay.deliver.proxy.merged import DifferError, merge
from forebay.deliver.proxy.recorded import BrokenRef, Listed, Recorded, Reference, leaves
from forebay.deliver.proxy.structure import find
from forebay.errors import ProxyError
from forebay.execute.kept import fresh

if TYPE_CHECKING:
    from forebay.deliver.proxy.client import Fetch


@dataclass(frozen=True)
class Ticket:
    """The name of a part, unique over the life of the server.

    Attributes:
        server: the server's own name.
        client: the connection through which it was sent.
        number: counts the connection's parts.
    """

    server: str
    client: str
    number: int


class Part:
    """Rows that went, or go, through the pipeline together. There is one object for each ticket.

    Attributes:
        ticket: its name.
        entry: in the server's process: what the server keeps of it.
        received: in the server's process: the rows of which a reference has come.
    """

    __slots__ = ("__weakref__", "entry", "received", "ticket")

    def __init__(self, ticket: Ticket, entry: Any = None) -> None:
        self.ticket = ticket
        self.entry = entry
        self.received: set[int] = set()


receivers: dict[str, Callable[[Ticket, Sequence[int]], Part]] = {}
"""Server name → what gives the part of a ticket for a reference to some of its rows, in the process
in which that server lives."""


def _receive_part(ticket: Ticket, rows: Sequence[int]) -> Part:
    receive = receivers.get(ticket.server)
    return Part(ticket) if receive is None else receive(ticket, rows)


def _receive_row(ticket: Ticket, row: int, output: int) -> RowRef:
    return RowRef(_receive_part(ticket, (row,)), row, output)


def _receive_batch(
    pieces: Sequence[tuple[Ticket, Sequence[int]]], output: int, length: int
) -> BatchRef:
    return BatchRef([(_receive_part(t, rows), rows) for t, rows in pieces], output, length)


class Call:
    """One call of the proxy.

    Attributes:
        inputs: a Sample for each input; None once they were sent.
        fetch: the batch in the making that it belongs to.
        row: its number in that batch.
        dataset_index: of the sample that it was made for; None if it is not known.
        part, position: where it went: its part, and the row in it.
    """

    __slots__ = ("__weakref__", "dataset_index", "fetch", "inputs", "part", "position", "row")

    def __init__(
        self, inputs: Sequence[Sample], fetch: Fetch, row: int, dataset_index: Any
    ) -> None:
        self.inputs: Sequence[Sample] | None = inputs
        self.fetch = fetch
        self.row = row
        self.dataset_index = dataset_index
        self.part: Part | None = None
        self.position = 0


class SampleRef(Reference):
    """One output of one call of the proxy."""

    __slots__ = ("call", "output")

    def __init__(self, call: Call, output: int) -> None:
        self.call = call
        self.output = output

    @property
    def server(self) -> str:
        return self.call.fetch.client.server

    @property
    def at_home(self) -> bool:
        return False  # its batch is still being made

    def sent(self) -> tuple[Part, int]:
        """Its part, and the row in it. What was not sent yet is sent."""
        if self.call.part is None:
            self.call.fetch.send_waiting()
        assert self.call.part is not None
        return self.call.part, self.call.position

    def __repr__(self) -> str:
        return f"SampleRef(output={self.output}, row={self.call.row})"

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            part, row = self.sent()
        except Exception as error:
            # torch pickles in a thread that drops what fails, and its reader would wait for ever.
            kept = error if isinstance(error, ProxyError) else ProxyError(repr(error))
            return BrokenRef, (self.server, kept)
        return _receive_row, (part.ticket, row, self.output)


def note_index(sample: Any, index: Any) -> None:
    """Say which sample of the dataset it is in whose making the proxy was called."""
    for ref in find(sample, Reference):
        for leaf in leaves(ref):
            if isinstance(leaf, SampleRef):
                leaf.call.dataset_index = index


class RowRef(Reference):
    """A sample reference that has left its process: one row of a part."""

    __slots__ = ("output", "part", "row")

    def __init__(self, part: Part, row: int, output: int) -> None:
        self.part = part
        self.row = row
        self.output = output

    @property
    def server(self) -> str:
        return self.part.ticket.server

    def sent(self) -> tuple[Part, int]:
        """Its part, and the row in it."""
        return self.part, self.row

    def __repr__(self) -> str:
        return f"SampleRef(output={self.output}, row={self.row})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _receive_row, (self.part.ticket, self.row, self.output)


class BatchRef(Reference):
    """One output of a batch: rows of parts.

    Attributes:
        pieces: parts, each with the rows that belong to the batch.
        output: which output.
        length: number of rows.
    """

    __slots__ = ("length", "output", "pieces")

    def __init__(
        self, pieces: Sequence[tuple[Part, Sequence[int]]], output: int, length: int
    ) -> None:
        self.pieces = tuple(pieces)
        self.output = output
        self.length = length

    @property
    def server(self) -> str:
        return self.pieces[0][0].ticket.server

    def places(self) -> list[tuple[Part, int]]:
        """For each row: its part, and the row in that."""
        return [(part, row) for part, rows in self.pieces for row in rows]

    def select_rows(self, rows: Sequence[int]) -> BatchRef:
        """The batch of these rows of it."""
        places = self.places()
        return BatchRef(_pieces([places[row] for row in rows]), self.output, len(rows))

    def __repr__(self) -> str:
        return f"BatchRef(output={self.output}, length={self.length})"

    def __reduce__(self) -> tuple[Any, ...]:
        pieces = [(part.ticket, rows) for part, rows in self.pieces]
        return _receive_batch, (pieces, self.output, self.length)


def collate(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Reference:
    """What torch's `default_collate` does with a list of references.

    References of several batches, in any order and with gaps, make one batch of these rows. What
    was recorded on them is done row by row.

    Raises:
        ProxyError: they are of several servers or outputs, or there is something else among them.
    """
    for row, item in enumerate(batch):
        if not isinstance(item, _OF_SAMPLES):
            raise ProxyError(
                f"a batch of references has nothing else in it, but this one mixes references and "
                f"tensors, or the like: in row {row} is a {type(item).__name__}. The Dataset gives "
                f"a reference for each sample, or for none; call the proxy for all of them, or "
                f"collate them apart"
            )
    found = leaves(list(batch))
    if len({ref.server for ref in found}) > 1:
        raise ProxyError("a batch is made by one server, but got references of several")
    calls = [ref.call for ref in found if isinstance(ref, SampleRef)]
    for fetch in dict.fromkeys(call.fetch for call in calls):
        fetch.send([call for call in calls if call.fetch is fetch])
    if any(isinstance(ref, Recorded) for ref in batch):
        try:
            merged: Reference = merge(batch, _collate_data)
        except DifferError:
            merged = Listed(tuple(batch))
        return merged
    return _collate_data(batch)


def _collate_data(batch: Sequence[Any]) -> BatchRef:
    """The batch reference of sample references that were sent."""
    outputs = {ref.output for ref in batch if not isinstance(ref, BrokenRef)}
    if len(outputs) > 1:
        raise ProxyError(f"a batch is made of one output of the pipeline, but got {outputs}")
    places: list[tuple[Part, int]] = []
    for ref in batch:
        if isinstance(ref, BrokenRef):
            raise fresh(ref.error)
        places.append(ref.sent())
    return BatchRef(_pieces(places), outputs.pop(), len(places))


def _pieces(places: Sequence[tuple[Part, int]]) -> list[tuple[Part, Sequence[int]]]:
    """Neighbours of the same part together."""
    pieces: list[tuple[Part, list[int]]] = []
    for part, row in places:
        if not pieces or pieces[-1][0] is not part:
            pieces.append((part, []))
        pieces[-1][1].append(row)
    return list(pieces)


_OF_SAMPLES = (SampleRef, RowRef, BrokenRef, Recorded)
for _kind in _OF_SAMPLES:
    default_collate_fn_map[_kind] = collate
