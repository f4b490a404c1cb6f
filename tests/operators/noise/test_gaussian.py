from __future__ import annotations

import numpy as np
import pytest

from draws import check_distribution, check_form, check_frequencies, normal_cumulative
from forebay.testing import run_operator

from oracle import Case

TYPES = (
    np.uint8,
    np.int8,
    np.uint16,
    np.int16,
    np.uint32,
    np.int32,
    np.uint64,
    np.int64,
    np.float32,
)
FORMS = [
    *(Case("noise.gaussian", [[np.ones((3, 4, 3), d), np.ones((1, 2, 3), d)]]) for d in TYPES),
    *(
        Case("noise.gaussian", [[np.zeros(s, np.float32)]], layout=layout)
        for s, layout in (
            ((3, 4), "HW"),
            ((3, 4, 5), "CHW"),
            ((2, 3, 4, 3), "FHWC"),
            ((12,), ""),
            ((), ""),
            ((0, 3), ""),
        )
    ),
]
CERTAIN = [
    Case("noise.gaussian", [[np.full((4, 5, 3), 100, d)]], {"stddev": 0.0, "mean": mean})
    for d in TYPES
    for mean in (0.0, 0.5, -0.5, -30.0)
] + [Case("noise.gaussian", [[np.ones((2, 2, 3), np.uint8)]], {"stddev": 0.0, "mean": 1000.0})]


@pytest.mark.dali
@pytest.mark.parametrize("case", FORMS, ids=str)
def test_shape_type_and_layout_are_dalis(case):
    check_form(case)


@pytest.mark.dali
@pytest.mark.parametrize("case", CERTAIN, ids=str)
def test_without_deviation_the_mean_is_added(case):
    case.check_dali()


def test_the_noise_is_normally_distributed():
    data = np.full((200, 200, 3), 100, np.float32)
    [got] = run_operator("noise.gaussian", [data], mean=-3.0, stddev=5.0)
    check_distribution(got.array, normal_cumulative(97, 5))


def test_integers_are_rounded():
    [got] = run_operator("noise.gaussian", [np.full((300, 300, 1), 50, np.uint8)])
    at = normal_cumulative(50, 1)(np.arange(45.5, 54))
    shares = np.diff(at, prepend=0)
    expected = {46 + i: share for i, share in enumerate(shares[1:])}
    clipped = np.clip(got.array, 45, 54)
    check_frequencies(clipped, {45: shares[0], **expected, 54: 1 - at[-1]})


def test_every_channel_has_its_own_noise():
    [got] = run_operator("noise.gaussian", [np.zeros((100, 100, 3), np.float32)])
    assert np.abs(np.corrcoef(got.array.reshape(-1, 3).T)[0, 1:]).max() < 0.1


def test_large_integers_keep_their_digits():
    data = np.full((4, 4), 2**31 - 100, np.int32)
    [got] = run_operator("noise.gaussian", [data], stddev=0.0, mean=3.0)
    assert (got.array == 2**31 - 97).all()


def test_each_sample_has_its_own_parameters():
    data = [np.zeros((4, 4), np.float32)] * 2
    a, b = run_operator(
        "noise.gaussian", data, per_sample={"mean": [1.0, 2.0], "stddev": [0.0] * 2}
    )
    assert (a.array == 1).all()
    assert (b.array == 2).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.bool_])
def test_a_type_that_is_not_supported_is_refused(dtype):
    with pytest.raises(ValueError, match="an integer type is needed"):
        run_operator("noise.gaussian", [np.zeros((2, 2, 3), dtype)])
