"""What does the proxy cost, and how soon is the first batch there?

    python benchmarks/proxy_cost.py [--rounds 5] [--batches 200] [--json FILE]

Four questions. Their peers take turns, each in its own process; medians are reported.

*Receiving*: CPU milliseconds per batch of 64 that the training process spends on its inputs before
the pipeline. For forebay it is the CPU clock of the server's connection thread: it receives a
message, decodes it and files its samples. A worker's messages, recorded before, are sent as fast as
they are taken, and nothing is run. For a queue of pickled arrays it is the CPU clock of the whole
process, which takes batches out of torch's DataLoader and does nothing else. Encoded images of
110 kB, and paths.

*Loop*: CPU milliseconds per batch in a loop over a DataLoader with one worker and a pipeline that
only takes the shapes: of the connection thread, which now also sleeps, wakes, begins the runs and
shares caches with the rest; and of the whole training process, also with DALI.

*Copies*: how often a worker copies the bytes of encoded images of 110 kB between the call of the
proxy and the message: once into the shared segment that the server reads, and whatever memory
Python's tracemalloc sees to be taken meanwhile, in multiples of their size. The median of batches
that follow one another; the first ones have no segment to be copied to at once.

*First batch*: seconds from the making of the pipeline to the first batch, and from `iter(loader)`
to the first batch of the second epoch; JPEG files to 224 × 224, two workers, with and without
persistent workers.

Needs the packages of the extra `bench`, and a system with clocks of threads (Linux, macOS's CPython
lacks them).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from imagenet_cpu import BATCH, Paths, graph, list_files, machine, versions
from torch.utils.data import DataLoader, default_collate

IMAGE = 110_000
CHUNK = 20
WORKERS = 2


# ── receiving ────────────────────────────────────────────────────────────────────────────────────


def inputs(kind: str) -> list[np.ndarray]:
    """Encoded images, or paths, of a batch."""
    if kind == "images":
        return [np.full(IMAGE + i, i, np.uint8) for i in range(BATCH)]
    paths = (f"/data/imagenet/train/n{i:08}/n{i:08}_{i:05}.JPEG" for i in range(BATCH))
    return [np.frombuffer(path.encode(), np.uint8) for path in paths]


def shapes() -> Any:
    from forebay import fn

    return fn.external_source(name="x", no_copy=True).shape()


def thread_seconds() -> float:
    """CPU time of the server's connection threads so far."""
    idents = [t.ident for t in threading.enumerate() if t.name == "forebay server connection"]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(i)) for i in idents if i)


def forebay_receiving(kind: str, batches: int) -> dict[str, float]:
    from forebay import pipeline_def
    from forebay.deliver.proxy import protocol
    from forebay.deliver.proxy.desk import Desk
    from forebay.deliver.proxy.reference import Ticket
    from forebay.deliver.proxy.transport import connect

    pipeline = pipeline_def(shapes, batch_size=BATCH, num_threads=1)
    desk = Desk(pipeline(), deterministic=True)
    desk.start()
    worker = connect(desk.listener.address)
    worker.send(protocol.encode_hello(protocol.Hello(desk.key, "worker", 1, loader=True)))
    recorded = messages(inputs(kind), batches)
    taken = []
    for begin in range(0, batches, CHUNK):
        for message, fds in recorded[begin : begin + CHUNK]:
            worker.send(message, fds)
        last = desk.receive(Ticket(desk.name, "worker", begin + CHUNK - 1), range(BATCH))
        desk.entry(last)
        taken.append(thread_seconds())
    worker.close()
    desk.stop()
    desk.listener.close()
    return {"receiving_ms": least(taken)}


def messages(arrays: list[np.ndarray], count: int) -> list[tuple[bytes, tuple[int, ...]]]:
    """What a worker sends for so many batches, big inputs in one segment, with its descriptor."""
    from forebay.batch import Sample
    from forebay.deliver.proxy import protocol
    from forebay.deliver.proxy.transport import Segment

    samples = [Sample(array) for array in arrays]
    column = protocol.describe("x", samples)
    small = column.size < protocol.SMALL
    segment, fd = Segment.create(column.size)
    content = segment.fill()
    protocol.write([samples], content)
    data = content[: column.size].tobytes() if small else None
    numbers = list(range(BATCH))
    result = []
    for number in range(count):
        first = not small and number == 0
        message = protocol.Submit(number, 0, number, numbers, numbers, [column], data)
        if not small:
            message = message._replace(segment=0, size=column.size if first else None)
        result.append((protocol.encode(message), (fd,) if first else ()))
    return result


def queue_receiving(kind: str, batches: int) -> dict[str, float]:
    dataset = Dataset(kind, batches, np.copy)
    _, process = clocked(DataLoader(dataset, BATCH, num_workers=1, collate_fn=list), batches)
    return {"receiving_ms": process}


# ── loop ─────────────────────────────────────────────────────────────────────────────────────────


class Dataset:
    """Encoded images, or paths, that are already in memory."""

    def __init__(self, kind: str, batches: int, give: Any) -> None:
        self.size = 2 * batches * BATCH  # more than are clocked: no worker ends meanwhile
        self.give = give
        self.inputs = inputs(kind)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        return self.give(self.inputs[index % BATCH])


def clocked(loader: Any, batches: int) -> tuple[float, float]:
    """CPU milliseconds per batch of connection threads, if there are any, and of the process."""
    receiving, process = [], []
    for number, _ in enumerate(loader):
        if number % CHUNK == 0:
            receiving.append(thread_seconds())
            process.append(time.process_time())
        if number == batches:
            break
    return least(receiving), least(process)


def least(clock: list[float]) -> float:
    """Milliseconds per batch in the cheapest chunk but the first: other programs only add."""
    chunks = [after - before for before, after in pairwise(clock)]
    return min(chunks[1:]) / CHUNK * 1e3


def forebay_loop(kind: str, batches: int) -> dict[str, float]:
    from forebay import pipeline_def
    from forebay.torch import proxy

    pipeline = pipeline_def(shapes, batch_size=BATCH, num_threads=1)
    with proxy.Server(pipeline()) as server:
        dataset = Dataset(kind, batches, server.proxy)
        receiving, process = clocked(
            proxy.DataLoader(server, dataset, BATCH, num_workers=1), batches
        )
    return {"connection_ms": receiving, "process_ms": process}


def dali_loop(kind: str, batches: int) -> dict[str, float]:
    from nvidia.dali import fn, pipeline_def
    from nvidia.dali.plugin.pytorch.experimental import proxy

    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
    def pipeline():
        return fn.external_source(name="x", no_copy=True).shape()

    with proxy.DALIServer(pipeline()) as server:
        dataset = Dataset(kind, batches, server.proxy)
        _, process = clocked(proxy.DataLoader(server, dataset, BATCH, num_workers=1), batches)
    return {"process_ms": process}


# ── copies ───────────────────────────────────────────────────────────────────────────────────────


def copies(form: str) -> dict[str, float]:
    """A worker's copies of an image that is given in one of the forms of `FORMS`."""
    from forebay import fn, pipeline_def
    from forebay.torch import proxy

    @pipeline_def(batch_size=BATCH, num_threads=1)
    def pipeline():
        return fn.external_source(name="x", no_copy=form == "no_copy").shape()

    with proxy.Server(pipeline()) as server:
        (taken,) = DataLoader(Traced(form, server.proxy), batch_size=None, num_workers=1)
    return {"copies": 1 + taken / (BATCH * IMAGE)}


FORMS: dict[str, Any] = {
    "bytes": bytes,
    "frombuffer": lambda array: np.frombuffer(array.tobytes(), np.uint8),
    "writable": np.copy,
    "no_copy": np.copy,
}


class Traced:
    """Its only item is how many bytes of memory are taken to send a batch, in the worker."""

    def __init__(self, form: str, call: Any) -> None:
        self.form = form
        self.call = call

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> float:
        images = [FORMS[self.form](array) for array in inputs("images")]
        tracemalloc.start()
        taken = []
        for _ in range(CHUNK):
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            default_collate([self.call(image) for image in images])
            taken.append(tracemalloc.get_traced_memory()[1] - before)
        return statistics.median(taken)


# ── first batch ──────────────────────────────────────────────────────────────────────────────────


def first_batch(peer: str, data: str, *, persistent: bool) -> dict[str, float]:
    if peer == "forebay":
        from forebay import fn, pipeline_def, types
        from forebay.torch import proxy

        device, server_class = {}, proxy.Server
    else:
        from nvidia.dali import fn, pipeline_def, types
        from nvidia.dali.plugin.pytorch.experimental import proxy

        device, server_class = {"device_id": None}, proxy.DALIServer

    @pipeline_def(batch_size=BATCH, num_threads=2, seed=1, **device)
    def pipeline():
        files = fn.io.file.read(fn.external_source(name="path", no_copy=True))
        return graph(fn, types, files, antialias=False)

    begun = time.perf_counter()
    server = server_class(pipeline())
    server.start_thread()

    def load(path: str) -> Any:
        return server.proxy(np.frombuffer(path.encode(), np.uint8))

    dataset = Paths(list_files(Path(data)), load)
    loader = proxy.DataLoader(
        server, dataset, BATCH, num_workers=WORKERS, persistent_workers=persistent
    )
    seconds = []
    for _ in range(2):
        for number, (images, _) in enumerate(loader):
            if number == 0:
                seconds.append(time.perf_counter() - begun)
                assert images.shape == (BATCH, 3, 224, 224)
        del images
        begun = time.perf_counter()
    server.stop_thread()
    return {"first_s": seconds[0], "second_epoch_s": seconds[1]}


@contextlib.contextmanager
def pictures() -> Iterator[str]:
    """A folder of JPEG files of 110 kB or so."""
    from PIL import Image

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(4 * BATCH):
            coarse = Image.fromarray(rng.integers(0, 256, (47, 63, 3), np.uint8))
            coarse.resize((500, 375)).save(Path(folder) / f"{number:04}.jpg", quality=95)
        yield folder


# ── report ───────────────────────────────────────────────────────────────────────────────────────

PEERS: dict[str, Any] = {
    "receiving images: forebay": lambda a: forebay_receiving("images", a.batches),
    "receiving images: pickled arrays": lambda a: queue_receiving("images", a.batches),
    "receiving paths: forebay": lambda a: forebay_receiving("paths", a.batches),
    "receiving paths: pickled arrays": lambda a: queue_receiving("paths", a.batches),
    "loop with images: forebay": lambda a: forebay_loop("images", a.batches),
    "loop with images: DALI": lambda a: dali_loop("images", a.batches),
    "loop with paths: forebay": lambda a: forebay_loop("paths", a.batches),
    "loop with paths: DALI": lambda a: dali_loop("paths", a.batches),
    "copies of bytes": lambda _: copies("bytes"),
    "copies of np.frombuffer(bytes)": lambda _: copies("frombuffer"),
    "copies of a writable array": lambda _: copies("writable"),
    "copies with no_copy=True": lambda _: copies("no_copy"),
    "first batch: forebay": lambda a: first_batch("forebay", a.data, persistent=False),
    "first batch: DALI": lambda a: first_batch("DALI", a.data, persistent=False),
    "first batch, persistent: forebay": lambda a: first_batch("forebay", a.data, persistent=True),
    "first batch, persistent: DALI": lambda a: first_batch("DALI", a.data, persistent=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=200, help="batches a round")
    parser.add_argument("--only", default="", help="only peers whose names begin so")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peer", choices=list(PEERS), help="run this one alone, in this process")
    parser.add_argument("--data", help="its folder of JPEG files")
    args = parser.parse_args()
    if args.peer:
        torch.set_num_threads(1)
        print(json.dumps(PEERS[args.peer](args)))
        return
    rounds: dict[str, list[dict[str, float]]] = {p: [] for p in PEERS if p.startswith(args.only)}
    with pictures() as data:
        for number in range(args.rounds):
            for peer, results in rounds.items():
                own = ["--peer", peer, "--data", data, "--batches", str(args.batches)]
                command = [sys.executable, __file__, *own]
                output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                results.append(json.loads(output.stdout.splitlines()[-1]))
                print(f"round {number + 1}  {peer:34} {results[-1]}", flush=True)
    report(args, rounds)


def report(args: argparse.Namespace, rounds: dict[str, list[dict[str, float]]]) -> None:
    medians = {
        peer: {key: statistics.median(r[key] for r in results) for key in results[0]}
        for peer, results in rounds.items()
    }
    print(f"\nmedians of {args.rounds}")
    for peer, figures in medians.items():
        print(f"{peer:34}" + "  ".join(f"{name} {value:.3f}" for name, value in figures.items()))
    if args.json:
        result = {
            "question": "What the proxy costs per batch of 64, and when the first batch is there",
            "date": date.today().isoformat(),
            "machine": machine(),
            "versions": versions("forebay", "torch", "numpy", "nvidia-dali-cuda130"),
            "image_bytes": IMAGE,
            "batches": args.batches,
            "medians": medians,
            "rounds": rounds,
        }
        args.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
