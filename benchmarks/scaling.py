"""Objectives on Dask: efficiency, overhead, memory, faults, and what 1,000 workers would need.

`python benchmarks/scaling.py` measures and writes the tables of docs/scaling.md; with names of
suites, those alone. `--gigabytes` and `--seconds` make the runs of memory and faults longer.
"""

from __future__ import annotations

import argparse
import functools
import math
import multiprocessing
import os
import pathlib
import pickle
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import distributed
import numpy as np
import psutil
import threadpoolctl
from harness import measure, versions

import chainrule as cr
from chainrule.distributed import Objective, local_cluster
from chainrule.distributed.reduction import FAN_IN

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "scaling.md"
FEATURES = 100


def loss(w: Any, x: Any, y: Any) -> Any:
    """Logistic regression."""
    return cr.nn.functional.softplus(-y * (x @ w)).sum()


def generated(seed: int, rows: int) -> tuple[Any, Any]:
    """Return a partition of float64 samples, as a reader of files would."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, FEATURES))
    return x, np.sign(x[:, 0] + rng.normal(size=rows))


def objective(client: Any, count: int, rows: int, function: Any = loss, **options: Any) -> Any:
    parts = [functools.partial(generated, seed, rows) for seed in range(count)]
    return Objective(function, parts, client=client, **options)


def seconds(job: Callable[[], Any], rounds: int = 5) -> float:
    """Return the median time of a job, after a warm-up."""
    job()
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        job()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


# --- efficiency and overhead ----------------------------------------------------------------------

PARTS = 8
TASK = 0.2  # seconds


def waiting(w: Any, x: Any, y: Any) -> Any:
    time.sleep(TASK)
    return (w * 0).sum()


def computing(w: Any, x: Any, y: Any, repeats: int) -> Any:
    return sum([loss(w * (1 + i), x, y) for i in range(repeats)])


def efficiency() -> str:
    """Return the table of the time of one process over that of n workers, times n."""
    w, rows = np.zeros(FEATURES), 2000
    with threadpoolctl.threadpool_limits(1):
        data = generated(0, rows)
        one = seconds(lambda: cr.value_and_grad(loss)(w, *data), 21)
        busy = functools.partial(computing, repeats=round(TASK / one))
    task = functools.partial(_gradient, busy, w, rows)
    lines = [
        "| workers | compute, on Dask | compute, without it | wait |",
        "| --- | --- | --- | --- |",
    ]
    spawn = multiprocessing.get_context("spawn")
    for count in (1, 2):
        with local_cluster(count) as client, ProcessPoolExecutor(count, spawn) as pool:
            dask = objective(client, PARTS, rows, busy, persist=True)
            sleep = objective(client, PARTS, rows, waiting, persist=True)
            jobs = {
                "one process": lambda: [task(seed) for seed in range(PARTS)],
                "on Dask": functools.partial(dask.value_and_grad, w),
                "without Dask": lambda pool=pool: list(pool.map(task, range(PARTS))),
                "waiting": functools.partial(sleep.value_and_grad, w),
            }
            found = measure(f"{count} workers", jobs, {}, rounds=9).median
        total = found("one process")
        ratios = [total / found("on Dask"), total / found("without Dask")]
        ratios.append(PARTS * TASK / found("waiting"))
        lines.append(f"| {count} | {' | '.join(f'{ratio / count:.2f}' for ratio in ratios)} |")
    return "\n".join(lines)


def _gradient(function: Any, w: Any, rows: int, seed: int) -> Any:
    with threadpoolctl.threadpool_limits(1):
        return cr.value_and_grad(function)(w, *_kept(seed, rows))


_kept = functools.cache(generated)


def nothing(w: Any, x: Any, y: Any) -> Any:
    return (w * 0).sum()


def overhead() -> str:
    """Return the table of rounds whose partitions take no time."""
    w = np.zeros(FEATURES)
    lines = ["| partitions | ms a round | ms of 8 empty tasks of Dask |", "| --- | --- | --- |"]
    with local_cluster(2) as client:
        for count in (8, 64):
            job = objective(client, count, 1, nothing, persist=True)
            ours = seconds(functools.partial(job.value_and_grad, w), 21)
            plain = seconds(lambda: client.gather(client.map(_empty, range(8), pure=False)), 21)
            lines.append(f"| {count} | {ours * 1e3:.1f} | {plain * 1e3:.1f} |")
    return "\n".join(lines)


def _empty(index: int) -> None:
    return None


# --- memory ---------------------------------------------------------------------------------------


def memory(gigabytes: float) -> str:
    """Return the table of the workers' memory during a gradient of more data than they can hold."""
    rows = 50_000  # 40 MB
    count = round(gigabytes * 1e9 / (rows * FEATURES * 8))
    with local_cluster(2, memory_limit="1GB") as client:
        job = objective(client, count, rows)
        pids = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        with sampled(lambda: max(p.memory_info().rss for p in pids)) as sizes:
            start = time.perf_counter()
            job.value_and_grad(np.zeros(FEATURES))
            elapsed = time.perf_counter() - start
    quarter = len(sizes) // 4
    lines = ["| quarter of the run | largest worker, MB |", "| --- | --- |"]
    lines += [
        f"| {i + 1} | {max(sizes[i * quarter : (i + 1) * quarter]) / 1e6:.0f} |" for i in range(4)
    ]
    return (
        f"{gigabytes:g} GB in {count} partitions of {rows * FEATURES * 8 / 1e6:.0f} MB, through "
        f"two workers of 1 GB each, in {elapsed:.0f} s.\n\n" + "\n".join(lines)
    )


@contextmanager
def sampled(measure: Callable[[], int]) -> Iterator[list[int]]:
    """Measure every 20 ms during a block."""
    found: list[int] = []
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(0.02):
            found.append(measure())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


# --- faults ---------------------------------------------------------------------------------------


def faults(duration: float) -> str:
    """Return the table of rounds while workers are killed, and of a scheduler that is."""
    w, rows, every = np.zeros(FEATURES), 20_000, 3.0
    with local_cluster(2) as client:
        job = objective(client, 16, rows)
        wanted = _bits(job, w)
        undisturbed = seconds(functools.partial(job.value_and_grad, w), 3)
        killed, stop = [0], threading.Event()

        def kill() -> None:
            while not stop.wait(every):
                running = [nanny.pid for nanny in client.cluster.workers.values() if nanny.pid]
                if running:
                    psutil.Process(random.choice(running)).kill()
                    killed[0] += 1

        thread = threading.Thread(target=kill)
        thread.start()
        start, rounds, same = time.perf_counter(), 0, 0
        while time.perf_counter() - start < duration:
            same += _bits(job, w) == wanted
            rounds += 1
        elapsed = (time.perf_counter() - start) / rounds
        stop.set()
        thread.join()
    return "\n".join(
        [
            "| | |",
            "| --- | --- |",
            f"| workers killed, one every {every:g} s | {killed[0]} |",
            f"| rounds, and those with the same bits as undisturbed | {rounds}, {same} |",
            f"| s a round, undisturbed and disturbed | {undisturbed:.2f}, {elapsed:.2f} |",
            f"| s from the end of the scheduler to the error | {_lost_scheduler():.2f} |",
        ]
    )


def _bits(job: Objective, w: Any) -> bytes:
    return pickle.dumps(job.value_and_grad(w))


def _lost_scheduler() -> float:
    """Return the time that it takes until a computation fails whose scheduler is killed."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "scheduler.json")
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
        command += ["--no-dashboard", "--scheduler-file", file]
        scheduler = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while not os.path.exists(file):
            time.sleep(0.01)
        with distributed.Client(scheduler_file=file, timeout=5) as client:
            job = objective(client, 8, 1)
            killed = []

            def kill() -> None:
                scheduler.kill()
                killed.append(time.perf_counter())

            threading.Timer(1, kill).start()
            try:
                job.value(np.zeros(FEATURES))
            except cr.ClusterError:
                return time.perf_counter() - killed[0]
            finally:
                scheduler.kill()
                scheduler.wait()
    raise AssertionError("the computation ended without a scheduler")


# --- 1,000 workers --------------------------------------------------------------------------------


def thousand() -> str:
    """Return the table of what a round costs, measured for few partitions and for many."""
    counts, many = (16, 64, 256), 1000
    rows = {count: _costs(count) for count in counts}
    slopes = [
        (b - a) / (counts[1] - counts[0])
        for a, b in zip(rows[counts[0]], rows[counts[1]], strict=True)
    ]

    def extrapolated(count: int) -> list[float]:
        known = zip(rows[counts[1]], slopes, strict=True)
        return [value + (count - counts[1]) * slope for value, slope in known]

    head = ["partitions", "levels of the tree", "kB to the scheduler", "kB to the workers"]
    head += ["kB from the workers", "ms of client and scheduler"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name, values, count in (
        *((str(count), rows[count], count) for count in counts),
        (f"{counts[2]}, calculated", extrapolated(counts[2]), counts[2]),
        (f"{many:,}, calculated", extrapolated(many), many),
    ):
        levels = math.ceil(round(math.log(count, FAN_IN), 9))
        lines.append(f"| {name} | {levels} | {' | '.join(f'{v:.0f}' for v in values)} |")
    return "\n".join(lines)


def _costs(count: int, rounds: int = 5) -> list[float]:
    """Return the kB and the ms of processor time of a round, of which Dask keeps count."""
    with local_cluster(2) as client:
        job = objective(client, count, 1, nothing)
        w = np.zeros(FEATURES)
        job.value_and_grad(w)
        before, start = _traffic(client), time.process_time()
        for _ in range(rounds):
            job.value_and_grad(w)
        elapsed = time.process_time() - start
        after = _traffic(client)
    sizes = [(b - a) / rounds / 1e3 for a, b in zip(before, after, strict=True)]
    return [*sizes, elapsed / rounds * 1e3]


def _traffic(client: Any) -> list[int]:
    """Return the bytes that the client, the scheduler and the workers have sent."""
    own = client.scheduler_comm.byte_count
    to_workers = sum(s.byte_count for s in client.cluster.scheduler.stream_comms.values())
    back = client.run(lambda dask_worker: dask_worker.batched_stream.byte_count)
    return [own, to_workers, sum(back.values())]


# --- the page -------------------------------------------------------------------------------------


def main() -> None:
    """Run the named suites, or all; print their tables, and write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    suites = {f.__name__: f for f in (efficiency, overhead, memory, faults, thousand)}
    parser.add_argument("names", nargs="*", help=", ".join(suites))
    parser.add_argument("--gigabytes", type=float, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    arguments = {"memory": [options.gigabytes], "faults": [options.seconds]}
    for name in options.names or suites:
        text = suites[name](*arguments.get(name, []))
        text += f"\n\n{versions(cr, np, distributed)}"
        print(f"## {name}\n\n{text}\n", flush=True)
        before, rest = PAGE.read_text(encoding="utf-8").split(f"<!-- {name} -->", 1)
        _, after = rest.split(f"<!-- end of {name} -->", 1)
        filled = f"{before}<!-- {name} -->\n\n{text}\n\n<!-- end of {name} -->{after}"
        PAGE.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
