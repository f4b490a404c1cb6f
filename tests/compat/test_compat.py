"""Scripts that import nvidia.dali run unchanged."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import pytest

from proxies import BOUND

SCRIPT = """
import sys

import numpy as np
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def
from nvidia.dali.fn.readers import file as read_files
from nvidia.dali.pipeline import Pipeline
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.pytorch import DALIGenericIterator
from nvidia.dali.plugin.pytorch.experimental import proxy as dali_proxy
from torch.utils.data import Dataset


class Numbers(Dataset):
    def __init__(self, proxy):
        self.proxy = proxy

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return self.proxy(np.full(3, index)), index


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def doubled():
    return fn.cast(fn.external_source(name="x") * 2, dtype=types.FLOAT)


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def counted():
    data = fn.external_source(lambda info: np.array([info.idx_in_epoch]), batch=False)
    return data


if __name__ == "__main__":
    assert isinstance(doubled(), Pipeline)
    with dali_proxy.DALIServer(doubled()) as server:
        for method in ("fork", "spawn"):
            loader = dali_proxy.DataLoader(
                server, Numbers(server.proxy), batch_size=4, num_workers=1,
                multiprocessing_context=method,
            )
            print([data[:, 0].tolist() for data, _ in loader])
    iterator = DALIGenericIterator(
        counted(), ["n"], size=6, last_batch_policy=LastBatchPolicy.PARTIAL
    )
    print([batch[0]["n"].flatten().tolist() for batch in iterator])
    print(sys.argv[1:])
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=BOUND, check=False
    )


@pytest.fixture
def write(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def test_a_script_written_for_dali_runs_unchanged(write):
    done = python("-m", "forebay", "run", write(SCRIPT), "--lr", "0.1", "-v")
    assert done.returncode == 0, done.stderr
    halves = [[0.0, 2.0, 4.0, 6.0], [8.0, 10.0, 12.0, 14.0], [16.0, 18.0]]
    lines = [str(halves), str(halves), str([[0, 1, 2, 3], [4, 5]]), "['--lr', '0.1', '-v']"]
    assert done.stdout.splitlines() == lines


ECHO = "import sys\nfrom nvidia.dali import fn\nprint(sys.argv[1:])\n"


@pytest.mark.parametrize(
    "given",
    [["--help"], ["-m", "x"], ["a", "--", "--lr"], ["--", "a"], []],
)
def test_what_stands_after_the_script_is_given_to_it(write, given):
    done = python("-m", "forebay", "run", write(ECHO), *given)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(given)]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The working folder has a package with a module, whose numbers are in another module."""
    folder = tmp_path / "trainer"
    folder.mkdir()
    (folder / "__init__.py").write_text("from nvidia.dali import fn\n")
    (folder / "__main__.py").write_text("from . import __name__ as name\nprint('main of', name)\n")
    (folder / "numbers.py").write_text("NUMBERS = list(range(6))\n")
    (folder / "train.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.chdir(tmp_path)
    return folder


MODULE = """
import multiprocessing
import sys

from nvidia.dali import types

from .numbers import NUMBERS


def half(values):
    from .numbers import NUMBERS

    assert values == NUMBERS[:3]
    print(types.FLOAT.name, len(values), flush=True)


if __name__ == "__main__":
    print(__file__ == sys.argv[0], sys.argv[1:], flush=True)
    for method in ("fork", "spawn"):
        process = multiprocessing.get_context(method).Process(target=half, args=(NUMBERS[:3],))
        process.start()
        process.join()
        assert process.exitcode == 0
"""


def test_a_module_is_run_as_python_would_and_in_spawned_processes_too(package):
    done = python(
        "-W", "error:__package__", "-m", "forebay", "run", "-m", "trainer.train", "--help", "-m"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True ['--help', '-m']", "FLOAT 3", "FLOAT 3"]


def test_of_a_package_its_main_module_is_run(package):
    assert python("-m", "forebay", "run", "-m", "trainer").stdout == "main of trainer\n"


def test_an_error_of_a_module_shows_the_module_alone(package):
    (package / "train.py").write_text("1 / 0\n")
    done = python("-m", "forebay", "run", "-m", "trainer.train")
    assert done.returncode == 1
    assert done.stderr.count('File "') == done.stderr.count(f'File "{package / "train.py"}"') == 1


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["no_such.py"], "no file 'no_such.py'"),
        (["-m", "no_such"], "cannot run the module no_such: no module no_such"),
        (["-m", "no_such.thing"], "cannot run the module no_such.thing: No module named 'no_such'"),
        (["-m", "sys"], "no module sys that is a file of Python"),
        ([], "Missing argument"),
    ],
)
def test_what_cannot_be_run_is_named(package, given, text):
    done = python("-m", "forebay", "run", *given)
    assert done.returncode in (1, 2)
    assert text in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.stderr).split())
    assert "Traceback" not in done.stderr


def test_install_does_the_same_from_within(write):
    text = """
    import forebay.compat
    forebay.compat.install()
    forebay.compat.install()
    from nvidia.dali import Pipeline, fn, math, ops, tfrecord, types
    import nvidia.dali
    import forebay
    assert Pipeline is forebay.Pipeline
    assert fn.resize is forebay.fn.resize
    assert ops.Resize is forebay.ops.Resize
    assert math.sqrt is forebay.math.sqrt
    assert types.FLOAT is forebay.types.FLOAT
    assert nvidia.dali.fn.readers.file is forebay.fn.readers.file
    from nvidia.dali.types import *
    assert UINT8 is forebay.types.UINT8
    """
    done = python(write(text))
    assert done.returncode == 0, done.stderr


def test_an_error_shows_the_script_alone_and_its_exit_code(write):
    path = write("def f():\n    raise ValueError('mine')\nf()\n")
    done = python("-m", "forebay", "run", path)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert done.stderr.rstrip().endswith("ValueError: mine")
    assert done.stderr.count('File "') == done.stderr.count(f'File "{path}"') == 2


def test_the_scripts_own_exit_code_is_kept(write):
    assert python("-m", "forebay", "run", write("import sys; sys.exit(7)")).returncode == 7


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("import nvidia.dali.plugin.tf", "nvidia.dali.plugin.tf"),
        ("from nvidia.dali import sysconfig", "nvidia.dali.sysconfig"),
        ("from nvidia.dali.types import Nothing", "nvidia.dali.types.Nothing"),
    ],
)
def test_what_forebay_lacks_is_an_import_error_that_names_it(write, line, name):
    done = python("-m", "forebay", "run", write(line))
    assert f"ImportError: forebay has no '{name}'. `forebay operators`" in done.stderr


def test_a_lacking_operator_is_named(write):
    done = python("-m", "forebay", "run", write("from nvidia.dali import fn\nfn.no_such_thing()"))
    assert "no_such_thing" in done.stderr.splitlines()[-1]


def test_dali_that_was_imported_first_is_left_alone(write):
    pytest.importorskip("nvidia.dali", reason="DALI is not installed on this platform")
    done = python(write("import nvidia.dali\nimport forebay.compat\nforebay.compat.install()"))
    assert "ImportError: nvidia.dali was imported from" in done.stderr


def test_operators_are_listed_with_devices_and_those_that_are_missing():
    done = python("-m", "forebay", "operators")
    listed = [line for line in done.stdout.splitlines() if "  " in line]
    assert all(re.match(r"fn\.\S+  cpu( \(in DALI also (gpu|mixed)\))?($|  )", x) for x in listed)
    assert "fn.resize  cpu (in DALI also gpu)" in done.stdout.splitlines()
    assert "fn.io.file.read  cpu" in done.stdout.splitlines()
    known, _, missing = done.stdout.partition("In DALI 2.4.0")
    assert not {line.split()[0] for line in known.splitlines() if line} & set(missing.splitlines())
