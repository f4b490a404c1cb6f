"""Pipelines that several threads run, or that their own threads would run."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from forebay import Pipeline, fn
from forebay.errors import OperatorError, SourceError


def single(number):
    return np.full((1, 1), number, np.int64)


def make(body):
    pipe = Pipeline(batch_size=1, num_threads=2, device_id=None)
    with pipe:
        pipe.set_outputs(body())
    return pipe


def from_threads(call, count):
    """What `call(number)` gave in each of so many threads, or raised."""
    start = threading.Barrier(count)
    results = [None] * count

    def body(number):
        start.wait()
        try:
            results[number] = call(number)
        except Exception as error:  # the test shows it
            results[number] = error

    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return results


def test_each_of_several_threads_gets_batches_of_its_own():
    pipe = make(lambda: fn.external_source(single))
    results = from_threads(lambda _: [int(pipe.run()[0][0]) for _ in range(30)], 4)
    assert sorted(number for result in results for number in result) == [*range(120)]


def test_each_of_several_threads_gets_what_it_fed():
    pipe = make(lambda: fn.external_source(name="x"))
    results = from_threads(
        lambda number: {int(pipe.run(x=single(number))[0][0]) for _ in range(30)}, 4
    )
    assert results == [{0}, {1}, {2}, {3}]


@pytest.mark.parametrize("use", ["run", "reset"])
def test_a_pipeline_that_its_own_source_uses_says_so(use):
    def source():
        return getattr(pipe, use)()

    pipe = make(lambda: fn.external_source(source))
    with pytest.raises(SourceError, match="used by its own source or function"):
        pipe.run()
    pipe.close()  # its source holds it


def test_a_pipeline_that_its_own_function_runs_says_so():
    pipe = make(
        lambda: fn.python_function(fn.external_source(single), function=lambda _: pipe.run()[0])
    )
    with pytest.raises(OperatorError, match="used by its own source or function"):
        pipe.run()
    pipe.close()
