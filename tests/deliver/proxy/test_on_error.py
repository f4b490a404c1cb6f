"""A sample that fails: its batch goes on without it, and the server tells of it."""

from __future__ import annotations

import warnings
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, default_collate

from forebay import fn, pipeline_def
from forebay.errors import ArgumentError, OperatorError, ProxyError, TooManyErrors
from forebay.torch import proxy
from proxies import as_list, failure

SIZE = 20
DAMAGED = 6  # its file is no picture
MISSING = 13  # its file is not there
UNLOADABLE = 9  # the Dataset raises, where it is told to
LOST = {DAMAGED, MISSING}

pytestmark = pytest.mark.filterwarnings("ignore:.*samples failed and were:UserWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Picture i is of grey level i."""
    path = tmp_path_factory.mktemp("pictures")
    for index in range(SIZE):
        cv2.imwrite(str(path / f"{index}.png"), np.full((4, 5, 3), index, np.uint8))
    (path / f"{DAMAGED}.png").write_bytes(b"no picture")
    (path / f"{MISSING}.png").unlink()
    return path


@pipeline_def(batch_size=8, num_threads=2)
def decode(copies=1):
    images = fn.decoders.image(fn.io.file.read(fn.external_source(name="path")))
    return (images,) * copies if copies > 1 else images


class Pictures(Dataset):
    """Sample i is picture i, and i in several forms."""

    def __init__(self, server: proxy.Server, folder: Path, failing: tuple[int, ...] = ()) -> None:
        self.proxy = server.proxy
        self.folder = folder
        self.failing = failing

    def __len__(self) -> int:
        return SIZE

    def picture(self, index: int) -> Any:
        return self.proxy(self.folder / f"{index}.png")

    def __getitem__(self, index: int) -> Any:
        picture = self.picture(index)
        if index in self.failing:
            raise FileNotFoundError(2, "it is not there", f"label{index}.txt")
        return picture, index, {"name": str(index), "box": np.full((2, 2), index)}


class ByTheDozen(Pictures):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


def rows(batch: Any) -> list[int]:
    """The labels of a batch of Pictures, in whose every part they must be the same."""
    pictures, labels, more = batch
    assert (pictures == labels[:, None, None, None]).all()
    assert list(more["name"]) == [str(label) for label in labels.tolist()]
    assert (more["box"] == labels[:, None, None]).all()
    return labels.tolist()


def batches(server: proxy.Server, dataset: Any, **options: Any) -> list[list[int]]:
    loader = proxy.DataLoader(server, dataset, **{"batch_size": 8, **options})
    return [rows(batch) for batch in loader]


# ── what becomes of the batch ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [Pictures, ByTheDozen])
@pytest.mark.parametrize("workers", [0, 2])
def test_skipping_takes_the_whole_sample_out_of_its_batch(folder, workers, kind):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = kind(server, folder, failing=(UNLOADABLE,))
        got = batches(server, dataset, num_workers=workers)
        again = batches(server, dataset, num_workers=workers)
    lost = {*LOST, UNLOADABLE}
    expected = [[i for i in range(b, min(b + 8, SIZE)) if i not in lost] for b in (0, 8, 16)]
    assert got == again == expected
    assert sorted(bad.index for bad in server.errors) == sorted([*lost, *lost])


@pytest.mark.parametrize("kind", [Pictures, ByTheDozen])
@pytest.mark.parametrize("workers", [0, 2])
def test_substituting_puts_the_next_good_sample_of_the_batch_in_the_place(folder, workers, kind):
    with proxy.Server(decode(), on_error="substitute") as server:
        dataset = kind(server, folder, failing=(UNLOADABLE, 15))
        got = batches(server, dataset, num_workers=workers)
    assert got == [
        [0, 1, 2, 3, 4, 5, 7, 7],
        [8, 10, 10, 11, 12, 14, 14, 8],
        [16, 17, 18, 19],
    ]


def test_spawned_workers_skip_too(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = Pictures(server, folder, failing=(UNLOADABLE,))
        got = batches(server, dataset, num_workers=1, multiprocessing_context="spawn")
    assert [len(labels) for labels in got] == [7, 6, 4]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("on_error", ["skip", "substitute"])
def test_a_batch_of_which_nothing_is_left_is_passed_over(folder, workers, on_error):
    with proxy.Server(decode(), on_error=on_error) as server:
        dataset = Pictures(server, folder, failing=(8, 9, 10, 11))
        subset = torch.utils.data.Subset(dataset, [DAMAGED, MISSING, 1, 2, 8, 9, 3, 10, MISSING])
        got = batches(server, subset, batch_size=2, num_workers=workers)
    assert got == [[1, 2], [3] if on_error == "skip" else [3, 3]]


@pytest.mark.parametrize("workers", [0, 1])
def test_without_batches_the_sample_is_passed_over(folder, workers):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = Pictures(server, folder, failing=(UNLOADABLE,))
        loader = proxy.DataLoader(server, dataset, batch_size=None, num_workers=workers)
        got = [(int(picture.unique()), label) for picture, label, _ in loader]
    assert got == [(i, i) for i in range(SIZE) if i not in (*LOST, UNLOADABLE)]


def test_the_error_is_raised_where_nothing_else_was_asked_for(folder):
    with proxy.Server(decode()) as server:
        error = failure(lambda: batches(server, Pictures(server, folder)))
    assert isinstance(error, OperatorError)
    assert server.errors == ()


@pytest.mark.parametrize("workers", [0, 1])
def test_plain_loaders_skip_what_the_pipeline_cannot_process(folder, workers):
    with proxy.Server(decode(), on_error="skip") as server:
        loader = torch.utils.data.DataLoader(
            Pictures(server, folder), batch_size=8, num_workers=workers
        )
        got = [rows(server.produce_data(batch)) for batch in loader]
    assert got == [[0, 1, 2, 3, 4, 5, 7], [8, 9, 10, 11, 12, 14, 15], [16, 17, 18, 19]]


def test_without_the_proxys_loader_a_batch_with_nothing_left_raises_its_error(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        batch = default_collate([Pictures(server, folder)[DAMAGED]])
        with pytest.raises(OperatorError, match="decoders"):
            server.produce_data(batch)


def test_a_reference_alone_is_not_shortened(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = Pictures(server, folder)
        pictures, *_ = default_collate([dataset[i] for i in (DAMAGED, 1)])
        with pytest.raises(OperatorError) as caught:
            server.produce_data(pictures)
        assert "whole batch" in caught.value.__notes__[0]
        assert server.produce_data([pictures])[0].unique().tolist() == [1]


# ── every form of a batch ────────────────────────────────────────────────────────────────────────


@dataclass
class Target:
    labels: Any
    names: Any


Pair = namedtuple("Pair", "picture label")


def as_columns(samples: list[Any]) -> Any:
    return tuple(zip(*samples, strict=True))


def as_objects(samples: list[Any]) -> Any:
    pictures, labels, more = default_collate(samples)
    return {"x": [pictures], "y": Target(labels, more["name"]), "epoch": 3, "set": "train"}


def as_pair(samples: list[Any]) -> Any:
    pictures, labels, _ = default_collate(samples)
    return Pair(pictures / 2, labels.numpy())


def test_samples_kept_in_a_list_are_skipped(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = Pictures(server, folder)
        loader = proxy.DataLoader(server, dataset, batch_size=8, collate_fn=as_list, num_workers=1)
        got = [[(int(p.unique()), i, m["name"]) for p, i, m in batch] for batch in loader]
    assert [len(batch) for batch in got] == [7, 7, 4]
    assert all(p == i == int(name) for batch in got for p, i, name in batch)


def test_samples_kept_in_columns_are_skipped(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = Pictures(server, folder)
        loader = proxy.DataLoader(
            server, dataset, batch_size=8, collate_fn=as_columns, num_workers=1
        )
        got = list(loader)
    assert [[len(column) for column in batch] for batch in got] == [[7] * 3, [7] * 3, [4] * 3]
    for pictures, labels, more in got:
        assert [int(p.unique()) for p in pictures] == list(labels)
        assert [int(m["name"]) for m in more] == list(labels)


def test_objects_and_what_belongs_to_no_sample_are_understood(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = Pictures(server, folder)
        loader = proxy.DataLoader(
            server, dataset, batch_size=8, collate_fn=as_objects, num_workers=1
        )
        first = next(iter(loader))
    assert first["epoch"] == 3
    assert first["set"] == "train"
    assert isinstance(first["y"], Target)
    assert first["y"].labels.tolist() == [0, 1, 2, 3, 4, 5, 7]
    assert list(first["y"].names) == ["0", "1", "2", "3", "4", "5", "7"]
    assert first["x"][0].amax((1, 2, 3)).tolist() == [0, 1, 2, 3, 4, 5, 7]


def test_operations_on_references_see_only_the_good_rows(folder):
    with proxy.Server(decode(), on_error="substitute") as server:
        dataset = Pictures(server, folder)
        loader = proxy.DataLoader(server, dataset, batch_size=8, collate_fn=as_pair, num_workers=1)
        first = next(iter(loader))
    assert isinstance(first, Pair)
    assert first.label.tolist() == [0, 1, 2, 3, 4, 5, 7, 7]
    assert (first.picture.amax((1, 2, 3)) * 2).tolist() == first.label.tolist()


class Halved(Pictures):
    def __getitem__(self, index: int) -> Any:
        picture, *_ = super().__getitem__(index)
        return picture.float().map(half) if index % 2 else picture.float() / 2, index


def half(tensor: torch.Tensor) -> torch.Tensor:
    return tensor / 2


def test_recorded_operations_that_differ_from_row_to_row_keep_their_rows(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        loader = proxy.DataLoader(server, Halved(server, folder), batch_size=8)
        got = [((x.amax((1, 2, 3)) * 2).tolist(), y.tolist()) for x, y in loader]
    assert all(x == y for x, y in got)
    assert [len(x) for x, _ in got] == [7, 7, 4]


class TwoViews(Pictures):
    """The second view of sample i is picture i + 1."""

    def __getitem__(self, index: int) -> Any:
        return self.picture(index), self.picture((index + 1) % SIZE), index


@pytest.mark.parametrize("workers", [0, 1])
def test_a_sample_of_several_calls_goes_if_one_of_them_fails(folder, workers):
    with proxy.Server(decode(batch_size=5), on_error="skip") as server:
        loader = proxy.DataLoader(
            server, TwoViews(server, folder), batch_size=8, num_workers=workers
        )
        got = [(a.amax((1, 2, 3)), b.amax((1, 2, 3)), y) for a, b, y in loader]
    assert [y.tolist() for *_, y in got] == [
        [0, 1, 2, 3, 4, 7],
        [8, 9, 10, 11, 14, 15],
        [16, 17, 18, 19],
    ]
    assert all(torch.equal(a, y) and torch.equal(b, (y + 1) % SIZE) for a, b, y in got)


@pytest.mark.parametrize("collate", [as_list, as_columns, default_collate])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_sample_of_several_calls_goes_from_every_form_of_a_batch(folder, workers, collate):
    with proxy.Server(decode(batch_size=5), on_error="skip") as server:
        loader = proxy.DataLoader(
            server, TwoViews(server, folder), 8, num_workers=workers, collate_fn=collate
        )
        got = [zip(*batch, strict=True) if collate is not as_list else batch for batch in loader]
    views = [[(int(a.unique()), int(b.unique()), int(y)) for a, b, y in batch] for batch in got]
    assert views == [
        [(i, (i + 1) % SIZE, i) for i in labels]
        for labels in ([0, 1, 2, 3, 4, 7], [8, 9, 10, 11, 14, 15], [16, 17, 18, 19])
    ]
    places = [(bad.batch, bad.row, bad.index) for bad in server.errors]
    assert sorted(places) == [(0, 5, 5), (0, 6, 6), (1, 4, 12), (1, 5, 13)]


def test_errors_tell_the_row_of_the_sample_under_plain_loaders_too(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        for batch in torch.utils.data.DataLoader(TwoViews(server, folder), batch_size=8):
            server.produce_data(batch)
    assert sorted((bad.batch, bad.row) for bad in server.errors) == [(0, 5), (0, 6), (1, 4), (1, 5)]


@pytest.mark.parametrize("workers", [0, 1])
def test_errors_tell_the_row_of_the_sample_after_others_that_could_not_be_loaded(folder, workers):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = Pictures(server, folder, failing=(1, 2))
        batches(server, dataset, num_workers=workers)
    first = [(bad.row, bad.index) for bad in server.errors if bad.batch == 0]
    assert sorted(first) == [(1, 1), (2, 2), (DAMAGED, DAMAGED)]


def test_several_outputs_lose_the_same_row(folder):
    with proxy.Server(decode(copies=2), on_error="skip") as server:
        first, second = default_collate([server.proxy(folder / f"{i}.png") for i in (1, 6, 2)])
        labels = torch.tensor([1, 6, 2])
        got = server.produce_data({"a": first, "b": second, "y": labels})
    assert got["y"].tolist() == [1, 2]
    assert got["a"].amax((1, 2, 3)).tolist() == got["b"].amax((1, 2, 3)).tolist() == [1, 2]


UNCLEAR = {
    "packed boxes": lambda pictures: [pictures, torch.zeros(7, 5)],
    "tensors of columns or of samples": lambda p: [p, [torch.zeros(3, 2) for _ in range(3)]],
    "a second batch of another size": lambda p: [p, p.select_rows([0, 1])],
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_what_cannot_be_told_apart_is_refused_with_the_cause(folder, name):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = Pictures(server, folder)
        pictures, *_ = default_collate([dataset[i] for i in (1, DAMAGED, 2)])
        with pytest.raises(ProxyError, match="on_error is 'skip', but") as caught:
            server.produce_data(UNCLEAR[name](pictures))
    assert isinstance(caught.value.__cause__, OperatorError)


# ── what the server tells of it ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_tell_index_path_operator_cause_and_place(folder, workers):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = Pictures(server, folder, failing=(UNLOADABLE,))
        batches(server, dataset, num_workers=workers)
        batches(server, dataset, num_workers=workers)
    second = sorted((bad for bad in server.errors if bad.epoch == 1), key=lambda bad: bad.index)
    damaged, unloadable, missing = second
    assert (damaged.batch, damaged.row) == (0, 6)
    assert (unloadable.batch, unloadable.row) == (1, 1)
    assert (missing.batch, missing.row) == (1, 5)
    assert damaged.path == str(folder / f"{DAMAGED}.png")
    assert damaged.operator == "decoders.image"
    assert missing.path == str(folder / f"{MISSING}.png")
    assert missing.operator == "io.file.read"
    assert isinstance(missing.cause, FileNotFoundError)
    assert unloadable.operator == "dataset"
    assert unloadable.path == f"label{UNLOADABLE}.txt"
    assert isinstance(unloadable.cause, FileNotFoundError)
    assert "in __getitem__" in unloadable.cause.__notes__[0]
    assert f"dataset index {MISSING}" in str(missing)


def test_asking_twice_counts_once(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        batch = default_collate([Pictures(server, folder)[i] for i in (1, DAMAGED)])
        assert rows(server.produce_data(batch)) == rows(server.produce_data(batch)) == [1]
    assert len(server.errors) == 1


def test_the_epochs_end_tells_how_many_were_lost(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = Pictures(server, folder, failing=(UNLOADABLE,))
        for _ in range(2):
            with pytest.warns(UserWarning, match="3 samples failed and were skipped"):
                batches(server, dataset)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            batches(server, torch.utils.data.Subset(dataset, [1, 2]))


def test_with_a_plain_loader_stopping_tells_it(folder):
    server = proxy.Server(decode(), on_error="substitute")
    batch = default_collate([Pictures(server, folder)[i] for i in (1, DAMAGED)])
    server.produce_data(batch)
    with pytest.warns(UserWarning, match="1 samples failed and were substituted"):
        server.stop_thread()


@pytest.mark.parametrize("workers", [0, 2])
def test_one_failure_more_than_max_errors_ends_the_run_with_the_list(folder, workers):
    with proxy.Server(decode(), on_error="skip", max_errors=2) as server:
        dataset = Pictures(server, folder, failing=(17,))
        got = []

        loader = proxy.DataLoader(server, dataset, batch_size=8, num_workers=workers)
        error = failure(lambda: got.extend(rows(batch) for batch in loader))
    assert isinstance(error, TooManyErrors)
    assert len(got) == 2
    for index in (*LOST, 17):
        assert f"dataset index {index}" in str(error)


class NeedsTwoError(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


class Unpicklable(Pictures):
    def __getitem__(self, index: int) -> Any:
        if index == 3:
            raise NeedsTwoError(1, 2)
        return super().__getitem__(index)


@pytest.mark.parametrize("workers", [0, 1])
def test_exceptions_that_cannot_be_pickled_are_told_in_words(folder, workers):
    with proxy.Server(decode(), on_error="skip") as server:
        got = batches(server, Unpicklable(server, folder), num_workers=workers)
    assert got[0] == [0, 1, 2, 4, 5, 7]
    (bad,) = [bad for bad in server.errors if bad.index == 3]
    assert "NeedsTwoError: 1 and 2" in str(bad)


class Broken(IterableDataset):
    def __iter__(self):
        raise KeyError("nothing comes")


def test_an_iterable_dataset_cannot_go_on_after_its_own_error(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        error = failure(lambda: list(proxy.DataLoader(server, Broken())))
    assert isinstance(error, KeyError)


@pytest.mark.parametrize(
    "options",
    [
        {"on_error": "ignore"},
        {"max_errors": 2},
        {"on_error": "skip", "max_errors": -1},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ArgumentError, match="on_error"):
        proxy.Server(decode(), **options)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_python_function_that_fails_takes_its_own_sample_along(workers):
    def half(number):
        if number in (3, 4):
            raise KeyError("mine")
        return np.array(number // 2)

    @pipeline_def(batch_size=8, num_threads=2)
    def halves():
        return fn.python_function(fn.external_source(name="number"), function=half)

    class Halves(Dataset):
        def __init__(self, server):
            self.proxy = server.proxy

        def __len__(self):
            return 8

        def __getitem__(self, index):
            return self.proxy(index), index

    with proxy.Server(halves(), on_error="skip") as server:
        got = [
            (numbers.tolist(), labels.tolist())
            for numbers, labels in proxy.DataLoader(server, Halves(server), 4, num_workers=workers)
        ]
        assert [(bad.index, type(bad.cause)) for bad in server.errors] == [
            (3, KeyError),
            (4, KeyError),
        ]
    assert got == [([0, 0, 1], [0, 1, 2]), ([2, 3, 3], [5, 6, 7])]


# ── what is said where the run ends ──────────────────────────────────────────────────────────────

SKIPPING = "Server(..., on_error='skip') leaves such samples out and goes on"


def notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("own", [True, False])
def test_the_error_of_one_sample_tells_how_to_leave_it_out(folder, workers, own):
    with proxy.Server(decode()) as server:
        dataset = Pictures(server, folder)
        if own:
            loader = proxy.DataLoader(server, dataset, batch_size=8, num_workers=workers)
        else:
            torchs = torch.utils.data.DataLoader(dataset, batch_size=8, num_workers=workers)
            loader = map(server.produce_data, torchs)
        error = failure(lambda: list(loader))
    assert isinstance(error, OperatorError)
    assert notes(error) == [SKIPPING]


def test_it_is_told_once_however_often_the_data_is_asked_for(folder):
    with proxy.Server(decode()) as server:
        picture = Pictures(server, folder).picture
        batch = default_collate([picture(DAMAGED), picture(DAMAGED + 1)])
        errors = [failure(lambda: server.produce_data(batch)) for _ in range(3)]
    assert [notes(error) for error in errors] == [[SKIPPING]] * 3


def test_an_error_of_all_samples_is_no_matter_of_bad_files(folder):
    with proxy.Server(decode()) as server:
        picture = Pictures(server, folder).picture
        batch = default_collate([picture(DAMAGED), picture(MISSING)])
        error = failure(lambda: server.produce_data(batch))
    assert isinstance(error, OperatorError)
    assert notes(error) == []


def test_who_skips_already_is_not_told_to(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        picture = Pictures(server, folder).picture
        batch = default_collate([picture(DAMAGED), picture(DAMAGED + 1)])
        error = failure(lambda: server.produce_data(batch))  # what belongs to it is not known
    assert SKIPPING not in notes(error)


# ── samples that are None ────────────────────────────────────────────────────────────────────────


class WithNones(Pictures):
    """There is no sample in the place of those that are to fail."""

    def __getitem__(self, index: int) -> Any:
        return None if index in self.failing else super().__getitem__(index)


class WithNonesByTheDozen(WithNones):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


def collate_present(samples: list[Any]) -> Any:
    return default_collate([sample for sample in samples if sample is not None])


GOOD = [i for i in range(SIZE) if i not in LOST]


@pytest.mark.parametrize("kind", [WithNones, WithNonesByTheDozen])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("collate", [None, collate_present])
def test_a_sample_that_is_none_has_failed(folder, workers, kind, collate):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = kind(server, folder, failing=(0, UNLOADABLE))
        got = batches(server, dataset, num_workers=workers, collate_fn=collate)
    assert got == [[1, 2, 3, 4, 5, 7], [8, 10, 11, 12, 14, 15], [16, 17, 18, 19]]
    nones = [bad for bad in server.errors if bad.operator == "dataset"]
    assert [(bad.index, bad.batch, bad.row) for bad in nones] == [(0, 0, 0), (9, 1, 1)]
    for bad in nones:
        assert isinstance(bad.cause, TypeError)
        assert str(bad.cause) == "the Dataset returned None"


def test_a_sample_that_is_none_is_substituted(folder):
    with proxy.Server(decode(), on_error="substitute") as server:
        got = batches(server, WithNones(server, folder, failing=(0,)))
    assert got[0] == [1, 1, 2, 3, 4, 5, 7, 7]


def test_a_none_is_passed_over_by_a_loader_without_batches(folder):
    with proxy.Server(decode(), on_error="skip") as server:
        dataset = WithNones(server, folder, failing=(0, UNLOADABLE))
        labels = [s[1] for s in proxy.DataLoader(server, dataset, batch_size=None)]
    assert labels == [i for i in GOOD if i not in (0, UNLOADABLE)]


@pytest.mark.parametrize("context", [None, "fork", "spawn"])
@pytest.mark.parametrize("kind", [WithNones, WithNonesByTheDozen])
def test_torchs_error_of_a_none_names_its_index(folder, context, kind):
    with proxy.Server(decode()) as server:
        dataset = kind(server, folder, failing=(3, 5))
        workers = {} if context is None else {"num_workers": 1, "multiprocessing_context": context}
        loader = proxy.DataLoader(server, dataset, sampler=[2, 5, 3], batch_size=3, **workers)
        error = failure(lambda: next(iter(loader)))
    assert isinstance(error, TypeError)
    told = notes(error) if context is None else str(error).splitlines()
    assert "the Dataset returned None at dataset index 5, 3" in told


def test_errors_of_collate_functions_without_a_none_have_no_note_of_it(folder):
    with proxy.Server(decode()) as server:
        loader = proxy.DataLoader(
            server, WithNones(server, folder, failing=(9,)), batch_size=3, collate_fn=len_of_none
        )
        assert notes(failure(lambda: next(iter(loader)))) == []


def len_of_none(_: Any) -> int:
    return len(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_collate_function_of_the_users_gets_the_nones(folder, workers):
    with proxy.Server(decode()) as server:
        dataset = WithNones(server, folder, failing=(*LOST, 0, UNLOADABLE))
        got = batches(server, dataset, num_workers=workers, collate_fn=collate_present)
    assert [label for batch in got for label in batch] == [
        i for i in GOOD if i not in (0, UNLOADABLE)
    ]
    assert server.errors == ()
