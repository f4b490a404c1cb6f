"""Threads that work through the rows of runs, oldest run first.

The threads take rows of the first job until none is left, then go on with the next one: there is no
barrier between batches. Whoever finishes a job's last row runs what follows it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import cv2
import torch

from forebay.execute.channel import Closed
from forebay.execute.scope import Scope


class Job:
    """Rows 0 … size - 1 of one run, and what follows when all are done."""

    __slots__ = ("chunk", "next", "pending", "size", "task", "then")

    def __init__(
        self, size: int, chunk: int, task: Callable[[int], None], then: Callable[[], None]
    ) -> None:
        self.size = size
        self.chunk = chunk
        self.task = task
        self.then = then
        self.next = 0
        self.pending = size


class Pool:
    """`size` threads of a scope. `task` and `then` must not raise: a run keeps its own errors."""

    def __init__(self, size: int, scope: Scope) -> None:
        self._size = size
        self._jobs: deque[Job] = deque()
        self._open = True
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        scope.on_close(self._close)
        cv2.setNumThreads(1)
        caller_threads = torch.get_num_threads()
        started = threading.Barrier(size + 1)
        for number in range(size):
            scope.start(lambda: self._run(started), f"worker {number}")
        started.wait()
        # torch.set_num_threads(1) in the workers also set the default of threads yet to come.
        torch.set_num_threads(caller_threads)

    def submit(self, size: int, task: Callable[[int], None], then: Callable[[], None]) -> None:
        """Work through a run's rows; wait while another run waits to begin. Raises Closed.

        Args:
            size: number of rows.
            task: called with each row's number, from any thread, in any order.
            then: called when all rows are done.
        """
        job = self._job(size, task, then)
        with self._lock:
            while self._open and len(self._jobs) > 1:
                self._room.wait()
            self._add(job, first=False)

    def follow(self, size: int, task: Callable[[int], None], then: Callable[[], None]) -> None:
        """As `submit`, for what follows in a run that is in work: before others, without a wait."""
        job = self._job(size, task, then)
        with self._lock:
            self._add(job, first=True)

    def _job(self, size: int, task: Callable[[int], None], then: Callable[[], None]) -> Job:
        return Job(size, max(1, size // (8 * self._size)), task, then)

    def _add(self, job: Job, *, first: bool) -> None:
        if not self._open:
            raise Closed
        if first:
            self._jobs.appendleft(job)
        else:
            self._jobs.append(job)
        self._work.notify(min(self._size, job.size))

    def _run(self, started: threading.Barrier) -> None:
        torch.get_num_threads()  # torch's first look sets a thread's number to the default
        torch.set_num_threads(1)
        started.wait()
        while True:
            with self._lock:
                while self._open and not self._jobs:
                    self._work.wait()
                if not self._open:
                    return
                job = self._jobs[0]
                begin = job.next
                end = job.next = min(begin + job.chunk, job.size)
                if end == job.size:
                    self._jobs.popleft()
                    self._room.notify()
            for row in range(begin, end):
                job.task(row)
            with self._lock:
                job.pending -= end - begin
                last = job.pending == 0
            if last:
                job.then()
            del job  # while this thread waits it must not keep the last batch alive

    def _close(self) -> None:
        with self._lock:
            self._open = False
            self._work.notify_all()
            self._room.notify_all()
