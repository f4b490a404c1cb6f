"""`if`, `and`, `or`, `not` on nodes. The graphs are written twice, for forebay and for DALI.

Samples are the numbers 0 to 5, one a sample.
"""

# The graphs and functions are written as users may write them.
# ruff: noqa: SIM102, RET503, RET505, TRY300, TRY301, FURB136, PLR0133, E731, C901
from __future__ import annotations

import functools
import traceback

import numpy as np
import pytest

import forebay
from forebay import pipeline_def
from forebay.errors import ArgumentError, GraphError, NodeUseError, OperatorError

SIZE = 6
OPTIONS = {"batch_size": SIZE, "num_threads": 2, "device_id": None, "seed": 3}


def numbers(lib):
    return lib.fn.external_source(source=lambda i: np.int32(i.idx_in_batch), batch=False)


def run(function, lib=forebay):
    pipe = lib.pipeline_def(enable_conditionals=True, **OPTIONS)(function)(lib)
    pipe.build()
    return [[np.array(out.at(i)).tolist() for i in range(SIZE)] for out in pipe.run()]


# ── graphs that both know ────────────────────────────────────────────────────────────────────────


def two_branches(lib):
    x = numbers(lib)
    if x > 2:
        y = x * 10
    else:
        y = x - 100
    return y


def only_then(lib):
    x = numbers(lib)
    if x > 2:
        x += 10
    return x


def elif_chain(lib):
    x = numbers(lib)
    if x == 0:
        y = x + 50
    elif x < 3:
        y = x + 60
    elif x == 5:
        y = 7
    else:
        y = x
    return y


def nested(lib):
    x = numbers(lib)
    y = x
    if x > 1:
        z = x * 2
        if z > 6:
            y = z
        else:
            y = -z
    return y, x


def logic(lib):
    x = numbers(lib)
    return (x > 1) and (x < 4), (x > 4) or (x == 0), not (x > 1), not x, 1 < x < 4 <= 9


def logic_with_python(lib):
    x = numbers(lib)
    yes, no = True, False
    return yes and (x > 1), (x > 1) and yes, no or (x > 1), (x > 1) or (x > 2) or no


def early_return(lib):
    x = numbers(lib)
    if x > 3:
        return x * 10
    if x > 1:
        return x * 100
    return x


def return_in_both(lib):
    x = numbers(lib)
    if x > 3:
        return x * 10, x
    return x, x * 5


def called_function(lib):
    def scale(x, factor=10):
        if x > 3:
            return x * factor
        return x

    return scale(numbers(lib)), scale(numbers(lib), factor=3)


def continue_in_loop(lib):
    x = numbers(lib)
    for i in range(3):
        if x > i:
            continue
        x = x + 1
    return x


def structures(lib):
    x = numbers(lib)
    if x > 2:
        y = (x, {"a": x + 1})
    else:
        y = (x + 5, {"a": x + 7})
    return y[0], y[1]["a"]


def items_and_attributes(lib):
    class Bag:
        pass

    x = numbers(lib)
    d, bag = {}, Bag()
    bag.n = x
    if x > 2:
        d["k"] = x
        bag.n = x * 2
    else:
        d["k"] = -x
    return d["k"], bag.n


def constants(lib):
    x = numbers(lib)
    if x > 2:
        y, z = 5, np.array([1, 2], np.int32)
    else:
        y, z = x, np.array([3, 4], np.int32)
    return y, z


def number_as_condition(lib):
    x = numbers(lib)
    if x:
        y = x * 2
    else:
        y = x + 9
    if x * 0.5:
        y = y + 1
    return y


def value_used_after(lib):
    x = numbers(lib)
    z = x * 100
    if x > 2:
        y = z
    else:
        y = x
    return y, z


def source_in_a_branch(lib):
    x = numbers(lib)
    if x > 2:
        y = numbers(lib) + 100
    else:
        y = x
    return y


def whole_batch_operator(lib):
    x = numbers(lib)
    y = x
    if x > 2:
        y = lib.fn.permute_batch(x, indices=[2, 1, 0])
    return y


def arguments_per_sample(lib):
    x = numbers(lib)
    data = lib.fn.stack(x, x + 1, x + 2)
    if x > 2:
        y = lib.fn.slice(data, lib.fn.cast(x - 3, dtype=lib.types.INT32), 1, axes=[0])
    else:
        y = data
    return y


def items_with_keys_in_variables(lib):
    x = numbers(lib)
    y = x + 100
    d = {"a": x, "b": x}
    outs = [x, x]
    for k in d:
        if x > 1:
            d[k] = y
    for i in range(2):
        if x > 2 + i:
            outs[i] = y + i
    return d["a"], d["b"], *outs


def local_containers(lib):
    x = numbers(lib)
    if x > 2:
        parts = {}
        for k in ("a", "b"):
            parts[k] = x * 2
        y = parts["a"] + parts["b"]
    else:
        y = x
    return y


class Augment:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        if x > 3:
            return x + self.by
        return x


def objects_that_are_called(lib):
    return Augment(50)(numbers(lib)), Augment(60)(numbers(lib))


def compared_in_a_chain(lib):
    x = numbers(lib)
    pair = lib.fn.stack(x, x)
    if 0 < pair[0] < 3:
        x = x + 10
    if 1 <= lib.fn.cast(x, dtype=lib.types.INT32) <= 11 != 5:
        x = x * 10
    return x


def many_branches(lib):
    x = numbers(lib)
    which = "op23"
    if which == "op0":
        return x
    elif which == "op1":
        return x + 1
    elif which == "op2":
        return x + 2
    elif which == "op3":
        return x + 3
    elif which == "op4":
        return x + 4
    elif which == "op5":
        return x + 5
    elif which == "op6":
        return x + 6
    elif which == "op7":
        return x + 7
    elif which == "op8":
        return x + 8
    elif which == "op9":
        return x + 9
    elif which == "op10":
        return x + 10
    elif which == "op11":
        return x + 11
    elif which == "op12":
        return x + 12
    elif which == "op13":
        return x + 13
    elif which == "op14":
        return x + 14
    elif which == "op15":
        return x + 15
    elif which == "op16":
        return x + 16
    elif which == "op17":
        return x + 17
    elif which == "op18":
        return x + 18
    elif which == "op19":
        return x + 19
    elif which == "op20":
        return x + 20
    elif which == "op21":
        return x + 21
    elif which == "op22":
        return x + 22
    elif x > 3:
        return x + 23
    else:
        return x


GRAPHS = [
    two_branches, items_with_keys_in_variables, local_containers, objects_that_are_called,
    compared_in_a_chain, many_branches,
    only_then, elif_chain, nested, logic, logic_with_python, early_return,
    return_in_both, called_function, continue_in_loop, structures, items_and_attributes, constants,
    number_as_condition, value_used_after, source_in_a_branch, whole_batch_operator,
    arguments_per_sample,
]  # fmt: skip


@pytest.mark.dali
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda f: f.__name__)
def test_every_sample_goes_the_way_it_goes_in_dali(graph):
    dali = pytest.importorskip("nvidia.dali", reason="compares with DALI, which is not installed")
    assert run(graph) == run(graph, dali)


def test_every_sample_takes_its_own_branch():
    assert run(two_branches) == [[-100, -99, -98, 30, 40, 50]]
    assert run(nested)[0] == [0, 1, -4, -6, 8, 10]


# ── what is better ───────────────────────────────────────────────────────────────────────────────


def test_a_conditional_expression_works_also_in_a_lambda():
    def graph(lib):
        x = numbers(lib)
        clip = lambda v: 3 if v > 3 else v
        return x * 10 if x > 2 else x, clip(x)

    assert run(graph) == [[0, 1, 2, 30, 40, 50], [0, 1, 2, 3, 3, 3]]


def test_equal_plain_values_stay_plain():
    seen = []

    def graph(lib):
        x = numbers(lib)
        if x > 2:
            size, y = 5, x
        else:
            size, y = 5, -x
        seen.append(size)
        return y

    run(graph)
    assert seen == [5]


def test_operators_of_a_branch_run_for_its_samples_alone():
    calls = []

    def graph(lib):
        x = numbers(lib)
        y = x
        if x > 3:
            y = lib.fn.python_function(x, function=lambda v: calls.append(int(v)) or v)
        if x > 9:
            lib.fn.python_function(x, function=lambda v: calls.append("never"), num_outputs=0)
        return y

    assert run(graph) == [[0, 1, 2, 3, 4, 5]]
    assert set(calls) == {4, 5}


def test_random_numbers_of_a_sample_do_not_depend_on_the_others_branches():
    def all_of_them(lib):
        numbers(lib)
        return lib.fn.random.uniform(range=[0, 1], seed=5)

    def some(lib):
        x = numbers(lib)
        y = -1.0
        if x > 2:
            y = lib.fn.random.uniform(range=[0, 1], seed=5)
        return y

    assert run(some)[0] == [-1.0] * 3 + run(all_of_them)[0][3:]


def test_a_sample_fails_only_in_the_branch_that_it_takes():
    def graph(lib):
        x = numbers(lib)
        if x > 7:
            y = lib.fn.reshape(x, shape=[2])
        else:
            y = lib.fn.reshape(x, shape=[1])
        return y

    assert run(graph) == [[[i] for i in range(SIZE)]]


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────


def line_of(function, text):
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_a_variable_of_one_branch_is_missing_afterwards():
    def graph(lib):
        x = numbers(lib)
        if x > 2:
            y = x
        return y

    line = line_of(graph, "if x")
    with pytest.raises(GraphError, match=f"'y' has no value in one branch of .*:{line}"):
        run(graph)

    def computing(lib):
        x = numbers(lib)
        if x > 2:
            y = x
        return y + 1

    with pytest.raises(NodeUseError, match="'y' has no value in one branch"):
        run(computing)


def test_plain_values_that_differ_cannot_even_be_compared():
    def graph(lib):
        x = numbers(lib)
        mode = "a"
        if x > 2:
            mode = "b"
        if mode == "a":
            x = x + 100
        return x

    with pytest.raises(NodeUseError, match=r"'mode' is 'b' in one branch .* and 'a' in the other"):
        run(graph)


def test_an_assignment_that_cannot_be_undone_is_refused():
    def graph(lib):
        x = numbers(lib)
        y = x + 1
        d = {"a": x}
        if x > 2:
            for k in ("a", "b"):
                d[k] = y
        return d["a"]

    with pytest.raises(NodeUseError, match=r"assignment to `d\[k\]` in the `if` on a node at"):
        run(graph)


def test_branches_that_do_not_go_together_are_told_when_the_value_is_used():
    def graph(lib):
        x = numbers(lib)
        if x > 2:
            y = "a"
        else:
            y = (x, x)
        return y if lib is None else (x, y)

    with pytest.raises(GraphError, match=r"'y' is 'a' in one branch .* and a tuple in the other"):
        run(graph)


def test_different_element_types_are_refused():
    def graph(lib):
        x = numbers(lib)
        if x > 2:
            y = lib.fn.cast(x, dtype=lib.types.FLOAT)
        else:
            y = x
        return y

    with pytest.raises(forebay.errors.ForebayError, match=r"float32.*int32"):
        run(graph)


def test_a_node_that_leaves_its_branch_is_refused():
    def graph(lib):
        x = numbers(lib)
        kept = []
        if x > 2:
            kept.append(x + 1)
        return kept[0]

    with pytest.raises(GraphError, match=f":{line_of(graph, 'append')} in a branch of an `if`"):
        run(graph)

    def used(lib):
        x = numbers(lib)
        kept = []
        if x > 2:
            kept.append(x + 1)
        return kept[0] * 2

    with pytest.raises(GraphError, match=f":{line_of(used, 'append')} is made in a branch"):
        run(used)


@pytest.mark.parametrize("statement", ["return x", "break"])
def test_a_loop_cannot_end_for_some_samples(statement):
    space = {"numbers": numbers}
    text = (
        f"def graph(lib):\n x = numbers(lib)\n for i in (1, 2):\n  if x > 2: {statement}\n return x"
    )
    with pytest.raises(NodeUseError, match=statement.split()[0]):
        run(from_text(text, "graph", space))


def test_a_condition_has_no_axes():
    def graph(lib):
        x = numbers(lib)
        if lib.fn.stack(x, x):
            x = x + 1
        return x

    with pytest.raises(OperatorError, match=r"without axes.*\(2,\)") as caught:
        run(graph)
    assert f":{line_of(graph, 'if lib')}" in str(caught.value)


def test_operands_of_and_are_bools():
    def graph(lib):
        x = numbers(lib)
        return x and x > 2

    with pytest.raises(OperatorError, match="operands of `and` and `or` are bools, but got int32"):
        run(graph)


def test_without_the_option_a_node_in_if_says_what_to_do():
    with pytest.raises(NodeUseError, match="enable_conditionals=True"):
        pipeline_def(**OPTIONS)(two_branches)(forebay)


def test_the_option_may_be_given_in_the_call():
    pipe = pipeline_def(**OPTIONS)(two_branches)(forebay, enable_conditionals=True)
    assert [int(v) for v in pipe.run()[0].as_array()] == [-100, -99, -98, 30, 40, 50]


def test_a_function_without_source_is_refused():
    space = {}
    exec("def graph(lib):\n  return 1", space)
    with pytest.raises(ArgumentError, match="source"):
        run(space["graph"])


def test_an_error_in_a_branch_ends_the_branch():
    def graph(lib):
        x = numbers(lib)
        try:
            if x > 2:
                raise KeyError("mine")
        except KeyError:
            pass
        return x + 1

    assert run(graph) == [[1, 2, 3, 4, 5, 6]]


def test_do_not_convert_leaves_a_function_alone():
    @forebay.do_not_convert
    def inner(x):
        return x if x > 2 else -x

    with pytest.raises(NodeUseError):
        run(lambda_free(inner))


def lambda_free(inner):
    def graph(lib):
        return inner(numbers(lib))

    return graph


# ── Python stays Python ──────────────────────────────────────────────────────────────────────────


def from_text(text, name, space=None):
    """A function of a text, whose source can be found."""
    import linecache

    file = f"<text {hash(text)}>"
    linecache.cache[file] = (len(text), None, [f"{line}\n" for line in text.split("\n")], file)
    space = {"functools": functools, **(space or {})}
    exec(compile(text, file, "exec"), space)
    return space[name]


class Parent:
    def value(self):
        return 5


class Child(Parent):
    __secret = 7

    def value(self, extra=1, *, more=2):
        if extra:
            extra = super().value() + self.__secret
        also = super().value() if extra else 1
        return extra + more + (also and super().value())


def jumps(n):
    found = []
    for i in range(n):
        if i == 2:
            continue
        if i == 7:
            break
        for j in range(i):
            if (j > 2 and i > 3) or not j:
                if j == 4:
                    return found
                continue
            found.append((i, j))
    else:
        found.append("else")
    while n:
        n -= 1
        if n % 2:
            continue
        found.append(n)
    return found


def scopes(n):
    total = 0

    def add(value):
        nonlocal total
        if value > 1:
            total += value
        return total

    if n > 3:
        odd = [add(i) for i in range(n) if i % 2 and i > 1]
    else:
        odd = {i: add(i) or None for i in range(n)}
    if (half := n // 2) and half > 1:
        total += half
    return total, odd, functools.partial(add, 5)(), sorted([3, 1], key=lambda v: -v if v else v)


def handling(n):
    try:
        if n == 1:
            raise KeyError(n)
        if n == 2:
            return "two"
        if n == 3:
            del n
        return n
    except KeyError as error:
        return repr(error)
    except UnboundLocalError:
        return "unbound"
    finally:
        n = 0


def unbound(n):
    if n:
        x = 1
    return x


def many_that_may_return(n):
    a, b = n > 1, n > 3
    if a:
        if b:
            return 1
    if a:
        if n == 2:
            return 2
    if a:
        if b:
            return 3
    if a:
        if b:
            return 4
    if a:
        if b:
            return 5
    if a:
        if b:
            return 6
    if a:
        if b:
            return 7
    if a:
        if b:
            return 8
    if a:
        if b:
            return 9
    if a:
        if b:
            return 10
    if a:
        if b:
            return 11
    if a:
        if b:
            return 12
    return 13


def falls_off(n):
    if n == 1:
        return "one"
    elif n == 2:
        if n:
            return "two"


@pytest.mark.parametrize(
    "function", [jumps, scopes, handling, unbound, falls_off, many_that_may_return, Child().value]
)
def test_code_without_nodes_does_what_it_did(function):
    from forebay.define.rewrite import converted

    for n in (0, 1, 2, 3, 4, 9):
        results = []
        for version in (function, converted(function)):
            try:
                results.append(version(n))
            except Exception as error:
                results.append((type(error), str(error)))
        assert results[0] == results[1]


def test_a_function_with_too_many_branches_is_left_alone_or_refused():
    from forebay.define.rewrite import converted

    assert converted(many_that_may_return) is many_that_may_return
    with pytest.raises(ArgumentError, match="too many branches"):
        run(many_that_may_return)


def test_errors_show_the_users_lines():
    def graph(lib):
        x = numbers(lib)
        if x > 2:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError) as caught:
        run(graph)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == (__file__, line_of(graph, "raise KeyError"))
