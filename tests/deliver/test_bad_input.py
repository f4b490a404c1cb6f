"""What the entry points do with what they cannot take: the error is ours, and says what came."""

from __future__ import annotations

import numpy as np
import pytest

from forebay import Pipeline, fn, pipeline_def, types
from forebay.errors import ForebayError
from forebay.testing import run_operator, run_pipeline
from forebay.torch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    Iterator,
)
from forebay.torch.proxy import DataLoader, Server

X = [np.ones(2, np.uint8)] * 2
IMAGES = [np.ones((2, 2, 3), np.uint8)] * 2


def pipeline(**options):
    pipe = Pipeline(**{"batch_size": 2, "num_threads": 1, "device_id": None, **options})
    with pipe:
        pipe.set_outputs(fn.external_source(name="image"), fn.external_source(name="mask"))
    return pipe


def proxy(*args, **kwargs):
    return Server(pipeline()).proxy(*args, **kwargs)


CONSTRUCTOR = [
    ({"batch_size": "4"}, "batch_size is a positive number, but got '4'"),
    ({"batch_size": None}, "batch_size must be given"),
    ({"num_threads": 0}, "num_threads is a positive number, but got 0"),
    ({"device_id": "gpu"}, "device_id is the number of a GPU, or None for none, but got 'gpu'"),
    ({"seed": 1.5}, "seed is an integer, or None for a fresh one, but got 1.5"),
    ({"prefetch_queue_depth": {"cpu_size": 1}}, r"but got \{'cpu_size': 1\}"),
    ({"output_dtype": "x"}, "elements of type x"),
    ({"output_dtype": 99}, "99 is not the number of an element type"),
    ({"output_ndim": -1}, "output_ndim is a number of axes, but got -1"),
    ({"output_layout": 5}, "output_layout has a letter for each axis, but got 5"),
    ({"output_layout": ["A", 5]}, "output_layout has a letter for each axis, but got 5"),
]
CALLS = {
    "run, unknown input": (lambda: pipeline().run(images=X), "\"images\"; did you mean 'image'"),
    "run, number": (lambda: pipeline().run(image=5), "input 'image': .* but got int"),
    "run, text": (lambda: pipeline().run(image="ab"), "input 'image': .* but got str"),
    "run, None": (lambda: pipeline().run(image=None), "input 'image': .* but got NoneType"),
    "run, objects": (lambda: pipeline().run(image=[object()]), "'image': numbers .* got object"),
    "run, too many": (lambda: pipeline().run(image=X * 2), "fed 4 samples for a batch of 1 to 2"),
    "run, none": (lambda: pipeline().run(image=[]), "fed 0 samples"),
    "run, not all": (lambda: pipeline().run(image=X), "'mask' .*test_bad_input.py.* was not fed"),
    "run, sizes": (lambda: pipeline().run(image=X, mask=X[:1]), "Expected: 2; Actual: 1"),
    "feed_input, number": (lambda: pipeline().feed_input(5, X), r"name or the node .* 5 \(int\)"),
    "feed_input, name": (
        lambda: pipeline().feed_input("imag", X),
        "\"imag\"; did you mean 'image'",
    ),
    "feed_input, layout": (
        lambda: pipeline().feed_input("mask", X, "HW"),
        "no layout of 1 axes",
    ),
    "feed_input, no layout": (lambda: pipeline().feed_input("mask", X, 5), "5 is no layout"),
    "share_outputs": (lambda: pipeline().share_outputs(), "call schedule_run first"),
    "reader_meta": (lambda: pipeline().reader_meta("r"), "no reader named 'r'"),
    "pipeline_def": (lambda: pipeline_def(batch=4)(print), "'batch'.*did you mean 'batch_size'"),
    "pipeline_def, device": (
        lambda: pipeline_def(lambda: types.Constant(1))(batch_size=1, device="tpu"),
        "device is 'cpu', 'gpu' or 'mixed', but got 'tpu'",
    ),
    "pipeline_def, output": (
        lambda: pipeline_def(lambda: None)(batch_size=1),
        "lambda> returned None",
    ),
    "Server": (lambda: Server("x"), r"Expected a forebay pipeline, got: 'x' \(str\)"),
    "Server, pipeline_def": (
        lambda: Server(pipeline),
        r"called first: pipeline\(batch_size=\.\.\.",
    ),
    "Server, class": (lambda: Server(Pipeline), r"called first: Pipeline\(batch_size=\.\.\."),
    "Server, ragged": (lambda: Server(pipeline(), ragged="x"), "ragged is .* but got 'x'"),
    "Server, on_error": (lambda: Server(pipeline(), on_error="x"), "on_error is .* but got 'x'"),
    "Server, max_errors": (
        lambda: Server(pipeline(), on_error="skip", max_errors="3"),
        "max_errors is a number from 0, .* but got '3'",
    ),
    "Server, part of an error": (
        lambda: Server(pipeline(), on_error="skip", max_errors=1.5),
        "max_errors is a number from 0, .* but got 1.5",
    ),
    "proxy, too few": (lambda: proxy(X[0]), r"proxy\(image, mask\).* 'mask'"),
    "proxy, too many": (lambda: proxy(*X, X[0]), r"proxy\(image, mask\).* too many"),
    "proxy, unknown": (lambda: proxy(X[0], msk=X[0]), "'msk'"),
    "proxy, None": (lambda: proxy(None, X[0]), "input 'image' of the proxy: .* NoneType"),
    "proxy, texts": (
        lambda: proxy(["a"], X[0]),
        "input 'image' of the proxy: .* as str or as bytes",
    ),
    "DataLoader": (lambda: DataLoader(X, X), "is the server, but got list"),
    "DataLoader, no server": (lambda: DataLoader(X, batch_size=2), "is the server, but got list"),
    "DataLoader, no dataset": (
        lambda: DataLoader(Server(pipeline())),
        "has a server, but no dataset",
    ),
    "Iterator": (lambda: Iterator(5), r"Expected a forebay pipeline, got: 5 \(int\)"),
    "Iterator, pipeline_def": (lambda: Iterator(pipeline), r"called first: pipeline\("),
    "DALIGenericIterator, pipeline_def": (
        lambda: DALIGenericIterator([pipeline], ["a"]),
        r"called first: pipeline\(",
    ),
    "run_pipeline, pipeline_def": (lambda: run_pipeline(pipeline), r"called first: pipeline\("),
    "Iterator, size": (lambda: Iterator(pipeline(), size="x"), "size is .* but got 'x'"),
    "Iterator, last_batch": (lambda: Iterator(pipeline(), last_batch="x"), "but got 'x'"),
    "Iterator, reader": (lambda: Iterator(pipeline(), reader_name="r"), "no reader named 'r'"),
    "Iterator, ragged": (lambda: Iterator(pipeline(), ragged="x"), "not 'x'"),
}
DALIS = {
    "no pipeline": ((5, ["a", "b"]), {}, r"got: 5 \(int\)"),
    "no pipelines": (([], ["a"]), {}, "at least 1"),
    "a list of none": (([5], ["a"]), {}, r"got: 5 \(int\)"),
    "no names": ((pipeline, 5), {}, "output_map is a list of names, but got 5"),
    "too few names": ((pipeline, ["a"]), {}, r"2 outputs and the names \['a'\]"),
    "equal names": ((pipeline, ["a", "a"]), {}, "distinct"),
    "size": ((pipeline, ["a", "b"]), {"size": "x"}, "size is .* but got 'x'"),
    "policy": ((pipeline, ["a", "b"]), {"last_batch_policy": "drop"}, "not 'drop'"),
    "auto_reset": ((pipeline, ["a", "b"]), {"auto_reset": "maybe"}, "but got 'maybe'"),
    "reader": ((pipeline, ["a", "b"]), {"reader_name": "r"}, "no reader named 'r'"),
}
OPERATOR = {
    "name": (lambda: run_operator("flipp", IMAGES), "no operator 'flipp'; did you mean 'flip'"),
    "no name": (lambda: run_operator(5, IMAGES), "no operator '5'"),
    "argument": (lambda: run_operator("flip", IMAGES, horizontl=1), "flip: .*'horizontl'; did you"),
    "type": (lambda: run_operator("flip", IMAGES, horizontal="a"), "flip: .*'horizontal' .* 'a'"),
    "missing": (lambda: run_operator("cast", X), "cast: .*'dtype'"),
    "no input": (lambda: run_operator("flip"), "flip: takes 1 inputs, but got 0"),
    "inputs": (lambda: run_operator("flip", IMAGES, IMAGES), "flip: takes 1 inputs, but got 2"),
    "fewer": (lambda: run_operator("cat", X, X[:1]), r"cat: all inputs .* but got \[2, 1\]"),
    "more": (lambda: run_operator("cat", X[:1], X), r"cat: all inputs .* but got \[1, 2\]"),
    "values": (
        lambda: run_operator("flip", IMAGES, per_sample={"horizontal": [1]}),
        r"flip: all inputs .* but got \[2, 1\]",
    ),
    "batch_size": (lambda: run_operator("copy", X, batch_size=3), r"but got \[2, 3\]"),
    "no batch_size": (lambda: run_operator("constant", idata=[1]), "give the batch_size"),
    "no samples": (lambda: run_operator("flip", []), "at least 1"),
    "no list": (lambda: run_operator("copy", 5), "a list with an entry per sample, but got 5"),
    "no sample": (lambda: run_operator("copy", [None]), "a sample is .* but got None"),
    "text": (lambda: run_operator("copy", ["a"]), "a sample is .* but got 'a'"),
    "device": (lambda: run_operator("copy", X, device="tpu"), "device is .* but got 'tpu'"),
    "reader": (lambda: run_operator("readers.file", batch_size=1), "readers.file: is a source"),
}


def refused(call, text):
    with pytest.raises(ForebayError, match=text):
        call()


@pytest.mark.parametrize(("options", "text"), CONSTRUCTOR, ids=str)
def test_a_pipeline_is_not_made_of_arguments_that_cannot_be(options, text):
    refused(lambda: pipeline(**options), text)
    refused(lambda: pipeline_def(lambda: types.Constant(1))(**{"batch_size": 1, **options}), text)


@pytest.mark.parametrize("case", CALLS)
def test_an_entry_point_refuses_what_it_cannot_take(case):
    refused(*CALLS[case])


@pytest.mark.parametrize("case", DALIS)
@pytest.mark.parametrize("iterator", [DALIGenericIterator, DALIRaggedIterator])
def test_dalis_iterators_refuse_what_they_cannot_take(iterator, case):
    (pipelines, names), options, text = DALIS[case]
    made = pipelines() if pipelines is pipeline else pipelines
    refused(lambda: iterator(made, names, **options), text)
    if case == "no pipeline":
        refused(lambda: DALIClassificationIterator(made), text)


@pytest.mark.parametrize("case", OPERATOR)
def test_run_operator_refuses_what_it_cannot_take(case):
    refused(*OPERATOR[case])


@pytest.mark.parametrize(
    "call",
    [
        lambda: Pipeline(batch_size=1, batchsize=2),
        lambda: Server(pipeline(), determinstic=True),
        lambda: Iterator(pipeline(), sizes=1),
        lambda: DataLoader(Server(pipeline()), X, batchsize=2),
    ],
)
def test_an_unknown_argument_of_a_class_is_pythons_own_error(call):
    with pytest.raises(TypeError, match=r"unexpected keyword argument '(batchsize|determin|sizes)"):
        call()
