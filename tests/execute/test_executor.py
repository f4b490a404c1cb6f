"""The executor through pipelines: order, errors, ends, reproducible draws."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from forebay import fn, pipeline_def, types
from forebay.batch import Batch, Sample
from forebay.errors import OperatorError, SourceError
from forebay.execute import executor
from forebay.execute.run import Place
from garbage import collect


def forebay_threads():
    return [t for t in threading.enumerate() if t.name.startswith("forebay")]


def counting(batches, size=4):
    return [[np.full((3,), b * size + i, np.int32) for i in range(size)] for b in range(batches)]


def make(source, body=lambda x: x + 1, **options):
    @pipeline_def(**{"batch_size": 4, "num_threads": 3, **options})
    def pipe():
        return body(fn.external_source(source=source))

    return pipe()


def fail_at(*bad):
    def check(x):
        if int(x[0]) in bad:
            raise ZeroDivisionError(f"no {int(x[0])}")
        return x

    return lambda x: fn.python_function(x, function=check) + 1


def drain(pipe):
    values = []
    try:
        while True:
            values += pipe.run()[0].as_array()[:, 0].tolist()
    except StopIteration:
        return values


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("depth", [1, 2, 7])
def test_batches_come_in_order_and_whole(threads, depth):
    pipe = make(counting(20), num_threads=threads, prefetch_queue_depth=depth)
    assert drain(pipe) == list(range(1, 81))


def test_no_work_is_prepared_beyond_the_prefetch_depth():
    asked = []

    def source(i):
        asked.append(i)
        return [np.zeros(1)] * 4

    pipe = make(source, prefetch_queue_depth=3)
    pipe.run()
    pipe.run()
    pipe.close()
    assert asked in ([0, 1, 2], [0, 1, 2, 3])


def test_a_failing_sample_ends_its_own_batch_alone_and_names_everything():
    pipe = make(counting(4), fail_at(6))
    assert pipe.run()[0].as_array()[:, 0].tolist() == [1, 2, 3, 4]
    with pytest.raises(OperatorError, match=r"python_function.*test_executor.py:.*no 6") as caught:
        pipe.run()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert drain(pipe) == list(range(9, 17))


def test_an_operators_error_names_the_first_bad_sample():
    @pipeline_def(batch_size=6, num_threads=3)
    def pipe():
        sizes = (4, 4, 2, 4, 2, 4)
        x = fn.external_source(source=lambda: [np.zeros((n, n, 3), np.uint8) for n in sizes])
        return fn.crop(x, crop=(3, 3))

    with pytest.raises(OperatorError) as caught:
        pipe().run()
    assert caught.value.operator == "crop"
    assert caught.value.sample == 2


def test_a_source_that_raises_ends_that_batch_with_its_own_error():
    def source(i):
        if i == 1:
            raise KeyError("missing")
        return [np.full((1,), i)] * 4

    pipe = make(source)
    assert pipe.run()[0].as_array()[0, 0] == 1
    with pytest.raises(SourceError, match="missing") as caught:
        pipe.run()
    assert isinstance(caught.value.__cause__, KeyError)
    assert pipe.run()[0].as_array()[0, 0] == 3


def test_sources_that_disagree_on_the_batch_size_are_refused_with_both_numbers():
    @pipeline_def(batch_size=4)
    def pipe():
        a = fn.external_source(source=lambda: np.zeros((4, 1)))
        b = fn.external_source(source=lambda: np.zeros((3, 1)))
        return a, b

    with pytest.raises(SourceError, match="Expected: 4; Actual: 3"):
        pipe().run()


def draws(threads, depth, seed=5, runs=6):
    @pipeline_def(batch_size=8, num_threads=threads, seed=seed, prefetch_queue_depth=depth)
    def pipe():
        return (
            fn.random.uniform(range=[0, 1]),
            fn.random.normal(shape=[3]),
            fn.random.coin_flip(seed=3),
            fn.random.coin_flip(seed=3),
        )

    p = pipe()
    return [[o.as_array() for o in p.run()] for _ in range(runs)]


def test_random_numbers_do_not_depend_on_threads_or_prefetch():
    expected = draws(1, 1)
    for threads, depth in ((2, 1), (4, 3), (7, 2)):
        for a, b in zip(draws(threads, depth), expected, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y)


def test_random_numbers_differ_by_seed_batch_row_and_node():
    first = draws(2, 2)
    other = draws(2, 2, seed=6)
    assert not np.array_equal(first[0][0], other[0][0])
    assert not np.array_equal(first[0][0], first[1][0])
    assert len(np.unique(np.concatenate([run[0] for run in first]))) == 48
    np.testing.assert_array_equal(first[0][2], first[0][3])


def test_an_epoch_draws_other_numbers_than_the_one_before():
    @pipeline_def(batch_size=4, seed=1)
    def pipe():
        x = fn.external_source(source=[[np.zeros(1)] * 4], cycle="raise")
        return x, fn.random.uniform()

    p = pipe()
    first = p.run()[1].as_array()
    p.reset()
    assert not np.array_equal(first, p.run()[1].as_array())


def test_a_batch_never_changes_after_it_was_handed_out():
    @pipeline_def(batch_size=4, num_threads=2)
    def pipe():
        x = fn.external_source(source=lambda i: np.full((4, 64, 1024), i, np.uint8))
        return x, fn.copy(x)

    p = pipe()
    kept = [p.run() for _ in range(30)]
    for i, outputs in enumerate(kept):
        for batch in outputs:
            assert (batch.as_tensor() == i).all()


def test_the_users_array_may_change_once_it_was_given():
    array = np.zeros((4, 3), np.uint8)

    def source(i):
        array[:] = i
        return array

    pipe = make(source, body=lambda x: x)
    assert [int(pipe.run()[0].as_array()[0, 0]) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_threads_end_when_the_pipeline_is_closed_or_dropped():
    pipe = make(counting(100))
    pipe.run()
    assert forebay_threads()
    pipe.close()
    assert not forebay_threads()
    assert pipe.run()
    del pipe
    collect()
    assert not forebay_threads()


def test_operators_with_hidden_state_see_batches_in_order():
    seen = []

    def note(x):
        seen.append(int(x[0]))
        return x

    pipe = make(counting(30), lambda x: fn.python_function(x + 0, function=note) + 1, num_threads=4)
    assert drain(pipe) == list(range(1, 121))
    assert seen == list(range(120))


def test_operators_that_see_the_batch_stand_between_those_that_see_samples():
    pipe = make(counting(5), lambda x: fn.permute_batch(x + 1, indices=[3, 2, 1, 0]) * 2)
    values = drain(pipe)
    assert values[:8] == [8, 6, 4, 2, 16, 14, 12, 10]
    assert len(values) == 20


@pytest.mark.parametrize("seed", range(150))
def test_random_starts_failures_and_ends_leave_nothing(seed):
    rng = random.Random(seed)
    batches, size = rng.randint(1, 6), 4
    bad = rng.sample(range(batches * size), rng.randint(0, 2))
    bad_source = rng.choice([None, None, rng.randrange(batches)])

    def source(i):
        if i == bad_source:
            raise ValueError("source")
        if i == batches:
            raise StopIteration
        return counting(batches)[i]

    pipe = make(
        source,
        rng.choice([fail_at(*bad), lambda x: fail_at(*bad)(fn.copy(x))]),
        num_threads=rng.randint(1, 4),
        prefetch_queue_depth=rng.randint(1, 4),
    )
    for i in range(rng.randint(0, batches)):
        rows = set(range(i * size, i * size + size))
        if i == bad_source:
            with pytest.raises(SourceError):
                pipe.run()
        elif rows & set(bad):
            with pytest.raises(OperatorError):
                pipe.run()
        else:
            assert pipe.run()[0].as_array()[:, 0].tolist() == [r + 1 for r in sorted(rows)]
    if rng.random() < 0.5:
        pipe.close()
    del pipe
    collect()
    assert not forebay_threads()


def test_the_output_types_that_were_demanded_are_checked():
    pipe = make(counting(1), output_dtype=types.FLOAT)
    with pytest.raises(RuntimeError, match=r"Data type.*FLOAT.*INT32"):
        pipe.run()
    pipe = make(counting(1), output_ndim=2)
    with pytest.raises(RuntimeError, match=r"Number of dimensions.*2.*1"):
        pipe.run()


def test_the_time_in_which_there_is_work_is_divided_among_the_runs(monkeypatch):
    ticks = iter(range(9))
    monkeypatch.setattr(executor, "perf_counter", lambda: next(ticks))
    go_on = threading.Event()

    def wait(x):
        go_on.wait(60)
        return x

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.python_function(fn.external_source(name="x"), function=wait)

    made = pipe()
    [node] = made.inputs().values()
    running = made.new_executor()
    fed = {node: Batch([Sample(np.zeros(1))])}
    first, second = (running.submit(Place(0, i), fed) for i in range(2))  # work from 0
    go_on.set()
    for run in (first, second):
        run.result()
    third = running.submit(Place(0, 2), fed)  # from 3; none between 2 and 3
    third.result()
    assert [run.ended for run in (first, second, third)] == [1, 2, 4]
    assert [run.busy for run in (first, second, third)] == [1, 1, 1]
    running.close()
