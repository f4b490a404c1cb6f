"""What became of the worker processes of torch's iterator."""

from __future__ import annotations

import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Self

from forebay.errors import ProxyError, WorkerDied
from forebay.execute.scope import Scope


class Watch:
    """Kills workers that stand still when the loop has waited for a batch as long as it wants to.

    A worker that is stopped, as by SIGSTOP, would keep the loop for ever in the middle of a tensor,
    where torch's timeout does not reach, and does not end by SIGTERM.

    Args:
        workers: the processes.
        seconds: that the loop wants to wait; 0 for ever.
    """

    def __init__(self, workers: Sequence[BaseProcess], seconds: float) -> None:
        self._workers = workers
        self._seconds = seconds
        self._killed: list[BaseProcess] = []
        self._scope = Scope("watch")
        self._over = threading.Event()
        self._scope.on_close(self._over.set)

    def __enter__(self) -> Self:
        if self._seconds and self._workers:
            self._scope.start(self._run, "workers")
        return self

    def __exit__(self, *_: object) -> None:
        self._scope.close()
        for worker in self._killed:
            worker.join()  # torch's signal handler raises here, rather than later in the loop

    def _run(self) -> None:
        if not self._over.wait(self._seconds):
            for worker in self._workers:
                if _stands_still(worker):
                    self._killed.append(worker)
                    worker.kill()

    def explained(self, error: Exception) -> ProxyError | None:
        """What an error of torch's iterator means; None if workers have nothing to do with it.

        torch takes a tensor from the worker that made it, and has a connection error if that worker
        has died meanwhile. The Dataset's own errors of these classes come here too.
        """
        if self._killed:
            return ProxyError(
                f"DataLoader timed out after {self._seconds} seconds: its worker process "
                f"{self._killed[0].pid} was stopped, as by SIGSTOP, and has been killed"
            )
        of_workers = isinstance(error, ConnectionError | EOFError) or (
            type(error) is RuntimeError and str(error).startswith("DataLoader worker")
        )
        death = _death(self._workers) if of_workers else None
        return None if death is None else WorkerDied(death)


def _death(workers: Sequence[BaseProcess]) -> str | None:
    """Which worker has died of what; None if all live."""
    # A process ends in steps: its connections, then what `wait` looks at, then itself.
    ended = multiprocessing.connection.wait([w.sentinel for w in workers], timeout=1)
    for worker in (w for w in workers if w.sentinel in ended):
        worker.join()
        code = worker.exitcode
        if code:
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            return f"the DataLoader's worker process {worker.pid} died: {how}"
    return None


def _stands_still(worker: BaseProcess) -> bool:
    """Whether it is stopped. False where the system does not tell."""
    status = Path(f"/proc/{worker.pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "T"


def let_go_on(workers: Sequence[BaseProcess]) -> None:
    """Have workers that are stopped run again, because nothing else ends them but SIGKILL."""
    for worker in workers:
        if worker.pid is not None and worker.is_alive() and hasattr(signal, "SIGCONT"):
            os.kill(worker.pid, signal.SIGCONT)
