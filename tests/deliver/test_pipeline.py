from __future__ import annotations

import gc
import re
import threading
import weakref

import numpy as np
import pytest
import torch

import forebay
from forebay import Pipeline, errors, fn, ops, pipeline_def, types
from forebay.errors import ArgumentError, GraphError, PlacementError

NUMBERS = {"batch_size": 2, "num_threads": 1, "device_id": None}


def full(value, size=2):
    return np.full((size, 1), value, np.int32)


def by_number(number):
    return full(number)


def make(body, **options):
    pipe = Pipeline(**{**NUMBERS, **options})
    with pipe:
        outputs = body()
        pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    return pipe


def counting(**options):
    return make(lambda: fn.external_source(by_number), **options)


def numbers(outputs):
    return [int(batch[0]) for batch in outputs]


# ── running ───────────────────────────────────────────────────────────────────────────────────────


def test_build_is_optional_and_may_be_repeated():
    pipe = counting()
    pipe.build()
    pipe.build()
    assert numbers(pipe.run()) == [0]


@pytest.mark.dali
def test_scheduled_runs_are_dalis():
    from nvidia import dali

    def seen(library):
        pipe = library.Pipeline(**NUMBERS)
        with pipe:
            pipe.set_outputs(library.fn.external_source(by_number))
        pipe.build()
        pipe.schedule_run()
        pipe.schedule_run()
        found = [np.array(pipe.share_outputs()[0].at(0)).tolist()]
        pipe.release_outputs()
        found.append(np.array(pipe.outputs()[0].at(0)).tolist())
        pipe.schedule_run()
        found.append(np.array(pipe.outputs()[0].at(0)).tolist())
        return found

    assert seen(forebay) == seen(dali) == [[0], [1], [2]]


@pytest.mark.parametrize("first", ["run", "schedule_run"])
def test_ways_of_running_cannot_be_mixed(first):
    pipe = counting()
    getattr(pipe, first)()
    with pytest.raises(GraphError, match="Mixing pipeline API type"):
        pipe.schedule_run() if first == "run" else pipe.run()


def test_sharing_outputs_without_a_scheduled_run_says_what_to_do():
    with pytest.raises(RuntimeError, match="call schedule_run first"):
        counting().share_outputs()


def test_empty_says_whether_anything_is_to_be_taken():
    pipe = make(lambda: fn.external_source([full(0)]))
    assert pipe.empty()
    pipe.schedule_run()
    assert not pipe.empty()
    pipe.share_outputs()
    assert pipe.empty()
    pipe.schedule_run()
    with pytest.raises(StopIteration):
        pipe.share_outputs()
    assert pipe.empty()


def test_reset_begins_the_next_epoch_also_in_the_middle_of_one():
    pipe = make(lambda: fn.external_source([full(i) for i in range(5)], cycle="raise"))
    assert numbers(pipe.run()) == [0]
    pipe.reset()
    assert [numbers(pipe.run())[0] for _ in range(5)] == [0, 1, 2, 3, 4]
    for _ in range(2):
        with pytest.raises(StopIteration):
            pipe.run()
    pipe.reset()
    assert numbers(pipe.run()) == [0]


def test_several_pipelines_run_side_by_side():
    pipes = [make(lambda i=i: fn.external_source(by_number) + 100 * i) for i in range(3)]
    for step in range(4):
        assert [numbers(pipe.run())[0] for pipe in pipes] == [step, 100 + step, 200 + step]


def test_a_pipeline_is_dropped_with_its_threads_when_nobody_holds_it():
    pipe = make(lambda: fn.copy(fn.external_source(by_number), preserve=True))
    pipe.run()
    gone = weakref.ref(pipe)
    gc.disable()
    try:
        del pipe
        assert gone() is None
    finally:
        gc.enable()


def test_there_are_no_readers_to_tell_of():
    pipe = counting()
    assert pipe.epoch_size() == pipe.reader_meta() == {}
    for ask in (pipe.epoch_size, pipe.reader_meta):
        with pytest.raises(ArgumentError, match="no reader named 'x'"):
            ask("x")


def test_what_is_not_in_this_version_says_so():
    with pytest.raises(AttributeError, match="serialize is not in this version"):
        counting().serialize()
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        counting().nonsense  # noqa: B018 - looking it up is the test


# ── definition ────────────────────────────────────────────────────────────────────────────────────


class Classic(Pipeline):
    """A pipeline in the style of the first tutorials."""

    def __init__(self):
        super().__init__(batch_size=2, num_threads=1, device_id=None, seed=3)
        self.source = ops.ExternalSource(source=lambda: np.full((2, 4, 4, 3), 100, np.uint8))
        self.coin = ops.CoinFlip(probability=0.5)
        self.resize = ops.Resize(resize_x=3, resize_y=2)
        self.normalize = ops.CropMirrorNormalize(mean=[1.0, 2.0, 3.0], dtype=types.FLOAT)

    def define_graph(self):
        images = self.resize(self.source())
        return self.normalize(images, mirror=self.coin()), images * 0.5


def written(node):
    return (
        node.operator.name,
        node.constants if node.operator.name not in ("external_source", "literal") else None,
        node.outputs,
        [(i.index, written(i.node)) for i in node.inputs],
        {name: (v.index, written(v.node)) for name, v in node.varying.items()},
    )


def test_classes_write_the_graph_that_functions_write():
    def body():
        images = fn.external_source(lambda: np.full((2, 4, 4, 3), 100, np.uint8))
        mirror = fn.random.coin_flip(probability=0.5)
        images = fn.resize(images, resize_x=3, resize_y=2)
        out = fn.crop_mirror_normalize(
            images, mirror=mirror, mean=[1.0, 2.0, 3.0], dtype=types.FLOAT
        )
        return out, images * 0.5

    old, new = Classic(), make(body, seed=3)
    old.build()
    assert [written(o.node) for o in old.output_nodes] == [
        written(o.node) for o in new.output_nodes
    ]
    for a, b in zip(old.run(), new.run(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.dali
@pytest.mark.parametrize("kind", [list, tuple])
def test_iter_setup_feeds_and_ends_the_epoch_as_in_dali(kind):
    from nvidia import dali

    def played(library):
        class Fed(library.Pipeline):
            def __init__(self):
                super().__init__(**NUMBERS)
                self.input = library.ops.ExternalSource()
                self.items = iter(range(3))

            def define_graph(self):
                self.x = self.input()
                return kind([self.x + 0, self.x + 10])

            def iter_setup(self):
                try:
                    self.feed_input(self.x, full(next(self.items)))
                except StopIteration:
                    self.items = iter(range(3))
                    raise

        pipe = Fed()
        pipe.build()
        found = []
        for _ in range(9):
            try:
                found.append([np.array(o.at(0)).tolist() for o in pipe.run()])
            except StopIteration:
                found.append("end")
                pipe.reset()
        return found

    assert played(forebay) == played(dali)
    assert played(forebay)[:4] == [[[0], [10]], [[1], [11]], [[2], [12]], "end"]


def test_a_pipeline_without_outputs_is_refused():
    with pytest.raises(GraphError, match="no outputs"):
        Pipeline(**NUMBERS).build()
    with pytest.raises(GraphError, match="no outputs"):
        make(lambda: ()).build()


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (lambda: [fn.zeros(shape=[1])], "output 0 of the pipeline is a list of nodes"),
        (lambda: (1, [fn.zeros(shape=[1])]), "output 1 of the pipeline is a list of nodes"),
        (lambda: None, "output 0 of the pipeline.*NoneType"),
        (lambda: {"a": fn.zeros(shape=[1])}, "dict"),
        (lambda: "text", "str"),
        (lambda: [[1, 2], [3, 4]], "nested lists"),
    ],
)
def test_outputs_that_are_no_nodes_are_refused(output, text):
    with pytest.raises(GraphError, match=text):
        make(output)


def test_numbers_lists_and_arrays_may_be_outputs():
    outputs = make(lambda: (1, 2.5, True, [1, 2], np.ones((2, 1)), torch.ones(2))).run()
    assert [o.at(1).tolist() for o in outputs] == [1, 2.5, True, [1, 2], [[1], [1]], [1, 1]]
    assert [o.dtype.name for o in outputs[:4]] == ["INT32", "FLOAT", "BOOL", "INT32"]


def test_one_node_may_be_several_outputs():
    def body():
        x = fn.external_source(by_number)
        return x, x, x + 0

    assert numbers(make(body).run()) == [0, 0, 0]


def test_two_nodes_of_one_name_are_refused_with_both_lines():
    def body():
        a = fn.external_source(by_number, name="same")
        return a, fn.copy(a, name="same")

    pattern = r"two nodes are named 'same': at .*test_pipeline.py:\d+ and .*test_pipeline.py:\d+"
    with pytest.raises(GraphError, match=pattern):
        make(body).build()


def test_nodes_of_another_pipeline_are_refused_with_their_line():
    with Pipeline(**NUMBERS):
        foreign = fn.external_source(by_number)
    pipe = make(lambda: fn.copy(foreign))
    with pytest.raises(GraphError, match=r"test_pipeline.py:\d+ belongs to another pipeline"):
        pipe.build()


def test_nodes_may_be_written_before_there_is_a_pipeline():
    x = fn.external_source(by_number)
    pipe = Pipeline(**NUMBERS)
    pipe.set_outputs(x + 1)
    assert numbers(pipe.run()) == [1]


def test_the_innermost_pipeline_is_the_current_one_and_leaves_with_an_error():
    outer, inner = Pipeline(**NUMBERS), Pipeline(**NUMBERS)
    with outer:
        with pytest.raises(GraphError), inner:
            Pipeline.current().set_outputs(None)
        assert Pipeline.current() is outer
        Pipeline.push_current(inner)
        assert Pipeline.current() is inner
        Pipeline.pop_current()
    assert Pipeline.current() is None


def test_definitions_in_several_threads_do_not_meet():
    barrier = threading.Barrier(3)
    found = []

    def define(i):
        pipe = Pipeline(**NUMBERS)
        with pipe:
            barrier.wait()
            found.append(Pipeline.current() is pipe)
            pipe.set_outputs(fn.zeros(shape=[i]))
            barrier.wait()

    threads = [threading.Thread(target=define, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 3


def test_the_plan_is_a_table_of_what_runs_where_and_who_wrote_it():
    def body():
        x = fn.external_source(name="images")
        return fn.python_function(fn.copy(x), function=lambda a: a), fn.random.coin_flip()

    lines = str(make(body).plan).splitlines()
    assert lines[0].split() == ["stage", "operator", "device", "how", "defined", "at"]
    rows = "\n".join(lines[1:])
    assert re.search(r"^0 +external_source 'images' +cpu +fed by hand +.*test_pipeline.py:", rows)
    for name, how in (("copy", "per sample"), ("random.coin_flip", "per sample")):
        assert re.search(rf"^0 +{name} +cpu +{how} +.*test_pipeline.py:\d+$", rows, re.MULTILINE)
    assert re.search(r"^1 +python_function +cpu +in order", rows, re.MULTILINE)


# ── what runs ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.dali
@pytest.mark.parametrize("keep", ["nothing", "preserve", "function", "function without output"])
def test_nodes_that_no_output_needs_run_only_if_they_are_kept_as_in_dali(keep):
    from nvidia import dali

    def runs(library):
        seen = []
        pipe = library.Pipeline(**NUMBERS, exec_pipelined=False, exec_async=False)
        with pipe:
            x = library.fn.external_source(lambda: (seen.append("source"), full(1))[1])
            if keep == "preserve":
                library.fn.copy(x, preserve=True)
            elif keep == "function":
                library.fn.python_function(x, function=lambda a: (seen.append("function"), a)[1])
            elif keep == "function without output":
                library.fn.python_function(
                    x, function=lambda _: seen.append("function"), num_outputs=0
                )
            pipe.set_outputs(library.types.Constant(1))
        pipe.build()
        pipe.run()
        return sorted(seen)

    assert runs(forebay) == runs(dali)


def test_a_function_without_outputs_sees_every_sample_in_order():
    seen = []
    pipe = make(
        lambda: (
            x := fn.external_source(lambda i: np.arange(2 * i, 2 * i + 2)),
            fn.python_function(x, function=lambda a: seen.append(int(a)), num_outputs=0),
        )[:1]
    )
    for _ in range(3):
        pipe.run()
    assert seen[:6] == [0, 1, 2, 3, 4, 5]


def test_add_sink_keeps_a_node():
    asked = []
    pipe = Pipeline(**NUMBERS)
    with pipe:
        pipe.add_sink(fn.external_source(lambda i: (asked.append(i), full(i))[1]))
        pipe.set_outputs(types.Constant(1))
    pipe.run()
    assert asked


# ── devices ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (lambda x: fn.flip(x, device="gpu"), r"fn.flip\(device='gpu'\)"),
        (lambda x: fn.decoders.image(x, device="mixed"), r"fn.decoders.image\(device='mixed'\)"),
        (ops.Flip(device="gpu"), r"fn.flip\(device='gpu'\)"),
        (lambda x: fn.flip(x.gpu()), "a node's .gpu.*remove .gpu"),
    ],
)
def test_a_node_that_needs_the_gpu_is_refused_at_build_with_its_line_and_the_change(write, text):
    pipe = make(lambda: write(fn.external_source(name="x")))
    with pytest.raises(PlacementError, match=rf"{text}") as caught:
        pipe.build()
    assert re.search(r"test_pipeline.py:\d+", str(caught.value))
    assert "on the CPU" in str(caught.value)


def test_a_device_that_an_operator_does_not_have_is_refused_when_it_is_written():
    with pytest.raises(
        PlacementError, match=r"fn.flip runs on cpu \(in DALI also gpu\), but device='mixed'"
    ):
        fn.flip(fn.external_source(name="x"), device="mixed")


# ── batches ───────────────────────────────────────────────────────────────────────────────────────


def test_a_uniform_batch_is_one_tensor_and_acts_as_dalis_tensor_lists():
    (batch,) = make(
        lambda: fn.external_source(lambda: np.arange(6.0).reshape(2, 3), layout="X")
    ).run()
    assert len(batch) == 2
    assert batch.layout() == "X"
    assert batch.shape() == [(3,), (3,)]
    assert batch.ndim() == 1
    assert batch.dtype is types.FLOAT64
    assert batch.is_dense_tensor()
    assert batch.at(1).tolist() == batch[1].tolist() == batch.at(-1).tolist() == [3, 4, 5]
    assert [s.tolist() for s in batch] == batch.as_array().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert batch.as_tensor().shape == (2, 3)
    assert batch.as_cpu() is batch
    assert "FLOAT64" in repr(batch)
    assert np.array(batch, np.float32).dtype == np.float32
    with pytest.raises(IndexError):
        batch.at(2)


def test_numpys_copy_of_a_batch_is_one():
    (batch,) = make(lambda: fn.external_source(by_number)).run()
    copy = np.array(batch)
    copy[:] = 9
    assert batch.as_array().tolist() == [[0], [0]]


def test_a_ragged_batch_gives_its_samples_and_refuses_to_be_one_tensor():
    (batch,) = make(lambda: fn.external_source(lambda: [np.zeros((1, 2)), np.ones((3, 2))])).run()
    assert not batch.is_dense_tensor()
    assert batch.shape() == [(1, 2), (3, 2)]
    assert batch.at(1).sum() == 6
    for ask in (batch.as_tensor, batch.as_array, lambda: np.array(batch)):
        with pytest.raises(errors.ForebayError, match=r"ragged.*\(1, 2\), \(3, 2\)"):
            ask()


def test_a_factory_and_a_class_make_pipelines():
    @pipeline_def(**NUMBERS)
    def factory():
        return fn.zeros(shape=[1])

    assert isinstance(factory(), Pipeline)
