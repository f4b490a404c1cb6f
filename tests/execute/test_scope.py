"""Scopes end their threads, whoever finds out that nobody needs them."""

from __future__ import annotations

import threading

from forebay.execute.scope import Scope, close_after


class Owner:
    pass


def scope_of_a_thread(run):
    scope, ending, ended = Scope("test"), threading.Event(), threading.Event()
    scope.on_close(ending.set)

    def body():
        ending.wait()
        run()
        ended.set()

    scope.start(body, "thread")
    return scope, ended


def test_garbage_found_while_a_lock_is_held_that_an_ending_thread_needs():
    lock = threading.Lock()

    def run():
        with lock:
            pass

    scope, ended = scope_of_a_thread(run)
    owner = Owner()
    close_after(owner, scope.close)
    with lock:
        del owner
    assert ended.wait(10)


def test_the_end_that_was_asked_for_is_waited_for():
    scope, ended = scope_of_a_thread(lambda: None)
    owner = Owner()
    end = close_after(owner, scope.close)
    end()
    assert ended.is_set()
    end()
