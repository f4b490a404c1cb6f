"""Whose exception it was reaches the loop, in its batch's turn, whatever its class can do."""

from __future__ import annotations

import gc
import inspect
import multiprocessing
import re
import threading
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import IterableDataset, default_collate, get_worker_info

from forebay import fn, pipeline_def
from forebay.errors import OperatorError, SourceError
from forebay.torch import proxy
from forebay.torch.proxy import Server
from proxies import Numbers, check, failure, row, twice

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

BAD = 9
"""Index 9 of 23 is in the third batch of four."""

GOOD = [[0, 1, 2, 3], [4, 5, 6, 7], None, [12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22]]


class SeveralError(Exception):
    """Has to be made of two arguments."""

    def __init__(self, code: int, name: str) -> None:
        super().__init__(f"code {code} of {name}")


class UnpicklableError(Exception):
    """Holds what no other process can have."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


class KeywordError(Exception):
    """Has a message, but cannot be made of one."""

    message = "not this one"

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")


class DeafError(Exception):
    """Says always the same, whatever it is made of."""

    def __str__(self) -> str:
        return "always the same"


def local() -> Exception:
    class LocalError(Exception):
        """Its class cannot be found by another process."""

    return LocalError("mine alone")


KINDS: dict[str, Any] = {
    "ValueError: plain": lambda: ValueError("plain"),
    "KeyError: 'a key'": lambda: KeyError("a key"),
    "SeveralError: code 3 of x": lambda: SeveralError(3, "x"),
    "UnicodeDecodeError: 'utf8' codec": lambda: UnicodeDecodeError("utf8", b"\xff", 0, 1, "why"),
    "UnpicklableError: held": lambda: UnpicklableError("held"),
    "KeywordError: code 4": lambda: KeywordError(4),
    "DeafError: always the same": lambda: DeafError("other"),
    "LocalError: mine alone": local,
}


def fail(kind: str) -> None:
    raise KINDS[kind]()


HERE = Path(__file__).name
LINE = inspect.getsourcelines(fail)[1] + 1


def fails_at(kind: str, index: int) -> None:
    if index == BAD:
        fail(kind)


class Failing(Numbers):
    def __init__(self, proxy: Any, kind: str) -> None:
        super().__init__(proxy)
        self.kind = kind

    def __getitem__(self, index: int) -> Any:
        sample = super().__getitem__(index)
        fails_at(self.kind, index)
        return sample


class FailingBatches(Failing):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


class Items:
    """An iterator that goes on after an error, which a generator does not."""

    def __init__(self, proxy: Any, kind: str, indices: Any) -> None:
        self.proxy = proxy
        self.kind = kind
        self.indices = iter(indices)

    def __next__(self) -> Any:
        index = next(self.indices)
        fails_at(self.kind, index)
        return self.proxy(row(index)), index


class FailingStream(IterableDataset):
    def __init__(self, proxy: Any, kind: str) -> None:
        self.made_of = proxy, kind

    def __iter__(self) -> Any:
        worker = get_worker_info()
        # Each worker has every second batch of four, as with a dataset of indices.
        mine = [i for i in range(23) if worker is None or i // 4 % worker.num_workers == worker.id]
        return Items(*self.made_of, mine)


class Collate:
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, samples: Any) -> Any:
        for _, index in samples:
            fails_at(self.kind, index)
        return default_collate(samples)


def calling(kind: str) -> Any:
    def function(x):
        fails_at(kind, int(x[0]))
        return x * 2 + 1

    @pipeline_def(batch_size=4, num_threads=2)
    def pipe():
        return fn.python_function(fn.external_source(name="x"), function=function)

    return pipe()


def source_of(kind: str) -> Any:
    """A pipeline with a callback that fails for the third batch."""

    def callback(info):
        fails_at(kind, BAD if (info.iteration, info.idx_in_batch) == (2, 1) else 0)
        return np.ones(3, np.int32)

    @pipeline_def(batch_size=4, num_threads=2)
    def pipe():
        one = fn.external_source(source=callback, batch=False, name="one")
        return fn.external_source(name="x") * 2 + one

    return pipe()


class Told:
    """What a loop sees of an error; the error itself would hold on to the loader's frames."""

    def __init__(self, error: BaseException) -> None:
        self.kind = type(error)
        self.cause = type(error.__cause__)
        self.text = str(error)
        self.printed = "".join(traceback.format_exception(error))
        self.operator = getattr(error, "operator", None)
        self.source = getattr(error, "source", None)


def epoch(server: Server, dataset: Any, workers: int, **options: Any) -> tuple[list[Any], Told]:
    """The labels of each batch, None for one that failed, and its error."""
    if workers:
        options["timeout"] = 30
    loader = proxy.DataLoader(server, dataset, batch_size=4, num_workers=workers, **options)
    batches = iter(loader)
    seen: list[Any] = []
    errors = []
    while len(seen) < len(GOOD):
        try:
            seen.append(check(next(batches)))
        except StopIteration:
            break
        except Exception as error:
            seen.append(None)
            errors.append(Told(error))
    assert len(errors) == 1
    return seen, errors[0]


def assert_told(error: Told, kind: str) -> None:
    assert kind in error.printed
    assert f'{HERE}", line {LINE}, in fail' in error.printed


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dataset", [Failing, FailingBatches])
def test_an_exception_of_the_dataset_is_told_with_its_line_and_index(dataset, kind, workers):
    with Server(twice()) as server:
        seen, error = epoch(server, dataset(server.proxy, kind), workers)
    assert seen == GOOD
    assert_told(error, kind)
    index = "index 9" if dataset is Failing else "indices [8, 9, 10, 11]"
    assert f"\ndataset {index}\n" in error.printed


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_of_a_stream_is_told_with_its_line(kind, workers):
    with Server(twice()) as server:
        seen, error = epoch(server, FailingStream(server.proxy, kind), workers)
    # The samples that were loaded with the bad one are gone, and the rest moves up.
    rest = [[10, 11, 12, 13], [14, 15, 16, 17], [18, 19, 20, 21]]
    if workers < 2:
        assert seen == [*GOOD[:3], *rest]
    else:
        assert seen == [*GOOD[:3], GOOD[3], [10, 11, 16, 17], GOOD[5]]
    assert_told(error, kind)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_of_the_collate_function_is_told_with_its_line(kind, workers):
    with Server(twice()) as server:
        seen, error = epoch(server, Numbers(server.proxy), workers, collate_fn=Collate(kind))
    assert seen == GOOD
    assert_told(error, kind)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_of_a_python_operator_names_operator_line_and_index(kind, workers):
    with Server(calling(kind)) as server:
        seen, error = epoch(server, Numbers(server.proxy), workers)
    assert seen == GOOD
    assert_told(error, kind)
    assert issubclass(error.kind, OperatorError)
    assert (error.operator, error.source) == ("python_function", "dataset index 9")
    assert re.search(rf"defined at \S*{HERE}:\d+: {re.escape(kind)}", error.text)
    assert error.cause is type(KINDS[kind]()) or kind.startswith("LocalError")


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_of_a_source_callback_names_the_source_and_its_line(kind, workers):
    with Server(source_of(kind), deterministic=True) as server:
        seen, error = epoch(server, Numbers(server.proxy, 24), workers)
    assert seen == [*GOOD[:5], [20, 21, 22, 23]]
    assert_told(error, kind)
    assert issubclass(error.kind, SourceError)
    assert re.search(rf"external_source 'one' defined at \S*{HERE}:\d+: ", error.text)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_an_operators_exception_names_operator_line_and_index(workers):
    @pipeline_def(batch_size=4, num_threads=2)
    def pipe():
        return fn.reshape(fn.external_source(name="x"), shape=[3]) * 2 + 1

    class Short(Numbers):
        def __getitem__(self, index: int) -> Any:
            return self.proxy(row(index)[: 2 if index == BAD else 3]), index

    with Server(pipe()) as server:
        seen, error = epoch(server, Short(server.proxy), workers)
    assert seen == GOOD
    assert (error.operator, error.source) == ("reshape", "dataset index 9")
    assert re.search(rf"defined at \S*{HERE}:\d+: ValueError: ", error.text)


class Paths(Numbers):
    """Files with three bytes i each; one is missing."""

    def __init__(self, proxy: Any, folder: Path) -> None:
        super().__init__(proxy)
        self.folder = folder

    def __getitem__(self, index: int) -> Any:
        return self.proxy(self.folder / str(index)), index


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_an_exception_of_a_files_operator_names_the_path(workers, tmp_path):
    for index in range(23):
        if index != BAD:
            (tmp_path / str(index)).write_bytes(bytes([index] * 3))

    @pipeline_def(batch_size=4, num_threads=2)
    def pipe():
        return fn.io.file.read(fn.external_source(name="x")) * 2 + 1

    with Server(pipe()) as server:
        seen, error = epoch(server, Paths(server.proxy, tmp_path), workers)
    assert seen == GOOD
    assert error.operator == "io.file.read"
    assert str(tmp_path / str(BAD)) in error.text
    assert "FileNotFoundError" in error.printed


def refuse(kind: str) -> Any:
    return lambda worker: fail(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_of_worker_init_fn_is_told(kind):
    with Server(twice()) as server:
        options = {"worker_init_fn": refuse(kind), "num_workers": 1, "timeout": 30}
        loader = proxy.DataLoader(server, Numbers(server.proxy), 4, **options)
        assert_told(Told(failure(lambda: next(iter(loader)))), kind)


@pytest.mark.parametrize("place", ["dataset", "operator"])
def test_an_error_that_was_handled_keeps_no_workers_alive(place):
    kind = "ValueError: plain"
    with Server(calling(kind) if place == "operator" else twice()) as server:
        numbers = Numbers(server.proxy) if place == "operator" else Failing(server.proxy, kind)
        gc.collect()
        gc.disable()  # found by the collector, torch's iterator waits seconds for its workers
        try:
            batches = iter(proxy.DataLoader(server, numbers, 4, num_workers=2, timeout=30))
            for good in GOOD[:4]:
                try:
                    assert check(next(batches)) == good
                except (OperatorError, ValueError):
                    assert good is None
            assert len(multiprocessing.active_children()) == 2
            del batches
            assert not multiprocessing.active_children()
        finally:
            gc.enable()
