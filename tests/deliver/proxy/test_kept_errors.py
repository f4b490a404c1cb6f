"""An error that was raised in the loop keeps lines, and nothing else, however long it is kept."""

from __future__ import annotations

import dataclasses
import gc
import pickle
import traceback
import types
import weakref
from functools import partial

import pytest
from torch.utils.data import default_collate

from forebay import fn, pipeline_def
from forebay.deliver.proxy.reference import BrokenRef
from forebay.errors import OperatorError, ProxyError, SourceError
from forebay.execute.executor import Executor
from forebay.execute.run import Run
from forebay.torch import proxy
from forebay.torch.proxy import Server
from proxies import Failing, row


class Canary:
    """Is alive as long as something holds it."""


def fail_at(number):
    """A pipeline with a function that refuses one number."""

    def check(x):
        if int(x[0]) == number:
            raise ZeroDivisionError("the function's own")
        return x

    @pipeline_def(batch_size=8, num_threads=2)
    def pipe():
        return fn.python_function(fn.external_source(name="x"), function=check)

    return pipe()


def too_short():
    """A pipeline that wants three elements."""

    @pipeline_def(batch_size=8, num_threads=2)
    def pipe():
        return fn.reshape(fn.external_source(name="x"), shape=[3])

    return pipe()


def no_more():
    """A pipeline whose callback ends at once."""

    @pipeline_def(batch_size=8, num_threads=2)
    def pipe():
        return fn.external_source(name="x"), fn.external_source(source=iter([]))

    return pipe()


def batch_of(server, *rows):
    return default_collate([server.proxy(each) for each in rows])


def alive(kind):
    gc.collect()
    return [item for item in gc.get_objects() if issubclass(type(item), kind)]


def catch(call):
    """What a call raises, from a frame that holds a canary; the canary's reference."""
    canary = Canary()
    watched = weakref.ref(canary)
    try:
        call()
    except Exception as error:
        return error, watched
    finally:
        del call  # which may hold the server
    raise AssertionError("it did not fail")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["operator", "dataset"])
def test_an_error_that_is_kept_does_not_keep_server_executor_or_run(workers, kind):
    before = len(alive(Run)), len(alive(Executor)), len(alive(Server))
    errors = []
    server = Server(fail_at(5) if kind == "operator" else fail_at(-1))
    dataset = Failing(server.proxy, 5 if kind == "dataset" else -1)
    loader = proxy.DataLoader(server, dataset, 4, num_workers=workers)
    iterator = iter(loader)
    next(iterator)
    try:
        next(iterator)
    except (OperatorError, KeyError) as error:
        errors.append(error)
    assert len(errors) == 1
    del server, dataset, loader, iterator
    assert (len(alive(Run)), len(alive(Executor)), len(alive(Server))) == before
    shown = "".join(traceback.format_exception(errors[0]))
    assert ("in check" if kind == "operator" else "in __getitem__") in shown


@dataclasses.dataclass
class Record:
    data: object


def refuse(tensor):
    raise ZeroDivisionError("the recorded function's own")


@pytest.mark.parametrize(
    "arranged",
    [
        lambda ref: default_collate([ref]),
        lambda ref: [ref, (ref, 1)],
        lambda ref: {"a": {"b": ref}},
        lambda ref: types.MappingProxyType({"a": ref}),
        Record,
        lambda ref: default_collate([ref / 255]),
        lambda ref: default_collate([ref.map(abs)]),
    ],
    ids=["batch", "list", "dict", "mapping", "object", "recorded", "mapped"],
)
def test_what_the_batch_looks_like_does_not_matter(arranged):
    server = Server(fail_at(5))
    gone = weakref.ref(server)
    errors = [catch(partial(server.produce_data, arranged(server.proxy(row(5)))))[0]]
    assert isinstance(errors[0], OperatorError)
    del server
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("several", [False, True])
def test_an_error_of_a_recorded_function_shows_its_line_and_keeps_no_server(several):
    server = Server(fail_at(-1))
    gone = weakref.ref(server)
    refs = [server.proxy(row(1)).map(refuse) for _ in range(2)]
    error = catch(partial(server.produce_data, default_collate(refs) if several else refs[0]))[0]
    del server, refs
    gc.collect()
    assert gone() is None
    assert "in refuse" in "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("pipe", "on_error", "kind"),
    [
        (lambda: fail_at(1), "raise", OperatorError),
        (too_short, "raise", OperatorError),
        (too_short, "skip", OperatorError),
        (no_more, "raise", SourceError),
    ],
)
@pytest.mark.filterwarnings("ignore:1 samples failed")
def test_a_batch_that_fails_again_and_again_keeps_no_frames_of_who_asked(pipe, on_error, kind):
    with Server(pipe(), on_error=on_error) as server:
        batch = [batch_of(server, row(1)[:2])]
        lengths = set()
        for _ in range(3):
            error, watched = catch(partial(server.produce_data, batch))
            assert type(error) is kind
            lengths.add(len(traceback.extract_tb(error.__traceback__)))
            del error
            gc.collect()
            assert watched() is None
        assert len(lengths) == 1


def test_a_broken_reference_that_is_asked_for_again_keeps_no_frames_of_who_asked():
    with Server(too_short()) as server:
        broken = pickle.loads(pickle.dumps(BrokenRef(server._desk.name, ProxyError("not sent"))))
        for ask in (server.produce_data, lambda ref: default_collate([ref])):
            error, watched = catch(partial(ask, broken))
            assert str(error) == "not sent"
            del error
            gc.collect()
            assert watched() is None
