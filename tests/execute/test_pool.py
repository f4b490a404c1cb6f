from __future__ import annotations

import threading

import cv2
import pytest
import torch

from forebay.execute.channel import Closed
from forebay.execute.pool import Pool
from forebay.execute.scope import Scope


@pytest.fixture
def scope():
    scope = Scope("test")
    yield scope
    scope.close()


def test_every_row_is_done_once_and_then_what_follows(scope):
    pool = Pool(3, scope)
    rows, done = [], threading.Event()
    pool.submit(100, rows.append, done.set)
    assert done.wait(10)
    assert sorted(rows) == list(range(100))


def test_rows_of_the_next_job_begin_before_the_last_row_of_the_first_is_done(scope):
    pool = Pool(2, scope)
    second_begun, first_done, second_done = (threading.Event() for _ in range(3))
    pool.submit(1, lambda _: second_begun.wait(10), first_done.set)
    pool.submit(1, lambda _: second_begun.set(), second_done.set)
    assert second_done.wait(10)
    assert first_done.wait(10)


def test_following_work_goes_before_waiting_jobs(scope):
    pool = Pool(1, scope)
    gate, over, order = threading.Event(), threading.Event(), []

    def follow():
        pool.follow(1, lambda _: order.append("follows"), lambda: None)

    pool.submit(1, lambda _: gate.wait(10), follow)
    pool.submit(1, lambda _: order.append("waits"), over.set)
    gate.set()
    assert over.wait(10)
    assert order == ["follows", "waits"]


def test_submitting_waits_while_another_job_waits_and_ends_with_the_scope():
    scope = Scope("test")
    pool = Pool(1, scope)
    gate, begun, errors = threading.Event(), threading.Event(), []
    pool.submit(1, lambda _: (begun.set(), gate.wait(10)), lambda: None)
    assert begun.wait(10)
    for _ in range(2):
        pool.submit(1, lambda _: None, lambda: None)

    def submit():
        try:
            pool.submit(1, lambda _: None, lambda: None)
        except Closed as error:
            errors.append(error)

    thread = threading.Thread(target=submit)
    thread.start()
    closing = threading.Thread(target=scope.close)
    closing.start()
    thread.join(10)
    assert errors
    gate.set()
    closing.join(10)


def test_libraries_use_one_thread_inside_the_pool_and_the_caller_keeps_its_own(scope):
    before = torch.get_num_threads()
    found, done = [], threading.Event()
    Pool(2, scope).submit(4, lambda _: found.append(torch.get_num_threads()), done.set)
    assert done.wait(10)
    assert found == [1, 1, 1, 1]
    assert torch.get_num_threads() == before
    assert cv2.getNumThreads() == 1
    later = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [before]
