from __future__ import annotations

import numpy as np
import pytest

from forebay.batch import Sample
from forebay.testing import run_operator

from oracle import Case

data = [np.arange(n, dtype=np.uint8) for n in (1, 2, 3)]
CASES = [
    Case("permute_batch", [data], {"indices": [2, 0, 1]}, layout="W"),
    Case("permute_batch", [data], {"indices": [2, 2, 0]}),
    Case("permute_batch", [data], per_sample={"indices": [1, 2, 0]}),
    Case("permute_batch", [data[:1]], {"indices": 0}),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


def test_samples_keep_their_source():
    samples = [Sample(array, source=str(i)) for i, array in enumerate(data)]
    got = run_operator("permute_batch", samples, indices=[2, 0, 1])
    assert [sample.source for sample in got] == ["2", "0", "1"]


@pytest.mark.parametrize("indices", [[1, 0], [0, 1, 2, 2], [0]])
def test_there_is_one_index_per_sample(indices):
    with pytest.raises(ValueError, match="one for each of the 3 samples"):
        run_operator("permute_batch", data, indices=indices)


@pytest.mark.parametrize("indices", [[3, 0, 1], [-1, 0, 1]])
def test_an_index_that_is_no_sample_is_refused(indices):
    with pytest.raises(IndexError, match="batch of 3 samples"):
        run_operator("permute_batch", data, indices=indices)
