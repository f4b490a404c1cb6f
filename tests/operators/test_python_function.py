from __future__ import annotations

import numpy as np
import pytest

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case

data = [np.arange(2, dtype=np.uint8), np.arange(3, dtype=np.uint8)]


def double(array):
    return array * 2


def both(array):
    return array, array[::-1] + 0.5


def add(a, b):
    return a + b


def double_all(arrays):
    return [array * 2 for array in arrays]


def both_all(arrays, others):
    return list(arrays), [other[None] for other in others]


def case(function, *inputs, layout="", **arguments):
    return Case("python_function", list(inputs), {"function": function, **arguments}, layout=layout)


CASES = [
    case(double, data, layout="W"),
    case(lambda a: (a,), data),
    case(both, data, num_outputs=2),
    case(add, data, data),
    case(both, data, num_outputs=2, output_layouts=["W", "X"]),
    case(both, data, num_outputs=2, output_layouts=["W"]),
    case(both, data, num_outputs=2, output_layouts="W"),
    case(lambda a: np.array(5), data),
    case(lambda a: a.astype(np.float16)[None], data, output_layouts="HW"),
    case(double_all, data, batch_processing=True),
    case(lambda arrays: (double_all(arrays),), data, batch_processing=True),
    case(both_all, data, data, batch_processing=True, num_outputs=2, output_layouts=["", "HW"]),
    Case("python_function", [], {"function": lambda: np.zeros(2)}, batch_size=2),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def call(function, *inputs, **arguments):
    return run_operator("python_function", *(inputs or [data]), function=function, **arguments)


def test_a_function_without_outputs_is_called_for_each_sample_in_order():
    seen = []
    assert call(lambda a: seen.append(a.tolist()), num_outputs=0) == ()
    assert seen == [[0, 1], [0, 1, 2]]
    assert call(lambda batch: seen.append(len(batch)), num_outputs=0, batch_processing=True) == ()
    assert seen[2:] == [2]


def test_a_function_may_change_what_it_gets_without_changing_the_input():
    def clear(array):
        array[:] = 0
        return array

    original = np.arange(3)
    assert call(clear, [original])[0].tensor.tolist() == [0, 0, 0]
    assert original.tolist() == [0, 1, 2]


def test_a_function_may_keep_and_change_what_it_returned():
    buffer = np.zeros(2)

    def count(array):
        buffer[:] += 1
        return buffer

    assert [sample.tensor.tolist() for sample in call(count)] == [[1, 1], [2, 2]]


def test_arrays_of_any_memory_order_and_endianness_keep_their_values():
    big = np.arange(6, dtype=">i4").reshape(2, 3).T[::-1]
    (got,) = call(lambda a: big, [data[0]])
    assert got.tensor.tolist() == big.tolist()


def test_samples_keep_their_source():
    samples = [Sample(array, source=str(i)) for i, array in enumerate(data)]
    assert [sample.source for sample in call(double, samples)] == ["0", "1"]


def test_the_functions_own_errors_come_through_unchanged():
    error = KeyError("mine")

    def fail(array):
        raise error

    with pytest.raises(KeyError) as caught:
        call(fail)
    assert caught.value is error


@pytest.mark.parametrize(
    "returned",
    [5, None, [1, 2], [np.zeros(2)], np.float32(1), "text", np.array("a"), np.zeros(2, complex)],
)
def test_what_is_no_array_of_numbers_is_refused(returned):
    with pytest.raises(TypeError, match="must return numpy arrays of numbers"):
        call(lambda a: returned)


@pytest.mark.parametrize(
    ("returned", "outputs"),
    [(np.zeros(2), 2), ((np.zeros(2),), 2), ((np.zeros(2), np.zeros(2)), 1), (np.zeros(2), 0)],
)
def test_a_wrong_number_of_outputs_is_refused(returned, outputs):
    with pytest.raises(ValueError, match=f"must return {outputs} outputs"):
        call(lambda a: returned, num_outputs=outputs)


def test_a_batch_function_returns_a_list_per_output():
    with pytest.raises(TypeError, match="a list of arrays per output, but got an array"):
        call(np.stack, [data[0], data[0]], batch_processing=True)
    with pytest.raises(ValueError, match="returned 1 arrays for a batch of 2"):
        call(lambda arrays: arrays[:1], batch_processing=True)


def test_a_layout_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="layout 'HW' does not fit"):
        call(double, output_layouts="HW")


def test_more_layouts_than_outputs_are_refused_when_the_graph_is_written():
    with pytest.raises(ArgumentError, match="too many"):
        call(double, output_layouts=["W", "W"])


def test_what_cannot_be_called_is_refused_when_the_graph_is_written():
    with pytest.raises(ArgumentError, match="must be callable, but is 3"):
        call(3)


def test_the_order_of_calls_is_kept_and_the_number_of_outputs_known():
    from forebay.operators.python_function import python_function

    assert python_function.ordered
    assert python_function.outputs({"num_outputs": 3}) == 3
    assert python_function.outputs({}) == 1
