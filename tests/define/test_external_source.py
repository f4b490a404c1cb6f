from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import forebay
from forebay import Pipeline, fn, ops, types
from forebay.errors import ArgumentError, SourceError, UnknownArgumentError, UnknownInputError
from naming import stable


def full(value, size=2):
    return np.full((size, 1), value, np.int32)


def make(library, source=None, *, options=None, **arguments):
    pipe = library.Pipeline(
        **{"batch_size": 2, "num_threads": 1, "device_id": None, **(options or {})}
    )
    with pipe:
        nodes = library.fn.external_source(source=source, **arguments)
        pipe.set_outputs(*(nodes if isinstance(nodes, list) else (nodes,)))
    return pipe


def play(pipe, steps):
    """What so many runs give: the outputs' samples and layouts, or "end" and a reset."""
    found = []
    for _ in range(steps):
        try:
            found.append(
                [
                    ([(np.array(b.at(i)).dtype, np.array(b.at(i)).tolist()) for i in range(len(b))])
                    for b in pipe.run()
                ]
            )
        except StopIteration:
            found.append("end")
            pipe.reset()
    return found


def values(pipe, steps):
    """The numbers of the only output, a list for each run."""
    return [
        run if run == "end" else [number for _, sample in run[0] for number in sample]
        for run in play(pipe, steps)
    ]


def by_number(number):
    return full(number)


def generate():
    yield full(0)
    yield full(1)


class Rewinding:
    """An iterator that starts again when it is asked for one, as tutorials have it."""

    def __iter__(self):
        self.count = 0
        return self

    def __next__(self):
        if self.count == 2:
            raise StopIteration
        self.count += 1
        return full(self.count)


def until_two(info):
    if info.iteration == 2:
        raise StopIteration
    return full(info.iteration + 10 * info.epoch_idx)


def sample(info):
    if info.iteration == 2:
        raise StopIteration
    return np.array([info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx])


SOURCES = {
    "list": (lambda: [full(0), full(1)], {}),
    "list, cycle=True": (lambda: [full(0), full(1)], {"cycle": True}),
    "list, cycle=quiet": (lambda: [full(0), full(1)], {"cycle": "quiet"}),
    "list, cycle=raise": (lambda: [full(0), full(1)], {"cycle": "raise"}),
    "list, cycle=no": (lambda: [full(0), full(1)], {"cycle": "no"}),
    "array": (lambda: np.arange(12, dtype=np.int16).reshape(3, 2, 2), {}),
    "generator": (generate, {}),
    "generator function": (lambda: generate, {}),
    "generator function, cycle=True": (lambda: generate, {"cycle": True}),
    "generator function, cycle=raise": (lambda: generate, {"cycle": "raise"}),
    "iterator": (lambda: iter([full(0), full(1)]), {}),
    "rewinding iterator": (Rewinding, {}),
    "rewinding iterator, cycle=True": (Rewinding, {"cycle": True}),
    "rewinding iterator, cycle=raise": (Rewinding, {"cycle": "raise"}),
    "callable": (lambda: lambda: full(3), {}),
    "callable of the batch's number": (lambda: by_number, {}),
    "callable with a default": (lambda: lambda i=7: full(i), {}),
    "callable of a BatchInfo": (lambda: until_two, {"batch_info": True}),
    "callable of a SampleInfo": (lambda: sample, {"batch": False}),
    "callable of samples without argument": (lambda: lambda: np.ones(2), {"batch": False}),
    "samples of a list, cycle=True": (
        lambda: [np.array([i]) for i in range(5)],
        {"batch": False, "cycle": True},
    ),
    "two outputs": (lambda: lambda i: (full(i), full(-i)), {"num_outputs": 2}),
    "one output in a tuple": (lambda: lambda i: (full(i),), {"num_outputs": 1}),
    "outputs in an array": (lambda: lambda: np.ones((2, 2, 3)), {"num_outputs": 2}),
    "samples of two outputs": (
        lambda: lambda info: (np.array([info.idx_in_batch]), np.array(1.5)),
        {"batch": False, "num_outputs": 2},
    ),
    "batches of several sizes": (lambda: lambda i: full(i, 1 + i % 2), {}),
    "ragged": (lambda: lambda i: [np.ones(1 + i), np.ones(5)], {}),
    "tuple of arrays": (lambda: lambda: (np.zeros(1), np.ones(1)), {}),
    "bool": (lambda: lambda: np.array([[True], [False]]), {}),
    "float16": (lambda: lambda: np.ones((2, 1), np.float16), {}),
    "scalars": (lambda: lambda: [np.array(1), np.array(2)], {}),
    "empty list": (list, {}),
    "empty list, cycle=True": (list, {"cycle": True}),
    "batch=None": (lambda: lambda: full(1), {"batch": None}),
}


@pytest.mark.dali
@pytest.mark.parametrize("name", SOURCES)
def test_a_source_gives_what_it_gives_in_dali(name):
    from nvidia import dali

    source, arguments = SOURCES[name]
    expected = play(make(dali, source(), **arguments), 6)
    assert play(make(forebay, source(), **arguments), 6) == expected


@pytest.mark.dali
@pytest.mark.parametrize(
    "form",
    [
        {"layout": "X"},
        {"layout": ["X", "Y"], "ndim": [1, 1]},
        {"layout": ["X", ""]},
        {"layout": ["X"]},
        {"ndim": 1},
    ],
    ids=str,
)
def test_layouts_of_outputs_are_dalis(form):
    from nvidia import dali

    def layouts(library):
        pipe = make(library, lambda i: (full(i), full(-i)), num_outputs=2, **form)
        return [batch.layout() for batch in pipe.run()]

    assert layouts(forebay) == layouts(dali)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"dtype": types.UINT8}, "elements of type UINT8 are wanted, but got INT32"),
        ({"ndim": 2}, "2 axes are wanted, but got the shape"),
        ({"layout": "HW"}, "2 axes .layout 'HW'. are wanted"),
    ],
)
def test_data_of_another_form_is_refused(form, text):
    with pytest.raises(SourceError, match=f"test_external_source.py:.*{text}"):
        make(forebay, lambda: full(1), **form).run()


def test_forms_per_output_are_checked_each_for_its_output():
    source = [(full(1), full(1).astype(np.float32))]
    form = {"dtype": [types.INT32, types.FLOAT], "ndim": [1, 1]}
    assert make(forebay, source, num_outputs=2, **form).run()
    with pytest.raises(SourceError, match="UINT8 are wanted, but got FLOAT"):
        make(forebay, source, num_outputs=2, dtype=[types.INT32, types.UINT8]).run()


# ── epochs and sizes ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cycle", [None, "raise"])
def test_a_last_batch_that_is_not_full_is_delivered_although_dali_drops_it(cycle):
    pipe = make(forebay, [np.array([i]) for i in range(5)], batch=False, cycle=cycle)
    assert values(pipe, 4) == [[0, 1], [2, 3], [4], "end"]
    assert values(pipe, 2) == ([[0, 1], [2, 3]] if cycle else ["end", "end"])


def test_a_source_by_samples_that_stops_in_mid_batch_gives_what_it_has():
    def source(info):
        if info.idx_in_epoch == 3:
            raise StopIteration
        return np.array([info.idx_in_epoch + 100 * info.epoch_idx])

    pipe = make(forebay, source, batch=False)
    assert values(pipe, 6) == [[0, 1], [2], "end", [100, 101], [102], "end"]


def test_a_batch_that_is_too_large_is_refused_with_both_numbers_and_the_next_is_delivered():
    pipe = make(forebay, lambda i: full(i, 3 if i == 0 else 2))
    with pytest.raises(SourceError, match="gave 3 samples for a batch of 1 to 2"):
        pipe.run()
    assert pipe.run()[0].as_array().tolist() == [[1], [1]]


@pytest.mark.parametrize("empty", [[], np.zeros((0, 3))], ids=["list", "array"])
def test_an_empty_batch_is_refused(empty):
    with pytest.raises(SourceError, match="gave 0 samples"):
        make(forebay, lambda: empty).run()


# ── kinds of data ─────────────────────────────────────────────────────────────────────────────────

ODD = {
    "strided": np.arange(12).reshape(2, 6)[:, ::2],
    "reversed": np.arange(6, dtype=np.uint8)[::-1].reshape(2, 3),
    "column-major": np.asfortranarray(np.arange(12.0).reshape(2, 3, 2)),
    "big-endian": np.arange(6, dtype=">i4").reshape(2, 3),
    "big-endian floats": np.arange(6, dtype=">f8").reshape(2, 3),
    "read-only": np.frombuffer(b"abcdef", np.uint8).reshape(2, 3),
}


@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_arrays_of_any_memory_layout_and_byte_order_are_read_right(name, no_copy):
    array = ODD[name]
    got = make(forebay, lambda: array, no_copy=no_copy).run()[0].as_array()
    assert got.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize(
    "data",
    [
        torch.arange(6).reshape(2, 3),
        [torch.arange(3), torch.arange(3, 6)],
        torch.arange(12).reshape(2, 6)[:, ::2] // 2,
        [torch.arange(3.0, requires_grad=True), torch.arange(3.0, 6.0)],
    ],
    ids=["batch", "list", "strided", "with gradient"],
)
def test_torch_tensors_are_taken(data):
    assert make(forebay, lambda: data).run()[0].as_array().sum() == 15


def test_the_users_data_is_copied_unless_no_copy():
    array = full(5)
    pipe = make(forebay, lambda: array)
    (got,) = pipe.run()
    array[:] = 6
    assert got.as_array().tolist() == [[5], [5]]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([["a", "b"]], "numbers are wanted, but got list.*one text, as str or as bytes"),
        ([[1, [2, 3]]], "a list of numbers is wanted"),
        ("text", "a batch is a list of arrays or an array, but got str"),
        (None, "but got NoneType"),
        (3, "but got int"),
        ({"a": 1}, "but got dict"),
        ({1, 2}, "but got set"),
        (np.array(3), "batch as first axis"),
        (np.ones((2, 1), complex), r"numpy type complex128\)$"),
        (np.array([[None], [None]]), "numpy type object"),
        ([None, None], "but got NoneType"),
        ([np.zeros(1), np.zeros((1, 1))], "sample 0 is .*sample 1 is"),
        ([np.zeros(1), np.zeros(1, np.int32)], "one element type"),
    ],
    ids=repr,
)
def test_what_is_no_batch_is_refused_with_what_came(data, text):
    with pytest.raises(SourceError, match=text):
        make(forebay, lambda: data).run()


TEXTS = {
    "str": "pä.jpg",
    "bytes": "pä.jpg".encode(),
    "bytearray": bytearray("pä.jpg".encode()),
    "path": Path("pä.jpg"),
    "numpy's str": np.array(["pä.jpg"])[0],
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("way", ["batches", "samples", "fed", "run", "generator"])
def test_texts_and_paths_are_their_utf8_bytes(kind, way):
    text = TEXTS[kind]
    if way == "batches":
        pipe = make(forebay, lambda: [text, text])
    elif way == "samples":
        pipe = make(forebay, lambda: text, batch=False)
    elif way == "generator":
        pipe = make(forebay, ([text, text] for _ in range(1)))
    else:
        pipe = make(forebay, name="x")
        if way == "fed":
            pipe.feed_input("x", [text, text])
    (got,) = pipe.run(x=[text, text]) if way == "run" else pipe.run()
    assert [bytes(got.at(i)) for i in range(2)] == ["pä.jpg".encode()] * 2
    assert got.at(0).dtype == np.uint8


def test_the_files_of_paths_are_read(tmp_path):
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_text(path.name)
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.io.file.read(fn.external_source(source=[paths])))
    (got,) = pipe.run()
    assert [bytes(got.at(i)) for i in range(2)] == [b"a", b"b"]


@pytest.mark.parametrize("outputs", [full(1)[0], (full(1),), (full(1),) * 3, None, {0: 1, 1: 2}])
def test_a_source_that_gives_another_number_of_outputs_is_refused(outputs):
    with pytest.raises(SourceError, match="must give a tuple of 2 outputs, but gave a"):
        make(forebay, lambda: outputs, num_outputs=2).run()


def test_what_the_users_code_raises_is_chained_to_an_error_with_the_line():
    with pytest.raises(SourceError, match=r"test_external_source.py:.*ZeroDivision") as caught:
        make(forebay, lambda: 1 // 0).run()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"source": 3}, ArgumentError, "a callable or an iterable, but got int"),
        ({"source": generate(), "cycle": True}, ArgumentError, "generator cannot be started"),
        ({"source": lambda: 1, "cycle": True}, ArgumentError, "'cycle' is for iterables"),
        ({"cycle": True}, ArgumentError, "there is no source"),
        ({"source": [], "cycle": "often"}, ArgumentError, "but got 'often'"),
        ({"num_outputs": 2}, ArgumentError, "only valid when using ``source``"),
        ({"layout": "HW", "ndim": 3}, ArgumentError, "'HW' has not 3 axes"),
        ({"source": [], "layout": ["X", "Y"]}, ArgumentError, "1 outputs, but 2 values"),
        ({"source": [], "dtype": "int99"}, ArgumentError, "int99"),
        ({"source": [], "parallel": True}, ArgumentError, "not in this version"),
        ({"device": "tpu"}, RuntimeError, r"runs on cpu \(in DALI also gpu\), but device='tpu'"),
        ({"sorce": []}, UnknownArgumentError, "no argument 'sorce'; did you mean 'source'"),
        ({"cuda_straem": 1}, KeyError, "did you mean 'cuda_stream'"),
    ],
    ids=stable,
)
def test_arguments_that_cannot_be_are_refused_when_they_are_written(arguments, error, text):
    with pytest.raises(error, match=text):
        fn.external_source(**arguments)


def test_arguments_that_tune_dalis_memory_are_accepted():
    hints = {"cuda_stream": 1, "use_copy_kernel": True, "prefetch_queue_depth": 3}
    assert make(forebay, lambda: full(1), bytes_per_sample_hint=9, **hints).run()


def test_a_source_on_the_gpu_is_refused_at_build_by_its_own_name():
    pipe = make(forebay, lambda: full(1), device="gpu")
    with pytest.raises(forebay.errors.PlacementError, match=r"fn.external_source\(device='gpu'\)"):
        pipe.build()


def test_the_class_form_takes_the_same_arguments():
    with Pipeline(batch_size=2, num_threads=1, device_id=None) as pipe:
        one = ops.ExternalSource(source=full, layout="X")
        two = ops.ExternalSource(lambda i: (full(i), full(-i)), 2)
        pipe.set_outputs(one(), *two())
    outputs = pipe.run()
    assert [o.layout() for o in outputs] == ["X", "", ""]
    fed = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with fed:
        fed.set_outputs(ops.ExternalSource()(name="x"))
    assert fed.run(x=full(4))[0].as_array()[0, 0] == 4


def test_preserve_reads_a_source_that_no_output_needs():
    asked = []
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        fn.external_source(source=lambda i: (asked.append(i), full(i, 1))[1], preserve=True)
        pipe.set_outputs(types.Constant(1))
    pipe.run()
    assert asked


# ── fed by hand ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.dali
def test_batches_that_were_fed_come_in_their_order_as_in_dali():
    from nvidia import dali

    def fed(library):
        pipe = make(library, name="x", layout="X")
        pipe.build()
        for i in range(5):
            pipe.feed_input("x", full(i))
        return values(pipe, 5)

    assert fed(forebay) == fed(dali) == [[i, i] for i in range(5)]


def test_data_may_be_fed_by_name_by_node_or_by_run():
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        x, y = fn.external_source(name="x"), fn.external_source()
        pipe.set_outputs(x - y)
    pipe.feed_input("x", full(5))
    pipe.feed_input(y, [np.int32([1]), np.int32([2])])
    assert pipe.run()[0].as_array().tolist() == [[4], [3]]
    pipe.feed_input(y, full(1))
    assert pipe.run(x=full(9))[0].as_array().tolist() == [[8], [8]]


def test_an_input_that_was_not_fed_is_named_and_nothing_of_the_others_is_lost():
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.external_source(name="x"), fn.external_source(name="y"))
    pipe.feed_input("x", full(1))
    with pytest.raises(SourceError, match=r"'y'.*test_external_source.py:\d+.*was not fed"):
        pipe.run()
    assert [o.as_array()[0, 0] for o in pipe.run(y=full(2))] == [1, 2]


def test_feeding_goes_with_sources_that_read():
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.external_source(name="x"), fn.external_source(full))
    runs = [pipe.run(x=full(10 + i)) for i in range(3)]
    assert [[int(o[0]) for o in run] for run in runs] == [[10, 0], [11, 1], [12, 2]]


def test_repeat_last_gives_the_last_batch_until_another_is_fed():
    pipe = make(forebay, name="x", repeat_last=True)
    pipe.feed_input("x", full(1))
    assert values(pipe, 3) == [[1, 1]] * 3
    pipe.feed_input("x", full(2))
    assert values(pipe, 2) == [[2, 2]] * 2


def test_a_blocking_input_waits_for_another_thread():
    pipe = make(forebay, name="x", blocking=True)
    pipe.build()
    began = threading.Event()

    def feed():
        began.wait()
        for i in range(3):
            pipe.feed_input("x", full(i))

    feeder = threading.Thread(target=feed)
    feeder.start()
    began.set()
    assert values(pipe, 3) == [[0, 0], [1, 1], [2, 2]]
    feeder.join()


def test_what_was_fed_is_still_there_after_a_reset_as_in_dali():
    pipe = make(forebay, name="x")
    pipe.feed_input("x", full(1))
    pipe.reset()
    assert values(pipe, 1) == [[1, 1]]


def test_a_layout_that_is_fed_is_the_datas_if_the_definition_has_none():
    pipe = make(forebay, name="x")
    pipe.feed_input("x", full(1), layout="C")
    assert pipe.run()[0].layout() == "C"
    with pytest.raises(SourceError, match="'HWC' is no layout of 1 axes"):
        pipe.feed_input("x", full(1), layout="HWC")
    with pytest.raises(SourceError, match="fed the layout 'C', but is defined with 'X'"):
        make(forebay, name="x", layout="X").feed_input("x", full(1), layout="C")


@pytest.mark.parametrize(
    ("name", "data", "error", "text"),
    [
        ("y", full(1), UnknownInputError, 'input operator with name "y"'),
        ("xx", full(1), KeyError, "did you mean 'x'"),
        ("x", full(1, 3), SourceError, "was fed 3 samples for a batch of 1 to 2"),
        ("x", [], SourceError, "was fed 0 samples"),
        ("x", full(1).astype(np.uint8), SourceError, "INT32 are wanted, but got UINT8"),
        ("read", full(1), SourceError, "Cannot use feed_input on the external source 'read'"),
    ],
)
def test_wrong_feeding_is_refused_when_it_happens(name, data, error, text):
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        x = fn.external_source(name="x", dtype=types.INT32)
        pipe.set_outputs(x, fn.external_source(lambda: full(1), name="read"))
    with pytest.raises(error, match=text):
        pipe.feed_input(name, data)


def test_inputs_of_different_sizes_are_refused_with_both():
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.external_source(name="x"), fn.external_source(name="y"))
    with pytest.raises(SourceError, match="Expected: 2; Actual: 1"):
        pipe.run(x=full(1), y=full(1, 1))
