"""However a script ends, its processes end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and forks are Unix's")

TESTS = Path(__file__).parents[1]

START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run unattended
import warnings
warnings.simplefilter("ignore")
from proxies import Numbers, check, check_all, twice
from forebay.torch.proxy import DataLoader, Server

server = Server(twice())
loader = DataLoader(server, Numbers(server.proxy, 1_000_000), batch_size=4, num_workers=2)
iterator = iter(loader)
check(next(iterator))
"""


def script(body: str) -> subprocess.Popen[str]:
    """A Python process, which leads a group of its own, with its output in pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", START + textwrap.dedent(body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        start_new_session=True,
    )


def end(process: subprocess.Popen[str], bound: float) -> tuple[str, str]:
    """Wait until nobody holds the pipes any more: the process and all its workers have ended."""
    with process:  # closes the pipes
        try:
            return process.communicate(timeout=bound)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == line + "\n"


def test_a_server_that_nobody_stopped_and_a_loader_left_early_do_not_keep_the_process():
    process = script(
        """
        for number, batch in enumerate(iterator):
            if number == 3:
                break
        kept = [server, loader, iterator, batch]
        kept.append(kept)
        print("done")
        """
    )
    assert end(process, 60) == ("done\n", "")
    assert process.returncode == 0


def test_an_exception_outside_with_ends_the_process_with_its_traceback():
    process = script('raise ValueError("mine")')
    _, errors = end(process, 60)
    assert process.returncode == 1
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("ValueError: mine")


def test_an_exception_inside_with_ends_the_process_with_its_traceback():
    process = script(
        """
        with server:
            for batch in iterator:
                check(batch)
                raise ValueError("mine")
        """
    )
    _, errors = end(process, 60)
    assert process.returncode == 1
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("ValueError: mine")


@pytest.mark.parametrize("inside", [True, False])
def test_ctrl_c_in_a_training_step_ends_everything_with_one_traceback(inside):
    """In a step, not anywhere: within multiprocessing's queues an interrupt can leave a lock taken
    for which Python's own exit waits, and within torch's hand-over of a tensor a second traceback.
    """
    loop = """
        import threading
        for number, batch in enumerate(iterator):
            check(batch)
            if number == 3:
                print("ready", flush=True)
                threading.Event().wait(60)
                print("too late")
    """
    body = textwrap.dedent(loop)
    process = script("with server:\n" + textwrap.indent(body, "    ") if inside else body)
    wait_for(process, "ready")
    os.killpg(process.pid, signal.SIGINT)
    output, errors = end(process, 20)
    assert output == ""
    assert process.returncode in (1, 130, -signal.SIGINT)
    assert errors.count("Traceback") == 1, errors
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_ctrl_c_while_waiting_for_a_batch_that_never_comes_ends_the_process():
    process = script(
        """
        import threading
        from forebay import fn, pipeline_def
        from proxies import row

        reached = threading.Event()

        @pipeline_def(batch_size=1, num_threads=1)
        def stuck():
            def wait(x):
                reached.set()
                threading.Event().wait(3)
                return x
            return fn.python_function(fn.external_source(name="x"), function=wait)

        other = Server(stuck())
        ref = other.proxy(row(1))
        threading.Thread(target=lambda: (reached.wait(), print("ready", flush=True))).start()
        other.produce_data(ref)
        other.produce_data(ref)
        print("too late")
        """
    )
    wait_for(process, "ready")
    os.killpg(process.pid, signal.SIGINT)
    output, errors = end(process, 20)
    assert output == ""
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_no_worker_survives_a_killed_parent():
    process = script('print("ready", flush=True); import signal; signal.pause()')
    wait_for(process, "ready")
    process.kill()
    end(process, 15)


def test_a_parent_that_is_killed_at_work_leaves_no_worker_and_no_memory_and_can_start_again():
    body = """
        print(*[worker.pid for worker in iterator._workers], flush=True)
        for batch in iterator:
            check(batch)
        """
    for _ in range(2):
        process = script(body)
        assert process.stdout is not None
        pids = [str(process.pid), *process.stdout.readline().split()]
        assert len(pids) == 3
        process.kill()
        end(process, 15)
        shared = Path("/dev/shm")
        files = [path.name for path in shared.iterdir()] if shared.is_dir() else []
        assert not [name for name in files if any(pid in name for pid in pids)]


@pytest.mark.parametrize("loader", ["DataLoader(server, ", "torch.utils.data.DataLoader("])
def test_a_killed_worker_is_an_error_and_the_next_loader_is_fine(loader):
    """In a process of its own: torch's signal handler raises wherever the main thread is."""
    process = script(
        f"""
        import gc, os, torch.utils.data
        from proxies import Processes

        del loader, iterator
        batches = iter({loader}Processes(server.proxy, 400), batch_size=4, num_workers=2))
        pid = int(server.produce_data(next(batches))[1][0])
        try:
            os.kill(pid, signal.SIGKILL)
            for batch in batches:
                server.produce_data(batch)
            print("nothing happened")
        except Exception as error:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch's handler would raise once more
            print(type(error).__name__, str(pid) in str(error))
        try:
            del batches
            gc.collect()
        except RuntimeError:
            pass
        again = DataLoader(server, Numbers(server.proxy, 23), batch_size=4, num_workers=2)
        assert check_all(again) == list(range(23))
        print("fine")
        server.stop_thread()
        """
    )
    output, errors = end(process, 60)
    assert output.count("\n") == 2, output + errors
    outcome, fine = output.splitlines()
    # With torch's own loader the error may be what the worker's death does to torch's connection.
    raised = {"RuntimeError True", "WorkerDied True"}
    if not loader.startswith("DataLoader"):
        raised |= {"ConnectionResetError False", "ConnectionRefusedError False", "EOFError False"}
    assert outcome in raised, errors
    assert fine == "fine", errors
    assert process.returncode == 0, errors


@pytest.mark.parametrize("held", ["pipe", "server"])
def test_what_is_dropped_at_the_very_end_is_closed_before_the_process_ends(held, tmp_path):
    """torch aborts a process that ends while its threads work."""
    text = f"""
import tempfile
tempfile.tempdir = {str(tmp_path)!r}
import numpy as np
from torch.utils.data import default_collate
from forebay import fn, pipeline_def
from forebay.torch.proxy import Server

picture = np.zeros((2000, 2000, 3), np.uint8)

@pipeline_def(batch_size=16, num_threads=2)
def pipe(name=None):
    source = None if name else lambda: [picture] * 16
    pictures = fn.external_source(source=source, name=name, layout="HWC", no_copy=True)
    return fn.resize(pictures, size=[1900, 1900])

pipe, server = pipe(), Server(pipe(name="x"))
pipe.run()
server.produce_data(server.proxy(picture))
working = default_collate([server.proxy(picture) for _ in range(16)])
del {held}
"""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", text], check=False, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.iterdir())
