from __future__ import annotations

import pytest

from forebay import tfrecord
from forebay.errors import ArgumentError


@pytest.mark.dali
def test_the_types_have_dalis_numbers():
    from nvidia.dali import tfrecord as dali

    for name in ("int64", "float32", "string"):
        assert getattr(tfrecord, name) == getattr(dali, name)


def test_a_feature_says_what_it_is():
    feature = tfrecord.FixedLenFeature(shape=[2, 3], dtype=tfrecord.float32, default_value=1)
    assert (feature.fixed, feature.shape, feature.default) == (True, (2, 3), 1)
    assert tfrecord.FixedLenFeature((), tfrecord.string, "ü").default == "ü".encode()
    assert tfrecord.FixedLenFeature((), tfrecord.int64).default is None
    varying = tfrecord.VarLenFeature([4], tfrecord.int64, 0)
    assert (varying.fixed, varying.shape, varying.dtype) == (False, (4,), tfrecord.int64)
    assert tfrecord.VarLenFeature(tfrecord.int64).shape == ()
    assert tfrecord.VarLenFeature([], tfrecord.int64, 0).shape == ()


@pytest.mark.parametrize(
    ("shape", "dtype", "default", "text"),
    [
        (1, tfrecord.int64, 0, "a feature's shape is a list of numbers"),
        ([1.5], tfrecord.int64, 0, "a feature's shape is a list of numbers"),
        ([-1], tfrecord.int64, 0, "of at least 0"),
        ([1], "int64", 0, "dtype is tfrecord.int64, float32 or string"),
        ([1], 7, 0, "dtype is tfrecord.int64, float32 or string"),
        ([1], tfrecord.int64, 1.5, "of type int64 must be of that type, but got 1.5"),
        ([1], tfrecord.int64, "a", "of type int64 must be of that type"),
        ([1], tfrecord.float32, "a", "of type float32 must be of that type"),
        ([1], tfrecord.string, 3, "of type string must be of that type"),
        ([2], tfrecord.string, "", r"its shape is \(\), but got \[2\]"),
    ],
)
def test_fixed_features_that_cannot_be_are_refused(shape, dtype, default, text):
    with pytest.raises(ArgumentError, match=text):
        tfrecord.FixedLenFeature(shape, dtype, default)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "takes an optional partial shape"),
        (([1],), "takes an optional partial shape"),
        ((tfrecord.int64, 0, [1]), "takes an optional partial shape"),
        (([-1], tfrecord.int64, 0), "of at least 1"),
        (([0], tfrecord.int64, 0), "of at least 1"),
        ((tfrecord.string, ""), "a string is one value"),
        ((7, 0), "dtype is tfrecord.int64"),
        ((tfrecord.int64, 0.5), "must be of that type"),
    ],
)
def test_varying_features_that_cannot_be_are_refused(arguments, text):
    with pytest.raises(ArgumentError, match=text):
        tfrecord.VarLenFeature(*arguments)
