"""Calls of the proxy: how arguments are bound, what is taken as data, and when it is copied."""

from __future__ import annotations

import inspect
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import default_collate

from forebay import fn, pipeline_def
from forebay.errors import RequestRefused
from forebay.torch.proxy import SampleRef, Server
from naming import stable
from proxies import sum_and_difference, twice


@pytest.fixture
def two():
    with Server(sum_and_difference()) as server:
        yield server


def identity(**source):
    @pipeline_def(batch_size=4, num_threads=1)
    def pipe():
        return fn.external_source(name="x", **source)

    return pipe()


def through(value, **source):
    """What comes out for one value."""
    with Server(identity(**source)) as server:
        return server.produce_data(server.proxy(value))


# ── binding ──────────────────────────────────────────────────────────────────────────────────────


def test_one_output_gives_a_reference_and_several_give_a_tuple(two):
    with Server(twice()) as server:
        assert isinstance(server.proxy(np.zeros(1)), SampleRef)
    refs = two.proxy(np.zeros(1), np.zeros(1))
    assert isinstance(refs, tuple)
    assert [type(ref) for ref in refs] == [SampleRef, SampleRef]


@pytest.mark.parametrize(
    "call",
    [
        lambda proxy, a, b: proxy(a, b),
        lambda proxy, a, b: proxy(a, b=b),
        lambda proxy, a, b: proxy(a=a, b=b),
        lambda proxy, a, b: proxy(b=b, a=a),
    ],
)
def test_inputs_are_bound_by_position_and_by_name(two, call):
    added, subtracted = two.produce_data(call(two.proxy, np.array([5]), np.array([3])))
    assert added.tolist() == [8]
    assert subtracted.tolist() == [2]


@pytest.mark.parametrize(
    ("args", "kwargs", "reason"),
    [
        ((1,), {}, "missing a required argument: 'b'"),
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1, 2), {"c": 3}, "got an unexpected keyword argument 'c'"),
        ((1, 2), {"a": 3}, "multiple values for argument 'a'"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(two, args, kwargs, reason):
    with pytest.raises(ValueError, match=r"Expected signature is: proxy\(a, b\), error: " + reason):
        two.proxy(*args, **kwargs)


def test_the_signature_shows_the_inputs(two):
    assert list(inspect.signature(two.proxy).parameters) == ["a", "b"]


def test_the_proxy_is_one_object_and_can_be_pickled(two):
    assert two.proxy is two.proxy
    copy = pickle.loads(pickle.dumps(two.proxy))
    assert two.produce_data(copy(np.array([1]), np.array([2])))[0].tolist() == [3]


def test_an_unnamed_source_is_an_input_too():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.external_source() + 1

    with Server(pipe()) as server:
        assert server.produce_data(server.proxy(np.array([4]))).tolist() == [5]


def test_a_source_with_a_callback_is_no_input():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        a = fn.external_source(name="a")
        return a, fn.external_source(source=lambda: [np.array([9])], name="b")

    with Server(pipe()) as server:
        assert list(inspect.signature(server.proxy).parameters) == ["a"]
        outputs = server.produce_data(server.proxy(np.array([4])))
    assert [int(output) for output in outputs] == [4, 9]


# ── data ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
)
def test_arrays_of_every_type_keep_it(dtype):
    array = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    result = through(array)
    np.testing.assert_array_equal(result.numpy(), array, strict=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (7, np.array(7)),
        (2.5, np.array(2.5)),
        (np.bool_(1), np.ones((), bool)),
        (np.float32(1.5), np.array(1.5, np.float32)),
        ([1, 2, 3], np.array([1, 2, 3])),
        (((1.0, 2.0), (3.0, 4.0)), np.array([[1.0, 2.0], [3.0, 4.0]])),
        (b"\x01\xff", np.array([1, 255], np.uint8)),
        (bytearray(b"ab"), np.array([97, 98], np.uint8)),
        ("pä.jpg", np.frombuffer("pä.jpg".encode(), np.uint8)),
        (Path("a") / "b", np.frombuffer(os.fsencode(Path("a") / "b"), np.uint8)),
        (torch.arange(4, dtype=torch.int16), np.arange(4, dtype=np.int16)),
        (torch.ones(2, requires_grad=True), np.ones(2, np.float32)),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)),
        (np.array([1, 2], ">i4"), np.array([1, 2], np.int32)),
        (np.arange(12).reshape(3, 4)[:, ::2], np.array([[0, 2], [4, 6], [8, 10]])),
        (np.arange(6).reshape(2, 3).T, np.array([[0, 3], [1, 4], [2, 5]])),
        (np.arange(3)[::-1], np.array([2, 1, 0])),
        (Image.new("RGB", (3, 2), (1, 2, 3)), np.full((2, 3, 3), (1, 2, 3), np.uint8)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_python_data_is_taken(given, expected):
    np.testing.assert_array_equal(through(given).numpy(), expected, strict=True)


@pytest.mark.parametrize(
    "value",
    [
        None,
        object(),
        {"a": 1},
        np.array([1 + 2j]),
        np.array(["text"]),
        np.array([b"text"]),
        np.array([object()]),
        [[1, 2], [3]],
        torch.zeros(2, dtype=torch.bfloat16),
    ],
    ids=stable,
)
def test_what_cannot_be_data_is_refused_at_the_call_with_the_inputs_name(value):
    with Server(identity()) as server, pytest.raises(RequestRefused, match="input 'x'"):
        server.proxy(value)


def test_the_sources_dtype_ndim_and_layout_are_demanded():
    for source, reason in (
        ({"dtype": np.float32}, "FLOAT"),
        ({"ndim": 3}, "3 axes"),
        ({"layout": "HWC"}, "HWC"),
    ):
        with Server(identity(**source)) as server, pytest.raises(ValueError, match=reason):
            server.proxy(np.zeros((2, 2), np.uint8))


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_data_may_change_after_the_call(kind):
    with Server(identity()) as server:
        data = kind([1, 2, 3])
        ref = server.proxy(data)
        data[:] = 0
        assert server.produce_data(ref).tolist() == [1, 2, 3]


def test_no_copy_takes_the_array_itself():
    with Server(identity(no_copy=True)) as server:
        data = np.array([1, 2, 3])
        ref = server.proxy(data)
        data[:] = 4
        assert server.produce_data(ref).tolist() == [4, 4, 4]


def test_data_that_nobody_can_change_is_not_copied():
    @pipeline_def(batch_size=4, num_threads=1)
    def pipe():
        return fn.external_source(name="x")

    with Server(pipe()) as server:
        written = np.arange(4, dtype=np.uint8)
        locked = written[:]
        locked.flags.writeable = False  # though its owner may still write
        text = bytes(written)
        views = [np.frombuffer(text, np.uint8), np.frombuffer(text, np.uint8)[1:], text]
        kept = [server.proxy(view).call.inputs[0].array for view in views]
        assert all(np.shares_memory(array, np.frombuffer(text, np.uint8)) for array in kept)
        assert not np.shares_memory(server.proxy(locked).call.inputs[0].array, written)


# ── pictures of Pillow's ─────────────────────────────────────────────────────────────────────────

MODES = ["1", "L", "P", "I", "F", "I;16", "LA", "RGB", "RGBA", "CMYK", "YCbCr"]


def picture(mode):
    colours = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 14
    made = Image.fromarray(colours)
    return made.convert("I").convert(mode) if mode == "I;16" else made.convert(mode)


@pytest.mark.parametrize("mode", MODES)
def test_pictures_of_every_mode_have_channels(mode):
    given = picture(mode)
    expected = np.asarray(given)
    assert expected.shape[:2] == (2, 3)
    got = through(given)
    np.testing.assert_array_equal(got.numpy(), expected.reshape(2, 3, -1), strict=True)


@pytest.mark.parametrize("mode", ["L", "P", "RGB", "RGBA"])
def test_operators_on_images_take_pictures(mode):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.flip(fn.external_source(name="picture"))

    given = picture(mode)
    with Server(pipe()) as server:
        got = server.produce_data(default_collate([server.proxy(given), server.proxy(given)]))
    expected = np.asarray(given).reshape(2, 3, -1)[:, ::-1]
    assert np.array_equal(got.numpy(), np.stack([expected, expected]))


@pytest.mark.parametrize("form", [{"ndim": 2}, {"layout": "HW"}])
def test_pictures_have_two_axes_where_these_are_wanted(form):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.external_source(name="picture", **form)

    with Server(pipe()) as server:
        got = server.produce_data(server.proxy(picture("L")))
        assert np.array_equal(got.numpy(), np.asarray(picture("L")))
        with pytest.raises(ValueError, match=r"2 axes.* are wanted, but got the shape \(2, 3, 3\)"):
            server.proxy(picture("RGB"))


def test_a_grey_array_is_not_given_an_axis():
    assert through(np.asarray(picture("L"))).shape == (2, 3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (memoryview(b"abcdef")[::2], [97, 99, 101]),
        (torch.tensor([1 + 2j, 3 - 4j]).conj().imag, [-2.0, 4.0]),
        (2**63, 2**63),
        (np.ma.masked_array([1, 2], mask=False), [1, 2]),
    ],
)
def test_unusual_forms_of_plain_data_are_taken(value, expected):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.external_source(name="x")

    with Server(pipe()) as server:
        assert server.produce_data(server.proxy(value)).tolist() == expected


def test_masks_are_not_lost_without_a_word():
    with Server(twice()) as server, pytest.raises(RequestRefused, match=r"'x'.*mask"):
        server.proxy(np.ma.masked_array([1, 2], mask=[True, False]))
