from __future__ import annotations

import numpy as np
import pytest

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import EXACT

ALL = slice(None)


def write(index):
    """What a node's `index` writes: the pattern, and the bounds as arrays."""
    pattern, bounds = [], []
    for item in index if isinstance(index, tuple) else (index,):
        if item is Ellipsis:
            pattern.append("...")
        elif item is None:
            pattern.append("newaxis")
        elif isinstance(item, slice):
            given = {n: getattr(item, n) for n in ("start", "stop", "step")}
            pattern.append(":".join("" if v is None else n for n, v in given.items()))
            bounds += [v for v in given.values() if v is not None]
        else:
            pattern.append("index")
            bounds.append(item)
    return pattern, [np.asarray(b, np.int32) if isinstance(b, int) else b for b in bounds]


def ours(array, index, layout="", *, reference=False):
    pattern, bounds = write(index)
    columns = [[Sample(array, layout, "a.jpg")], *([b] for b in bounds)]
    (result,) = run_operator("subscript", *columns, pattern=pattern, reference=reference)
    assert result.source == "a.jpg"
    return result


def cube(dtype=np.int32):
    return np.arange(24).reshape(2, 3, 4).astype(dtype)


DALI_INDICES = [
    0,
    (1, 2, 3),
    (-1, -1, -1),
    (0, ALL, slice(1, 2)),
    (ALL, 1),
    (ALL, ALL, -2),
    slice(1, 2),
    (ALL, ALL, slice(None, None, -1)),
    (slice(None, None, -1), slice(None, None, -2), slice(None, None, 3)),
    (ALL, slice(2, 2)),
    (ALL, ALL, slice(100, None, -2)),
    (ALL, ALL, slice(-100, 2)),
    (ALL, ALL, slice(None, -100, -1)),
    (ALL, ALL, slice(-100, None, -1)),
    (ALL, ALL, slice(3, 1)),
    (ALL, ALL, slice(10, 12)),
    (ALL, ALL, slice(-3, -1)),
    (ALL, ALL, slice(1, 4, 100)),
    (ALL, ALL, slice(3, 0, -2)),
]
NUMPY_INDICES = [
    *DALI_INDICES,
    Ellipsis,
    (Ellipsis, 0),
    (0, Ellipsis),
    (0, Ellipsis, slice(1, 3)),
    (1, 2, 3, Ellipsis),
    (1, Ellipsis, 2, 3),
    (Ellipsis, slice(None, None, -1), ALL),
    None,
    (ALL, None),
    (Ellipsis, None),
    (None, 0, None, Ellipsis, slice(None, None, -1), None),
    (1, 2, 3, None),
]


@pytest.mark.dali
def test_indices_agree_with_dali():
    from nvidia.dali import Pipeline, fn

    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        node = fn.external_source(lambda: [cube()], layout="HWC")
        pipe.set_outputs(*(node[index] for index in DALI_INDICES))
    for index, expected in zip(DALI_INDICES, pipe.run(), strict=True):
        for reference in (False, True):
            got = ours(cube(), index, "HWC", reference=reference)
            assert got.layout == expected.layout(), index
            EXACT.check(got.tensor.numpy(), np.array(expected.at(0)), str(index))


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("index", NUMPY_INDICES, ids=str)
def test_indices_agree_with_numpy(index, reference):
    for dtype in (np.uint8, np.uint16, np.float16, np.bool_):
        got = ours(cube(dtype), index, reference=reference).tensor.numpy()
        EXACT.check(got, np.asarray(cube(dtype)[index]), str(index))


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    ("index", "layout"),
    [
        (Ellipsis, "HWC"),
        ((Ellipsis, 0), "HW"),
        ((0, Ellipsis), "WC"),
        ((0, Ellipsis, slice(1, 2)), "WC"),
        ((ALL, None), ""),
        ((Ellipsis, None, 0), "HWC"),
        ((None, 0, 0), ""),
    ],
    ids=str,
)
def test_an_index_takes_its_letter_out_of_the_layout(index, layout, reference):
    assert ours(cube(), index, "HWC", reference=reference).layout == layout


@pytest.mark.parametrize("reference", [False, True])
def test_every_sample_has_its_own_bounds(reference):
    line = np.arange(7)
    ints = [[np.array(v, np.int64) for v in column] for column in ((5, -5), (0, 9), (-2, 3))]
    got = run_operator(
        "subscript", [line, line], *ints, pattern=["start:stop:step"], reference=reference
    )
    assert [sample.tensor.tolist() for sample in got] == [[5, 3, 1], [2, 5]]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int64"])
def test_bounds_are_integers_of_any_type(dtype):
    assert ours(np.arange(5), np.array(3, dtype)).tensor.item() == 3


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    "bound", [np.array([1], np.int32), np.array(1.0), np.ones((), bool), np.ones((), np.float16)]
)
def test_bounds_that_are_no_integer_scalars_are_refused(bound, reference):
    with pytest.raises(TypeError, match="must be an integer scalar"):
        ours(np.arange(5), bound, reference=reference)
    with pytest.raises(TypeError, match="stop must be an integer scalar"):
        ours(np.arange(5), slice(None, bound), reference=reference)


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("index", [(ALL, 3), (ALL, -4)])
def test_an_index_out_of_range_is_refused_with_the_sizes(index, reference):
    with pytest.raises(IndexError, match=r"axis 1 of extent 3 \(shape \[2, 3, 4\]\)"):
        ours(cube(), index, reference=reference)


@pytest.mark.parametrize("reference", [False, True])
def test_an_index_into_nothing_is_refused(reference):
    with pytest.raises(IndexError, match="extent 0"):
        ours(np.zeros((0, 3)), 0, reference=reference)


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("index", [(0, 0, 0, 0), (ALL, ALL, ALL, ALL), (0, 0, Ellipsis, 0, 0)])
def test_more_subscripts_than_axes_are_refused(index, reference):
    with pytest.raises(IndexError, match="4 subscripts are too many"):
        ours(cube(), index, reference=reference)


@pytest.mark.parametrize("reference", [False, True])
def test_a_step_of_zero_is_refused(reference):
    with pytest.raises(ValueError, match="axis 0 is 0"):
        ours(cube(), slice(None, None, 0), reference=reference)


def test_two_ellipses_are_refused_when_the_graph_is_written():
    with pytest.raises(ArgumentError, match="single ellipsis"):
        ours(cube(), (Ellipsis, Ellipsis))


@pytest.mark.parametrize("entry", ["range", "start:stop", "stop:start:", ":::", ""])
def test_a_pattern_that_cannot_be_read_is_refused(entry):
    with pytest.raises(ArgumentError, match="an entry of 'pattern'"):
        run_operator("subscript", [cube()], pattern=[entry])
