from __future__ import annotations

import numpy as np
import pytest

from forebay import Pipeline, fn, types
from forebay.errors import GraphError


def plan_of(write, **options):
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None, **options)
    with pipe:
        outputs = write()
        pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    return pipe.plan


def names(instructions):
    return [instruction.node.operator.name for instruction in instructions]


def shape(plan):
    """Each stage as (ordered, phases); a phase of batches stands in a list of its own."""
    return [
        (
            names(stage.ordered),
            [
                [names(phase.instructions)] if phase.of_batches else names(phase.instructions)
                for phase in stage.phases
            ],
        )
        for stage in plan.stages
    ]


def instructions(plan):
    return [
        instruction
        for stage in plan.stages
        for instruction in (*stage.ordered, *(i for p in stage.phases for i in p.instructions))
    ]


def source(**arguments):
    return fn.external_source(lambda: np.zeros((2, 3), np.uint8), **arguments)


def same(x):
    return fn.python_function(x, function=lambda a: a)


def reverse(x):
    return fn.permute_batch(x, indices=[1, 0])


def test_operators_on_samples_share_a_phase_however_they_branch():
    def write():
        x = source()
        a, b = fn.copy(x), fn.flip(x)
        return fn.cat(a, b), a + 1

    assert shape(plan_of(write)) == [([], [["copy", "flip", "cat", "arithmetic"]])]


def test_an_operator_on_batches_stands_between_phases_of_samples():
    plan = plan_of(lambda: fn.flip(reverse(fn.copy(source()))))
    assert shape(plan) == [([], [["copy"], [["permute_batch"]], ["flip"]])]


def test_what_does_not_wait_for_a_batch_operator_runs_in_the_first_phase():
    def write():
        x = source()
        return reverse(fn.copy(x)), fn.flip(x), fn.random.coin_flip()

    first, *rest = shape(plan_of(write))[0][1]
    assert first == ["copy", "flip", "random.coin_flip"]
    assert rest == [[["permute_batch"]], []]


def test_batch_operators_that_need_one_another_have_a_phase_each_and_others_share_one():
    def write():
        x = fn.copy(source())
        a, b = reverse(x), reverse(x)
        return reverse(a), b

    one = [["permute_batch"]]
    two = [["permute_batch", "permute_batch"]]
    assert shape(plan_of(write)) == [([], [["copy"], two, one, []])]


def test_a_function_begins_a_stage_of_its_own():
    plan = plan_of(lambda: fn.flip(same(fn.copy(source()))))
    assert shape(plan) == [([], [["copy"]]), (["python_function"], [["flip"]])]


def test_functions_one_after_the_other_have_a_stage_each():
    plan = plan_of(lambda: same(same(source())))
    assert [ordered for ordered, _ in shape(plan)] == [[], ["python_function"], ["python_function"]]


def test_functions_side_by_side_share_a_stage():
    def write():
        x = source()
        return same(x), same(x)

    assert [ordered for ordered, _ in shape(plan_of(write))] == [[], ["python_function"] * 2]


@pytest.mark.parametrize("last", [fn.copy, reverse, same, lambda x: x])
def test_the_last_phase_is_one_of_samples_for_the_outputs_are_stored_in_it(last):
    assert not plan_of(lambda: last(source())).stages[-1].phases[-1].of_batches


def test_sources_are_read_by_the_first_stage_and_fed_ones_are_apart():
    def write():
        return same(source(name="read")) + 1, fn.external_source(name="fed"), fn.zeros(shape=[2])

    plan = plan_of(write)
    assert [s.node.name for s in plan.stages[0].sources] == ["read"]
    assert [s.node.name for s in plan.fed] == ["fed"]
    assert not any(stage.sources for stage in plan.stages[1:])


# ── constants ─────────────────────────────────────────────────────────────────────────────────────


def test_what_is_the_same_for_all_samples_is_run_once_when_the_plan_is_made():
    def write():
        return source() * 2.5, types.Constant([1, 2]), fn.zeros(shape=[2, 3]), fn.constant(idata=7)

    plan = plan_of(write)
    assert names(instructions(plan)) == ["arithmetic"]
    found = {sample.tensor.numpy().tobytes() for _, sample in plan.constants}
    expected = [np.float32(2.5), np.int32([1, 2]), np.zeros((2, 3), np.int32), np.int32([7])]
    assert found == {value.tobytes() for value in expected}


def test_random_numbers_are_no_constants():
    assert names(instructions(plan_of(fn.random.uniform))) == ["random.uniform"]


def test_a_constant_that_cannot_be_made_is_refused_with_its_line():
    with pytest.raises(GraphError, match=r"fn.zeros at .*test_cut.py:\d+"):
        plan_of(lambda: fn.zeros(shape=[1 << 40, 1 << 20]))


# ── slots ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_slot_is_freed_by_its_last_reader_and_outputs_never():
    def write():
        x = source()
        a = fn.copy(x)
        b = fn.flip(a)
        return b, fn.cat(a, b)

    plan = plan_of(write)
    copy, flip, cat = instructions(plan)
    assert copy.frees == copy.inputs
    assert flip.frees == ()
    assert cat.frees == copy.outputs
    assert plan.outputs == (*flip.outputs, *cat.outputs)


def test_results_that_nothing_reads_are_freed_at_once():
    def write():
        fn.copy(source(), preserve=True)
        return types.Constant(1)

    (copy,) = instructions(plan_of(write))
    assert set(copy.frees) == {*copy.inputs, *copy.outputs}


def test_every_slot_is_freed_once_or_is_an_output():
    def write():
        x, y = source(), source()
        a = reverse(fn.copy(x) + y)
        return same(a * a) - 1, fn.stack(y, x), a

    plan = plan_of(write)
    freed = [slot for instruction in instructions(plan) for slot in instruction.frees]
    assert len(freed) == len(set(freed))
    assert set(freed) | set(plan.outputs) == set(range(plan.slots))
    assert not set(freed) & set(plan.outputs)


def test_an_operator_whose_result_is_an_output_writes_into_its_batch():
    def write():
        x = source()
        a = fn.copy(x)
        return fn.flip(a), a

    copy, flip = instructions(plan_of(write))
    assert (flip.target, copy.target) == (0, 1)


# ── nodes ─────────────────────────────────────────────────────────────────────────────────────────


def test_nodes_that_no_output_needs_are_left_out():
    def write():
        x = source()
        fn.flip(x)
        source(name="unused")
        return fn.copy(x)

    plan = plan_of(write)
    assert names(instructions(plan)) == ["copy"]
    assert len(plan.stages[0].sources) == 1


def test_random_operators_have_keys_by_seed_and_place():
    def write():
        return fn.random.uniform(), fn.random.uniform(), fn.random.uniform(seed=3)

    def keys(seed):
        return [i.key for i in instructions(plan_of(write, seed=seed))]

    a, b, fixed = keys(1)
    assert len({a, b, fixed}) == 3
    assert keys(1) == [a, b, fixed]
    assert keys(2)[2] == fixed
    assert not {a, b} & set(keys(2))
