"""`testing.run_pipeline`: the same results, operator by operator in this thread."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from forebay import fn, pipeline_def, types
from forebay.errors import OperatorError, SourceError
from forebay.testing import run_pipeline

SIZE = 5
OPTIONS = {"batch_size": SIZE, "num_threads": 3, "seed": 11, "enable_conditionals": True}


@pipeline_def(**OPTIONS)
def everything():
    """Sources, per sample, per batch, hidden state, random numbers, branches, constants."""
    x = fn.external_source(
        source=lambda i: np.full((3, 2, 1), i.idx_in_epoch, np.int32), batch=False, layout="HWC"
    )
    y = fn.flip(
        x + types.Constant(np.array([[1], [2]], np.int32)), horizontal=fn.random.coin_flip()
    )
    y = fn.python_function(y, function=lambda v: v * 3)
    y = fn.permute_batch(y, indices=fn.batch_permutation())
    if fn.random.uniform(range=[0, 1]) < 0.5:
        y = y + fn.random.uniform(range=[0, 9], dtype=types.INT32)
    return y, x, fn.reductions.sum(y)


def arrays(outputs):
    return [[np.array(out.at(i)).tolist() for i in range(len(out))] for out in outputs]


def test_it_gives_what_the_pipeline_gives():
    expected = everything()
    now = everything()
    for batch in range(3):
        assert arrays(run_pipeline(now, batch=batch)) == arrays(expected.run())


def test_everything_happens_in_the_calling_thread():
    threads = set()

    @pipeline_def(batch_size=2, num_threads=2)
    def pipe():
        x = fn.external_source(source=lambda i: threads.add(threading.get_ident()) or [1.0, 2.0])
        return fn.python_function(x, function=lambda v: threads.add(threading.get_ident()) or v)

    run_pipeline(pipe())
    assert threads == {threading.get_ident()}


def test_it_shows_every_result_in_order():
    seen = []

    @pipeline_def(**OPTIONS)
    def pipe():
        x = fn.external_source(name="x")
        y = x
        if x > 2:
            y = fn.cast(x * 2, dtype=types.INT32, name="doubled")
        return y

    numbers = [np.int32(i) for i in range(SIZE)]
    (out,) = run_pipeline(pipe(), x=numbers, inspect=lambda name, found: seen.append((name, found)))
    assert arrays([out]) == [[0, 1, 2, 6, 8]]
    shown = {name: [None if s is None else s.array.item() for s in found] for name, found in seen}
    assert shown["x"] == [0, 1, 2, 3, 4]
    assert shown["doubled"] == [None, None, None, 6, 8]
    assert [*shown.values()][-1] == [0, 1, 2, 6, 8]


def test_the_first_operator_that_fails_is_named():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        x = fn.external_source(name="x")
        return fn.reshape(x, shape=[2])

    with pytest.raises(OperatorError, match="reshape at sample 1"):
        run_pipeline(pipe(), x=[np.zeros(2), np.zeros(3)])


def test_the_end_of_the_data_is_stopiteration():
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.external_source(source=[[np.zeros(1)]])

    made = pipe()
    run_pipeline(made)
    with pytest.raises(StopIteration):
        run_pipeline(made)


@pytest.mark.parametrize("given", [{}, {"y": [1.0]}, {"x": [1.0], "y": [1.0]}])
def test_inputs_that_are_missing_or_unknown_are_named(given):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.external_source(name="x") + 1

    with pytest.raises(SourceError, match=r"inputs are \['x'\]"):
        run_pipeline(pipe(), **given)
