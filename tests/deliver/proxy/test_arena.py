"""What a worker copies into shared memory is what the server reads there."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.batch import Sample
from forebay.deliver.proxy import protocol
from forebay.deliver.proxy.arena import Arena
from forebay.deliver.proxy.transport import HAS_SEGMENTS

pytestmark = pytest.mark.skipif(not HAS_SEGMENTS, reason="the system has no shared segments")


def send(arena, *columns):
    """What the server has of a part then, until the result is gone."""
    rows = [[Sample(array) for array in column] for column in columns]
    placed = arena.place(rows, [protocol.describe("x", column) for column in rows])
    if placed.descriptor is not None:
        os.close(placed.descriptor)
    placed.segment.mark()
    return protocol.read(placed.columns, placed.segment.lend())


def values(batches):
    return [[sample.array.tolist() for sample in batch.samples] for batch in batches]


def images(*numbers, size=1000):
    return [np.full(size + number, number, np.uint8) for number in numbers]


def test_a_copy_lies_where_the_server_reads_it_once_there_is_a_free_segment():
    arena = Arena()
    assert values(send(arena, [arena.copy(a) for a in images(1, 2)])) == [
        [image.tolist() for image in images(1, 2)]
    ]
    first, second = (arena.copy(a) for a in images(3, 4, size=900))
    (batch,) = send(arena, [second, first])
    assert [s.array.tolist() for s in batch.samples] == [a.tolist() for a in images(4, 3, size=900)]
    second[0] = 9  # not copied again: the same memory
    assert batch.samples[0].array[0] == 9


def test_what_has_no_room_is_copied_when_it_is_sent():
    arena = Arena()
    send(arena, images(1))
    several = [arena.copy(a) for a in images(1, 2, 3)]
    assert values(send(arena, several)) == [[a.tolist() for a in images(1, 2, 3)]]


def test_a_segment_that_holds_rows_for_a_later_part_is_not_filled_again():
    arena = Arena()
    send(arena, images(1, 2, 3))
    first, second = (arena.copy(a) for a in images(1, 2))
    send(arena, [first])  # the server has done with it at once
    others = [arena.copy(a) for a in images(5, 6)]
    assert second.tolist() == images(2)[0].tolist()
    assert values(send(arena, [second, *others])) == [[a.tolist() for a in images(2, 5, 6)]]


@st.composite
def parts(draw):
    """For each part: its columns of row numbers, which rows are copied, in what order, and kept."""
    rows = draw(st.integers(1, 4))
    columns = draw(st.integers(1, 2))
    order = draw(st.permutations(range(rows)))
    return {
        "sizes": [[draw(st.integers(0, 90)) for _ in range(columns)] for _ in range(rows)],
        "copied": [[draw(st.booleans()) for _ in range(columns)] for _ in range(rows)],
        "sent": order[: draw(st.integers(1, rows))],
        "late": draw(st.booleans()),
        "held": draw(st.integers(0, 2)),
    }


@settings(max_examples=150, deadline=None)
@given(st.lists(parts(), min_size=1, max_size=12), st.sampled_from(["u1", "i2", "f8"]))
def test_whatever_is_copied_dropped_reordered_or_held_is_read_as_it_was(sequence, dtype):
    arena = Arena()
    numbers = itertools.count()
    late, held = [], []
    for part in sequence:
        rows = []  # of each the number and, for each column, what is to be sent and what it is
        for sizes, copied in zip(part["sizes"], part["copied"], strict=True):
            row, wanted = [], []
            for size, copy in zip(sizes, copied, strict=True):
                array = np.full((size, 2), next(numbers) % 100, dtype)
                wanted.append(array.copy())
                row.append(arena.copy(array) if copy else array.copy())
                array[:] = 111  # its owner uses it again
            rows.append((row, wanted))
        sent = [rows[number] for number in part["sent"]]
        if part["late"]:
            late.append(sent)
            continue
        for one in (sent, *late):
            batches = send(arena, *zip(*[row for row, _ in one], strict=True))
            held.append((batches, list(zip(*[wanted for _, wanted in one], strict=True))))
        late = []
        del rows, sent, one, held[: len(held) - part["held"]]
        for batches, columns in held:
            for batch, arrays in zip(batches, columns, strict=True):
                for sample, array in zip(batch.samples, arrays, strict=True):
                    np.testing.assert_array_equal(sample.array, array, strict=True)
