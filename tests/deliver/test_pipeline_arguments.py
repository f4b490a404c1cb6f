"""The arguments of `Pipeline`: each works, or is a documented hint, or is refused."""

from __future__ import annotations

import inspect
import re
import threading

import numpy as np
import pytest

import forebay
from forebay import Pipeline, fn, types
from forebay.errors import ArgumentError, ForebayError

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


@pytest.mark.dali
def test_the_constructor_has_dalis_arguments_in_its_order_and_with_its_defaults():
    import inspect

    from nvidia import dali

    def parameters(cls):
        found = inspect.signature(cls.__init__).parameters.values()
        return [(p.name, p.kind, p.default) for p in found]

    theirs = parameters(dali.Pipeline)
    ours = parameters(Pipeline)
    assert ours[: len(theirs)] == theirs
    assert [name for name, _, _ in ours[len(theirs) :]] in ([], ["output_layout"])


HINTS = {
    "enable_checkpointing": True,
    "exec_pipelined": False,
    "exec_async": False,
    "bytes_per_sample": 100,
    "set_affinity": True,
    "max_streams": 3,
    "default_cuda_stream_priority": 1,
    "enable_memory_stats": True,
    "py_num_workers": 4,
    "py_start_method": "spawn",
    "py_callback_pickler": None,
    "exec_dynamic": False,
    "experimental_exec_dynamic": True,
    "stream_policy": "single",
    "concurrency": "full",
    "prefetch_queue_depth": 5,
}


@pytest.mark.parametrize("hint", HINTS)
def test_a_hint_is_accepted_and_changes_no_result(hint):
    pipe = counting(**{hint: HINTS[hint]})
    assert [numbers(pipe.run()) for _ in range(3)] == [[0], [1], [2]]


def own_threads(**options):
    pipe = counting(**options)
    pipe.run()
    return sum(thread.name.startswith("forebay") for thread in threading.enumerate())


def ahead(**options):
    return counting(prefetch_queue_depth=7, **options).prefetch_queue_depth


def drawn(seed):
    return make(lambda: fn.random.uniform(range=[0, 1]), seed=seed).run()[0].as_array().tolist()


def resumes():
    """Whether a pipeline goes on with the random numbers that came next."""
    pipe = make(lambda: fn.random.uniform(range=[0, 1]))
    pipe.run()
    saved = pipe.checkpoint()
    drawn = [make(lambda: fn.random.uniform(range=[0, 1]), checkpoint=saved).run(), pipe.run()]
    return drawn[0][0].as_array().tolist() == drawn[1][0].as_array().tolist()


def passes(**options):
    """Whether a batch of int32 vectors without layout is what was demanded."""
    try:
        counting(**options).run()
    except ForebayError:
        return False
    return True


EFFECTS = {
    "batch_size": lambda: len(make(fn.zeros, batch_size=5).run()[0]) == 5,
    "num_threads": lambda: own_threads(num_threads=4) - own_threads(num_threads=1) == 3,
    "device_id": lambda: make(fn.zeros, device_id=-1).device_id is None,
    "seed": lambda: drawn(5) == drawn(5) != drawn(6),
    "prefetch_queue_depth": lambda: ahead() == 7,
    "exec_pipelined": lambda: ahead(exec_pipelined=False) == 1,
    "exec_async": lambda: ahead(exec_async=False) == 1,
    "checkpoint": resumes,
    "output_dtype": lambda: [passes(output_dtype=t) for t in (types.INT32, types.FLOAT)],
    "output_ndim": lambda: [passes(output_ndim=n) for n in (1, 3)],
    "output_layout": lambda: [passes(output_layout=layout) for layout in ("", "HW")],
}
"""Argument → whether it does what it says; for demands on outputs also with one that fails."""


def documented():
    """Argument → what the docstring of Pipeline says of it."""
    section = inspect.cleandoc(Pipeline.__doc__).split("Args:\n")[1].split("\n\n")[0]
    entries = re.findall(
        r"^    (\w[\w,\s]*?): (.*?)(?=^    \w|\Z)", section, re.MULTILINE | re.DOTALL
    )
    return {name: text for names, text in entries for name in re.split(r",\s*", names)}


def test_every_argument_of_the_constructor_works_or_is_a_documented_hint():
    arguments = set(inspect.signature(Pipeline).parameters)
    hints = set(HINTS) - set(EFFECTS)
    assert set(EFFECTS) | hints == arguments
    texts = documented()
    assert set(texts) == arguments
    for name, text in texts.items():
        assert ("accepted" in text) == (name in hints), name


@pytest.mark.parametrize("name", EFFECTS)
def test_an_argument_of_the_constructor_does_what_it_says(name):
    assert EFFECTS[name]() in (True, [True, False])


@pytest.mark.dali
def test_what_dali_lets_one_read_of_a_pipeline_can_be_read():
    from nvidia import dali

    names = ["exec_pipelined", "exec_async", "exec_separated", "set_affinity", "py_num_workers"]
    names += ["py_start_method", "enable_memory_stats", "cpu_queue_size", "gpu_queue_size"]
    names += ["max_batch_size", "num_threads", "device_id", "prefetch_queue_depth", "stream_policy"]
    names += ["concurrency", "is_restored_from_checkpoint"]
    for options in ({}, {"prefetch_queue_depth": {"cpu_size": 3, "gpu_size": 4}}):
        if options:
            names.remove("prefetch_queue_depth")  # a dict in DALI
        ours, theirs = Pipeline(**NUMBERS, **options), dali.Pipeline(**NUMBERS, **options)
        for name in names:
            if options and name == "exec_separated":
                continue
            assert getattr(ours, name) == getattr(theirs, name), name


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"batch_size": 0}, "batch_size is a positive number, but got 0"),
        ({"batch_size": "a"}, "batch_size is a positive number, but got 'a'"),
        ({"batch_size": 2.0}, "batch_size"),
        ({"batch_size": None}, "batch_size must be given"),
        ({"num_threads": 0}, "num_threads is a positive number"),
        ({"prefetch_queue_depth": 0}, "prefetch_queue_depth is a positive number"),
        ({"prefetch_queue_depth": {"a": 3}}, "cpu_size"),
        ({"prefetch_queue_depth": {"cpu_size": 0, "gpu_size": 1}}, "positive"),
        ({"seed": "a"}, "seed is an integer"),
        ({"device_id": "x"}, "device_id is the number of a GPU"),
        ({"output_dtype": "x"}, "type x"),
        ({"output_ndim": -1}, "output_ndim is a number of axes, but got -1"),
        ({"checkpoint": "file"}, "checkpoint takes what checkpoint() of a pipeline"),
    ],
    ids=str,
)
def test_constructor_arguments_that_cannot_be_are_refused(options, text):
    with pytest.raises(ArgumentError, match=re.escape(text)):
        Pipeline(**{**NUMBERS, **options})


def test_numbers_of_numpy_are_taken():
    assert Pipeline(np.int64(3), np.int32(2), seed=np.int64(4)).seed == 4


@pytest.mark.parametrize("device_id", [None, -1, types.CPU_ONLY_DEVICE_ID])
def test_no_device_has_several_spellings(device_id):
    assert Pipeline(batch_size=1, num_threads=1, device_id=device_id).device_id is None


def test_the_seed_that_repr_shows_repeats_the_run():
    def body():
        return fn.random.uniform(range=[0, 1])

    first = make(body)
    seed = int(re.search(r"seed=(\d+)", repr(first))[1])
    again = make(body, seed=seed)
    other = make(body)
    np.testing.assert_array_equal(first.run()[0], again.run()[0])
    assert other.seed != seed
    assert make(body, seed=-1).seed >= 0


@pytest.mark.dali
def test_demands_on_outputs_are_told_per_output_as_in_dali():
    from nvidia import dali

    def told(library):
        pipe = library.Pipeline(**NUMBERS, output_dtype=library.types.INT32, output_ndim=[1, 0])
        with pipe:
            pipe.set_outputs(library.fn.external_source(by_number), library.types.Constant(1))
        pipe.run()
        return [int(t) for t in pipe.output_dtype()], pipe.output_ndim(), pipe.num_outputs

    assert told(forebay) == told(dali) == ([6, 6], [1, 0], 2)


def test_too_many_demands_on_outputs_are_refused_at_build():
    with pytest.raises(ArgumentError, match="output_ndim has 3 values, but the pipeline has 1"):
        counting(output_ndim=[1, 2, 3]).build()


def test_a_demanded_layout_is_checked():
    with pytest.raises(RuntimeError, match=r"Layout in the output_idx=0.*'X'"):
        counting(output_layout="X").run()
