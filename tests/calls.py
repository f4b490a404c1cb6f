"""Calls of every operator: what there is, and what the least is that a call must give."""

from __future__ import annotations

import pytest

from forebay import Pipeline, fn, tfrecord
from forebay.operators._operator import discover

ALL = discover()
NAMES = sorted(name for name, op in ALL.items() if name == op.name and not op.hidden)
CALLED = [name for name in NAMES if name != "external_source"]  # it has a function of its own

OURS: dict[str, str] = {}
"""Operators that DALI lacks, and why they are here. Tests that ask DALI leave them out."""

DALIS = [name for name in NAMES if name not in OURS]

every = pytest.mark.parametrize("name", CALLED)


def function(name, root=fn):
    found = root
    for part in name.split("."):
        found = getattr(found, part)
    return found


def inputs(name, count=None):
    count = ALL[name].schema.min_inputs if count is None else count
    with Pipeline(batch_size=1, num_threads=1, device_id=None):
        return [fn.external_source() for _ in range(count)]


ENOUGH = {
    "constant": {"idata": [1]},
    "squeeze": {"axes": [0]},
    "erase": {"axes": [0], "anchor": [0.0], "shape": [1.0]},
    "gaussian_blur": {"sigma": 1.0},
    "permute_batch": {"indices": [1, 0]},
    "reinterpret": {"shape": [-1]},
    "reshape": {"shape": [-1]},
    "slice": {"axes": [0], "start": [0], "shape": [1]},
    "warp_affine": {"matrix": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]},
    "python_function": {"function": lambda *arrays: arrays[0]},
    "readers.tfrecord": {"path": "a", "features": {"a": tfrecord.VarLenFeature(tfrecord.int64)}},
    "readers.webdataset": {"paths": "a", "ext": "jpg"},
    **{name: {"size": [2]} for name in CALLED if "resize" in name and "random" not in name},
}
VALUES = {"key": "layout", "dtype": 0, "output_type": 1, "image_type": 0}
CALLABLE = [name for name in CALLED if not name.startswith("readers.")]  # they look for files


def enough(name):
    """What a call must give besides the inputs."""
    arguments = ALL[name].schema.arguments.values()
    found = {a.name: VALUES.get(a.name, [1] if a.vector else 1) for a in arguments if a.required}
    return {**found, **ENOUGH.get(name, {})}
