"""Workers that are processes: the same bits, one trace in each, and workers that are lost."""

import functools
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.distributed import Objective, local_cluster
from chainrule.errors import PartitionError


def arrays(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(200, 30)) * 10.0**seed, rng.normal(size=200)


def loss(w: Any, x: Any, y: Any) -> Any:
    return (cr.sqrt(1 + (x @ w - y) ** 2) / 3).sum()


PARTS = [functools.partial(arrays, seed) for seed in range(20)]
W = np.linspace(-1, 1, 30)


def bits(client: Any, parts: Any = PARTS, **options: Any) -> list[bytes]:
    objective = Objective(loss, parts, client=client, **options)
    value, gradient = objective.value_and_grad(W)
    return [np.float64(value).tobytes(), gradient.tobytes(), objective.hvp(W, W).tobytes()]


@pytest.fixture(scope="module")
def wanted() -> list[bytes]:
    with local_cluster(1, processes=False) as client:
        return bits(client)


@pytest.mark.parametrize("n_workers", [3, 8])
def test_more_workers_give_the_same_bits(n_workers: int, wanted: Any) -> None:
    with local_cluster(n_workers, processes=False) as client:
        assert bits(client) == wanted
        assert bits(client, persist=True) == wanted


def test_processes_give_the_same_bits(processes: Any, wanted: Any) -> None:
    assert bits(processes) == wanted


def test_collections_leave_out_what_imports_made_in_processes_alone(
    processes: Any, client: Any
) -> None:
    before = gc.get_freeze_count()
    assert min(processes.run(gc.get_freeze_count).values()) > 10_000
    assert set(client.run(gc.get_freeze_count).values()) == {before}


# First: workers that other tests end start again, and count from zero.
def count_traces() -> None:
    from chainrule.compiler import build

    def counted(*args: Any) -> Any:
        build.traces += 1
        return original(*args)

    original, build.traces = build.trace_call, 0
    build.trace_call = counted


def number_of_traces() -> int:
    from chainrule.compiler import build

    found: int = build.traces
    return found


def test_a_compiled_loss_is_traced_once_in_each_process(processes: Any) -> None:
    processes.run(count_traces)
    wanted = Objective(loss, PARTS, client=processes).value_and_grad(W)
    for _ in range(2):  # the second objective has the same function by its bytes
        objective = Objective(cr.compile(loss), PARTS, client=processes)
        for _ in range(3):
            value, gradient = objective.value_and_grad(W)
            assert value == pytest.approx(wanted[0], rel=1e-14)
            np.testing.assert_allclose(gradient, wanted[1], rtol=1e-12)
    assert set(processes.run(number_of_traces).values()) == {1}


def ending_its_worker_once(marker: Path, seed: int) -> Any:
    """Load a partition; the first time, kill the process instead."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return arrays(seed)


def test_a_worker_that_is_lost_changes_nothing(processes: Any, wanted: Any, tmp_path: Path) -> None:
    parts = [
        functools.partial(ending_its_worker_once, tmp_path / f"{seed // 10}", seed)
        for seed in range(20)
    ]
    assert bits(processes, parts) == wanted
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]


def test_workers_keep_equally_many_partitions(processes: Any, wanted: Any) -> None:
    processes.wait_for_workers(2, timeout=30)
    objective = Objective(loss, PARTS, client=processes, persist=True)
    value, _ = objective.value_and_grad(W)
    kept = [
        sum("load_partition" in str(key) for key in keys) for keys in processes.has_what().values()
    ]
    assert np.float64(value).tobytes() == wanted[0]
    assert sum(kept) == len(PARTS)
    assert max(kept) - min(kept) <= 1


def test_what_a_lost_worker_kept_is_loaded_again(processes: Any, wanted: Any) -> None:
    objective = Objective(loss, PARTS, client=processes, persist=True)
    first = objective.value_and_grad(W)
    processes.wait_for_workers(2, timeout=30)
    worker = next(iter(processes.scheduler_info()["workers"]))
    processes.run(os._exit, 1, workers=[worker], on_error="ignore")
    value, gradient = objective.value_and_grad(W)
    assert [np.float64(value).tobytes(), gradient.tobytes()] == wanted[:2]
    assert first[0] == value


@pytest.mark.thorough
def test_a_partition_that_ends_every_worker_is_named(processes: Any) -> None:
    def ending() -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    objective = Objective(loss, [ending], client=processes)
    with pytest.raises(
        PartitionError, match=r"(?s)value: partition 0 .*killed again and again, 4 times.*memory_li"
    ):
        objective.value(W)
    processes.wait_for_workers(2, timeout=30)


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from chainrule.distributed import Objective, local_cluster

def loss(w, x):
    time.sleep(0.05)
    return (w * x).sum()

if __name__ == "__main__":
    with local_cluster(1) as client:
        objective = Objective(loss, [lambda: np.ones(3)] * 400, client=client)
        interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.5, interrupt).start()
        objective.value_and_grad(np.ones(3))
"""


@pytest.mark.thorough
def test_an_interrupt_leaves_no_process(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    (tmp_path / "program.py").write_text(INTERRUPTED)
    command = [sys.executable, str(tmp_path / "program.py")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as program:
        errors = program.communicate(timeout=60)[1].decode()
    assert program.returncode != 0
    assert "KeyboardInterrupt" in errors
    left = [p for p in psutil.process_iter() if _session(p.pid) == program.pid]
    _, alive = psutil.wait_procs(left, timeout=10)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return -1
