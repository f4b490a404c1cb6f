from __future__ import annotations

import numpy as np
import pytest

import forebay
from forebay import Pipeline, fn, pipeline_def, types
from forebay.errors import ArgumentError, GraphError, PlacementError, UnknownArgumentError

NUMBERS = {"batch_size": 2, "num_threads": 1, "device_id": None}


def first(pipe):
    return [np.array(batch.at(0)).tolist() for batch in pipe.run()]


def settings(pipe):
    return pipe.max_batch_size, pipe.num_threads, pipe.seed, pipe.prefetch_queue_depth


def in_decorator(library):
    @library.pipeline_def(**NUMBERS, seed=4)
    def pipe():
        return library.types.Constant(1)

    return pipe()


def in_call(library):
    @library.pipeline_def
    def pipe():
        return library.types.Constant(1)

    return pipe(**NUMBERS, seed=4)


def call_over_decorator(library):
    @library.pipeline_def(**NUMBERS, seed=4, prefetch_queue_depth=3)
    def pipe():
        return library.types.Constant(1)

    return pipe(batch_size=5, seed=6)


def with_empty_brackets(library):
    @library.pipeline_def()
    def pipe():
        return library.types.Constant(1)

    return pipe(**NUMBERS, seed=9)


def of_the_function(library):
    @library.pipeline_def(**NUMBERS, seed=1)
    def pipe(a, b=2, *rest, c=3):
        return tuple(library.types.Constant(v) for v in (a, b, *rest, c))

    return pipe(1, 5, 6, 7, c=9)


def shared_by_keyword(library):
    @library.pipeline_def(**NUMBERS, seed=1)
    def pipe(batch_size, num_threads=7):
        return library.types.Constant(batch_size), library.types.Constant(num_threads)

    return pipe(batch_size=3)


def shared_by_position(library):
    @library.pipeline_def(**NUMBERS, seed=1)
    def pipe(batch_size):
        return library.types.Constant(batch_size)

    return pipe(3)


def own_device(library):
    @library.pipeline_def(**NUMBERS, seed=1)
    def pipe(device):
        return library.fn.copy(library.types.Constant(1), device=device)

    return pipe("cpu")


WAYS = [
    in_decorator,
    in_call,
    call_over_decorator,
    with_empty_brackets,
    of_the_function,
    shared_by_keyword,
    shared_by_position,
    own_device,
]


@pytest.mark.dali
@pytest.mark.filterwarnings("ignore")  # DALI warns of shared names
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_arguments_reach_pipeline_and_function_as_in_dali(way):
    from nvidia import dali

    theirs, ours = way(dali), way(forebay)
    assert settings(ours) == settings(theirs)
    assert first(ours) == first(theirs)


def test_a_shared_name_reaches_the_pipeline_if_the_decorator_says_nothing():
    @pipeline_def(num_threads=1)
    def pipe(batch_size):
        return types.Constant(batch_size)

    assert pipe(batch_size=3).max_batch_size == 3


def test_the_functions_name_and_docstring_stay():
    @pipeline_def
    def named():
        """Says what it is."""

    assert named.__name__ == "named"
    assert named.__doc__ == "Says what it is."


def test_every_call_makes_a_pipeline_of_its_own():
    calls = []

    @pipeline_def(**NUMBERS)
    def pipe():
        calls.append(Pipeline.current())
        return fn.external_source(lambda i: np.full((2, 1), i))

    one, two = pipe(), pipe()
    assert calls == [one, two]
    assert first(one) == first(two) == [[0]]


def test_the_documentation_pages_example_runs_as_printed():
    @pipeline_def
    def my_pipe():
        a = fn.external_source(name="a", no_copy=True)
        b = fn.external_source(name="b", no_copy=True)
        return a + b, a - b

    pipe = my_pipe(device="cpu", batch_size=4, num_threads=3, device_id=None)
    a, b = np.ones((4, 3, 3), np.float32), np.full((4, 3, 3), 2, np.float32)
    total, difference = pipe.run(a=a, b=b)
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(difference, a - b)


def test_device_is_that_of_operators_that_say_none():
    @pipeline_def(**NUMBERS)
    def pipe():
        return fn.flip(fn.external_source(name="x"))

    assert pipe(device="cpu").output_nodes[0].device == "cpu"
    with pytest.raises(PlacementError, match=r"fn.flip\(device='gpu'\).*test_pipeline_def.py"):
        pipe(device="gpu").build()
    with pytest.raises(ArgumentError, match="device is 'cpu', 'gpu' or 'mixed', but got 'xpu'"):
        pipe(device="xpu")


@pytest.mark.parametrize(
    ("given", "suggested"), [("batch_siz", "batch_size"), ("colour", "color"), ("zz", "")]
)
def test_an_argument_that_nobody_takes_is_refused_with_the_nearest_name(given, suggested):
    @pipeline_def(**NUMBERS)
    def pipe(color=1):
        return types.Constant(color)

    with pytest.raises(UnknownArgumentError, match=rf"'{given}'.*{suggested}"):
        pipe(**{given: 3})


def test_the_decorator_refuses_what_is_not_the_pipelines():
    with pytest.raises(UnknownArgumentError, match="did you mean 'num_threads'"):

        @pipeline_def(num_thread=3)
        def pipe():
            return types.Constant(1)


def test_what_is_not_in_this_version_is_refused_and_says_what_to_do():
    def one():
        return types.Constant(1)

    def any_names(**more):
        return types.Constant(len(more))

    for function in (one, any_names):
        with pytest.raises(ArgumentError, match=r"debug=True is not in this version.*; leave it"):
            pipeline_def(**NUMBERS, debug=True)(function)
        with pytest.raises(ArgumentError, match=r"debug=True is not in this version.*; leave it"):
            pipeline_def(**NUMBERS)(function)(debug=True)


def test_debug_may_be_off_and_may_be_an_argument_of_the_function():
    @pipeline_def(**NUMBERS, debug=False)
    def pipe():
        return types.Constant(1)

    @pipeline_def(**NUMBERS)
    def own(debug):
        return types.Constant(debug)

    assert first(pipe(debug=False)) == [1]
    assert first(own(debug=True)) == [True]


@pytest.mark.parametrize("conditionals", [False, True])
def test_a_function_that_returns_nothing_is_named(conditionals):
    @pipeline_def(**NUMBERS, enable_conditionals=conditionals)
    def forgetful():
        fn.copy(types.Constant(1))

    with pytest.raises(GraphError, match="forgetful returned None: return the nodes"):
        forgetful()


def test_a_graph_that_returns_nothing_is_named():
    class Forgetful(Pipeline):
        def define_graph(self):
            fn.copy(types.Constant(1))

    with pytest.raises(GraphError, match=r"Forgetful.define_graph returned None: return the nodes"):
        Forgetful(**NUMBERS).build()


def test_one_output_that_is_none_is_named_by_its_number():
    @pipeline_def(**NUMBERS)
    def pipe():
        return types.Constant(1), None

    with pytest.raises(GraphError, match=r"output 1 of the pipeline: a node, .* but got None"):
        pipe()


def test_a_function_with_keywords_of_any_name_gets_those_that_are_not_the_pipelines():
    @pipeline_def(**NUMBERS)
    def pipe(**more):
        return tuple(types.Constant(v) for v in more.values())

    made = pipe(seed=3, a=5, b=6)
    assert made.seed == 3
    assert first(made) == [5, 6]


@pytest.mark.parametrize("arguments", [(), (1, 2)])
def test_a_wrong_number_of_arguments_is_pythons_own_error(arguments):
    @pipeline_def(**NUMBERS)
    def pipe(a):
        return types.Constant(a)

    with pytest.raises(TypeError, match=r"pipe\(\)"):
        pipe(*arguments)


def test_an_error_in_the_function_passes_as_it_is_and_leaves_no_current_pipeline():
    @pipeline_def(**NUMBERS)
    def pipe():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        pipe()
    assert Pipeline.current() is None


def test_factories_may_be_called_inside_one_another():
    @pipeline_def(**NUMBERS)
    def inner():
        return fn.copy(types.Constant(1))

    @pipeline_def(**NUMBERS)
    def outer():
        made = inner()
        return fn.copy(types.Constant(first(made)[0] + 1))

    assert first(outer()) == [2]


@pytest.mark.parametrize("outputs", [[1, [2]], "text"])
def test_a_function_that_returns_no_output_is_refused_at_its_call(outputs):
    @pipeline_def(**NUMBERS)
    def pipe():
        return outputs

    with pytest.raises(GraphError, match="output 0"):
        pipe()
