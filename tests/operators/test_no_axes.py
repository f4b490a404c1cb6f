"""Numbers without axes, of shape (), through every operator that takes them in DALI."""

from __future__ import annotations

import numpy as np
import pytest

from calls import ALL, CALLED, enough
from forebay import types
from forebay.testing import run_operator

from oracle import Case, run_dali

TYPES = [np.uint8, np.int32, np.int64, np.float32, np.bool_, np.float16]
MORE = {
    "erase": [{"axes": [], "anchor": [], "shape": []}],
    "expand_dims": [{"axes": [0]}, {"axes": [0, 1], "new_axis_names": "AB"}],
    "one_hot": [{"num_classes": 3}, {"num_classes": 2, "axis": 0}],
    "reductions.sum": [{"axes": []}, {"axes": [0]}, {"keep_dims": True}],
    "reductions.max": [{"axes": []}, {"axes": [0]}],
    "reinterpret": [{"shape": [1]}, {"shape": []}, {"layout": ""}],
    "reshape": [{"shape": [1, 1]}, {"shape": []}, {"shape": [-1]}, {"rel_shape": [1]}],
    "slice": [{"axes": [], "start": [], "shape": []}],
    "squeeze": [{"axes": []}, {"axis_names": "A"}],
    "stack": [{"axis": 0}, {"axis": 1}],
    "transpose": [{"perm": []}, {"perm": [0]}],
    "cast": [{"dtype": types.FLOAT16}],
    "pad": [{"axes": []}, {"axes": [0]}],
}
RANDOM = {name for name in CALLED if ALL[name].uses_rng}
NOT_COMPARED = {
    "grid_mask": "DALI gives what lies in its memory",
    "normalize": "DALI divides by what lies in its memory, or refuses the type, which we do not",
    "io.file.read": "DALI crashes",
    "noise.salt_and_pepper": "DALI crashes",
    "python_function": "DALI has it only outside its usual pipelines",
}
CALLS = [
    (name, arguments)
    for name in CALLED
    if ALL[name].schema.max_inputs
    for arguments in ([enough(name)] if enough(name) or name not in MORE else [{}])
    + MORE.get(name, [])
]


def outcome(run):
    """What comes out, or None if the call is refused."""
    try:
        return run()
    except (RuntimeError, ValueError, TypeError, IndexError):
        return None


@pytest.mark.dali
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [call for call in CALLS if call[0] not in NOT_COMPARED],
    ids=lambda value: str(value) or "{}",
)
def test_a_number_is_taken_or_refused_as_in_dali(name, arguments, dtype):
    count = max(1, ALL[name].schema.min_inputs)
    case = Case(name, [[np.array(1, dtype), np.array(0, dtype)]] * count, arguments)
    theirs = outcome(lambda: run_dali(case))
    for reference in (False, True):
        ours = outcome(lambda: case.run(reference=reference))  # noqa: B023 - called at once
        assert (ours is None) == (theirs is None), "taken by one of the two"
        for samples, (arrays, layout) in zip(ours or [], theirs or [], strict=True):
            for sample, array in zip(samples, arrays, strict=True):
                assert sample.layout == layout
                assert sample.array.dtype == array.dtype
                assert sample.shape == array.shape
                if name not in RANDOM:
                    np.testing.assert_array_equal(sample.tensor.numpy(), array)


@pytest.mark.parametrize("name", ["grid_mask", "io.file.read"])
def test_where_dali_gives_rubbish_or_crashes_a_number_is_refused(name):
    with pytest.raises(ValueError, match=r"0 axes|shape \[\]"):
        run_operator(name, [np.uint8(1)], **enough(name))


def test_where_dali_gives_rubbish_or_crashes_and_a_number_makes_sense_it_is_taken():
    (whole,) = run_operator("normalize", [7])
    (noisy,) = run_operator("noise.salt_and_pepper", [np.uint8(7)], prob=1)
    (given,) = run_operator("python_function", [np.uint8(7)], function=lambda x: np.array(x + 1))
    assert whole.array.shape == noisy.array.shape == given.array.shape == ()
    assert whole.array == 0
    assert noisy.array in (0, 255)
    assert given.array == 8


def test_run_operator_takes_plain_numbers_with_the_types_of_constants():
    made = [
        run_operator("copy", [number])[0] for number in (3, 2.5, True, np.int64(3), np.uint8(4))
    ]
    names = ["INT32", "FLOAT", "BOOL", "INT64", "UINT8"]
    assert [sample.dtype.name for sample in made] == names
    assert [sample.tensor.item() for sample in made] == [3, 2.5, True, 3, 4]
