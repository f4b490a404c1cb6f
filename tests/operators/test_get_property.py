from __future__ import annotations

import numpy as np
import pytest

from forebay.batch import Sample
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case

data = [np.zeros((2, 3), np.uint8)]
CASES = [
    Case("get_property", [data], {"key": "layout"}, layout="HW"),
    Case("get_property", [data], {"key": "layout"}),
    Case("get_property", [data], {"key": "source_info"}, layout="HW"),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.dali
def test_the_source_agrees_with_dali(tmp_path):
    from nvidia.dali import Pipeline, fn

    path = tmp_path / "ä.bin"
    path.write_bytes(b"abc")
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        read, _ = fn.readers.file(files=[str(path)])
        pipe.set_outputs(fn.get_property(read, key="source_info"))
    (expected,) = pipe.run()
    sample = Sample(data[0], source=str(path))
    (got,) = run_operator("get_property", [sample], key="source_info")
    assert got.array.tobytes() == np.array(expected.at(0)).tobytes()


def test_unknown_properties_are_refused():
    with pytest.raises(ArgumentError, match="'source_info', 'layout'"):
        run_operator("get_property", data, key="size")


def test_a_key_is_needed():
    with pytest.raises(ArgumentError, match="needs the argument 'key'"):
        run_operator("get_property", data)
