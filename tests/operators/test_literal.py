from __future__ import annotations

import numpy as np
import pytest

from forebay.testing import run_operator

from oracle import EXACT

VALUES = [
    np.array(3, np.int32),
    np.array([1.5, 2.5], np.float32),
    np.array([True, False]),
    np.arange(6, dtype=np.uint16).reshape(2, 3)[:, ::-1],
    np.zeros((0, 3), np.float16),
]


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("value", VALUES, ids=str)
def test_every_sample_is_a_copy_of_the_value(value, reference):
    layout = "XYZ"[: value.ndim]
    got = run_operator(
        "literal", given={"value": value, "layout": layout}, batch_size=2, reference=reference
    )
    for sample in got:
        EXACT.check(sample.tensor.numpy(), value, "literal")
        assert sample.layout == layout
        assert not np.shares_memory(sample.array, value)


def test_a_literal_is_hidden_from_fn():
    from forebay.operators.literal import literal

    assert literal.hidden
