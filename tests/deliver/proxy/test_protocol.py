"""Messages come out as they went in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from forebay.batch import Sample
from forebay.deliver.proxy import protocol
from forebay.errors import RequestRefused

DTYPES = [
    np.dtype(t) for t in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
]


@st.composite
def columns(draw):
    """Rows of one dtype and number of axes for each input, of any shapes."""
    rows = draw(st.integers(1, 5))
    result = []
    for _ in range(draw(st.integers(1, 3))):
        dtype = draw(st.sampled_from(DTYPES))
        ndim = draw(st.integers(0, 4))
        shapes = st.lists(st.integers(0, 4), min_size=ndim, max_size=ndim).map(tuple)
        layout = draw(st.sampled_from(["", "ABCD"[:ndim]]))
        result.append([Sample(draw(npst.arrays(dtype, draw(shapes))), layout) for _ in range(rows)])
    return result


@settings(max_examples=80, deadline=None)
@given(columns())
def test_ragged_arrays_of_every_type_come_out_as_they_went_in(given):
    described = [protocol.describe("x", column) for column in given]
    buffer = np.zeros(sum(column.size for column in described), np.uint8)
    protocol.write(given, buffer)
    batches = protocol.read(described, buffer)
    assert len(batches) == len(given)
    for batch, column in zip(batches, given, strict=True):
        assert len(batch) == len(column)
        assert batch.shape() == [sample.array.shape for sample in column]
        for got, expected in zip(batch.samples, column, strict=True):
            assert got.array.dtype == expected.array.dtype
            assert got.layout == expected.layout
            np.testing.assert_array_equal(got.array, expected.array, strict=True)


def test_a_message_survives_its_encoding():
    message = protocol.Submit(
        number=3,
        epoch="ab",
        batch=4,
        rows=[0, 2],
        indices=[None, 2],
        columns=[protocol.Column("<f4", "HWC", 2, [1, 2, 3, 4, 5, 6], 512)],
        data=b"x",
        dropped=(7,),
    )
    assert protocol.decode(protocol.encode(message)) == message


def test_the_first_message_survives_its_encoding():
    hello = protocol.Hello(b"\x00\xff", "worker", 42, loader=True)
    data = protocol.encode_hello(hello)
    assert len(data) < protocol.HELLO_LIMIT
    assert protocol.decode_hello(data) == hello


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"{}", b"[1]", b"[1,2,3,4]", b'["zz","a",1,true]', b"null"]
)
def test_a_first_message_of_another_kind_is_refused(data):
    with pytest.raises(RequestRefused, match="not a connection of forebay's proxy"):
        protocol.decode_hello(data)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.zeros(3, np.float32), np.zeros(3, np.int64)),
        (np.zeros((2, 2), np.uint8), np.zeros(4, np.uint8)),
    ],
)
def test_rows_that_do_not_go_together_are_refused_with_both_descriptions(first, second):
    with pytest.raises(RequestRefused) as caught:
        protocol.describe("images", [Sample(first), Sample(second)])
    text = str(caught.value)
    assert "'images'" in text
    assert f"sample 0 is {first.dtype} of shape {first.shape}" in text
    assert f"sample 1 is {second.dtype} of shape {second.shape}" in text
