"""The names that users import, and what importing them does not do."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import forebay
from forebay.torch import proxy

NAMES = {
    "forebay": ["pipeline_def", "fn", "ops", "types", "math", "Pipeline", "errors", "__version__"],
    "forebay.fn": ["external_source", "decoders", "io", "random", "reductions", "resize", "flip"],
    "forebay.ops": ["ExternalSource", "decoders", "io", "random", "Resize", "Flip"],
    "forebay.types": ["DALIDataType", "DALIImageType", "Constant", "SampleInfo", "RGB", "FLOAT"],
    "forebay.torch": [
        "Iterator",
        "DALIGenericIterator",
        "DALIClassificationIterator",
        "DALIRaggedIterator",
        "LastBatchPolicy",
    ],
    "forebay.torch.proxy": [
        "Server",
        "DALIServer",
        "DataLoader",
        "Report",
        "DALIOutputBatchRef",
        "DALIOutputSampleRef",
    ],
    "forebay.testing": ["run_operator", "run_pipeline"],
}


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, names in NAMES.items() for n in names])
def test_a_public_name_is_there(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name)


def test_all_lists_what_is_there() -> None:
    for module in (forebay, forebay.types, proxy):
        for name in getattr(module, "__all__", []):
            assert hasattr(module, name)


def test_names_of_dali_are_the_same_classes() -> None:
    assert proxy.DALIServer is proxy.Server
    assert proxy.DALIOutputBatchRef is proxy.BatchRef
    assert proxy.DALIOutputSampleRef is proxy.SampleRef


def test_the_version_is_that_of_the_project_file() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.*)"', text, re.MULTILINE)
    assert found
    assert forebay.__version__ == found[1]


QUIET = """
import multiprocessing, sys, threading
import torch

def touched(*_):
    raise AssertionError("CUDA was touched")

torch.cuda.init = torch.cuda._lazy_init = touched
before = set(threading.enumerate())
import forebay, forebay.torch.proxy, forebay.testing
assert set(threading.enumerate()) == before, threading.enumerate()
assert not multiprocessing.active_children()
assert not torch.cuda.is_initialized()
for name in ("torchvision", "rich", "typer", "nvidia.dali"):
    assert name not in sys.modules, name
"""


def test_importing_starts_no_thread_and_no_process_and_leaves_cuda_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUIET], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(forebay.__file__).parent / "py.typed").is_file()
