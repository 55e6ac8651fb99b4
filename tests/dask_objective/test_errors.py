"""Errors that name the partition, and leave nothing half done."""

import contextvars
import functools
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.distributed import Objective
from chainrule.errors import ArgumentError, ArgumentTypeError, ClusterError, PartitionError

distributed = pytest.importorskip("distributed")
Client, LocalCluster = distributed.Client, distributed.LocalCluster


def fine(seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(4, 3))


def loss(w: Any, x: Any) -> Any:
    return ((x @ w) ** 2).sum()


FINE = [functools.partial(fine, seed) for seed in range(12)]
W = np.array([1.0, 2.0, 3.0])


def poisoned() -> Any:
    raise OSError("sector 7 is gone")


def with_nan() -> Any:
    x = fine(0)
    x[2, 1] = np.nan
    return x


def root(w: Any, x: Any) -> Any:
    return cr.sqrt(((x @ w) ** 2).sum())


def zeros() -> Any:
    return np.zeros((4, 3))


class Unpicklable(Exception):
    def __init__(self, text: str, lock: Any) -> None:
        super().__init__(text)
        self.lock = lock


class TwoArguments(Exception):
    """It can be sent, but not made anew."""

    def __init__(self, text: str, more: Any) -> None:
        super().__init__(text)


def raises(make: Callable[[], BaseException]) -> Any:
    def losing(w: Any, x: Any) -> Any:
        if len(x) == 1:
            raise make()
        return loss(w, x)

    return losing


def short() -> Any:
    return np.ones((1, 3))


PARTITIONS: dict[str, tuple[Any, Any, str]] = {
    "exception with a lock": (
        raises(lambda: Unpicklable("mine", threading.Lock())),
        short,
        r"\(short\): Unpicklable: mine( |$)",
    ),
    "exception of two arguments": (
        raises(lambda: TwoArguments("mine", 2)),
        short,
        r"\(short\): TwoArguments: mine( |$)",
    ),
    "sys.exit": (raises(lambda: SystemExit(3)), short, r"\(short\): SystemExit: 3"),
    "an interrupt of its own": (raises(KeyboardInterrupt), short, r"\(short\): KeyboardInterrupt"),
    "nothing returned": (
        lambda w, x: loss(w, x) if len(x) == 4 else None,
        short,
        r"<lambda> \([^(]*:\d+\) returned None",
    ),
    "loader fails": (loss, poisoned, r"\(poisoned\): OSError: sector 7 is gone"),
    "nan": (loss, with_nan, r"AutogradError: value_and_grad\[0\] is nan: look for nan"),
    "nan of a gradient": (root, zeros, r"value_and_grad\[1\] is nan at \[0\]"),
    "other shape": (loss, lambda: np.ones((4, 5)), r"5.*3"),
    "two arguments": (loss, lambda: (fine(0), fine(1)), r"TypeError: loss\(\) takes 2"),
    "other names": (loss, lambda: {"y": fine(0)}, "TypeError: .*'y'"),
    "no such file": (loss, Path("/nowhere/a.npy"), r"\(/nowhere/a.npy\): FileNotFoundError"),
    "unknown file": (loss, "a.csv", r"FormatError: .*a\.csv is none of the files.*\.npz"),
    "no scalar": (
        lambda w, x: x @ w if len(x) == 5 else loss(w, x),
        lambda: np.ones((5, 3)),
        r"one element|scalar|one real number",
    ),
}


@pytest.mark.parametrize("kind", PARTITIONS)
def test_the_partition_that_fails_is_named(client: Any, kind: str) -> None:
    function, poison, message = PARTITIONS[kind]
    parts = [*FINE[:9], poison, *FINE[9:]]
    w = W.copy()
    with pytest.raises(PartitionError, match=f"(?s)value_and_grad: partition 9.*{message}") as info:
        Objective(function, parts, client=client).value_and_grad(w)
    assert info.value.__cause__ is not None
    np.testing.assert_array_equal(w, W)


def test_values_are_one_number(client: Any) -> None:
    objective = Objective(lambda w, x: x @ w, FINE, client=client)
    with pytest.raises(PartitionError, match=r"value: partition \d.* got the shape \[4\].*sum\(\)"):
        objective.value(W)


def _event(name: str) -> threading.Event:
    """Return an event of this process, which functions sent by value can find."""
    found: threading.Event = vars(sys).setdefault(f"_event_of_tests_{name}", threading.Event())
    return found


def flawed() -> Any:
    if _event("flaw").is_set():
        raise ValueError("flawed")
    return np.ones((4, 3))


def test_the_objective_goes_on_after_an_error(client: Any) -> None:
    objective = Objective(loss, [*FINE, flawed], client=client)
    wanted = objective.value_and_grad(W)
    _event("flaw").set()
    with pytest.raises(PartitionError, match=r"partition 12 \(flawed\)"):
        objective.value_and_grad(W)
    _event("flaw").clear()
    found = objective.value_and_grad(W)
    assert found[0] == wanted[0]
    np.testing.assert_array_equal(found[1], wanted[1])


def test_what_dask_loads_is_named_too(client: Any) -> None:
    dask, array = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    parts = [*(dask.delayed(fine)(i) for i in range(3)), dask.delayed(poisoned)()]
    for persist in (False, True):
        with pytest.raises(PartitionError, match=r"partition 3 \(poisoned.*OSError: sector 7"):
            Objective(loss, parts, client=client, persist=persist).value_and_grad(W)

    def block(x: Any, block_info: Any = None) -> Any:
        if block_info[0]["chunk-location"][0] == 2:
            raise OSError("sector 7 is gone")
        return x

    rows = array.ones((40, 3), chunks=(10, -1)).map_blocks(block, dtype=float, meta=np.ones((0, 3)))
    with pytest.raises(PartitionError, match=r"partition 2 \(rows 20:30\).*OSError: sector 7"):
        Objective(loss, rows, client=client).value(W)


def test_retries(client: Any, tmp_path: Path) -> None:
    def at_the_second_time() -> Any:
        if not (tmp_path / "tried").exists():
            (tmp_path / "tried").touch()
            raise OSError("try again")
        return fine(0)

    wanted = Objective(loss, [*FINE, FINE[0]], client=client).value_and_grad(W)
    found = Objective(loss, [*FINE, at_the_second_time], client=client, retries=1).value_and_grad(W)
    assert (tmp_path / "tried").exists()
    assert found[0] == wanted[0]
    np.testing.assert_array_equal(found[1], wanted[1])


# --- what can't be sent ---------------------------------------------------------------------------


def test_functions_without_a_pickle(client: Any) -> None:
    lock = threading.Lock()

    def locked(*args: Any) -> Any:
        with lock:
            return args

    message = "can't be sent to workers: TypeError: cannot pickle '_thread.lock'"
    with pytest.raises(ArgumentTypeError, match=f"the loss.*{message}"):
        Objective(locked, FINE, client=client)
    with pytest.raises(ArgumentTypeError, match=rf"loader of partition 12 .*locked.*{message}"):
        Objective(loss, [*FINE, locked], client=client)


def unlike(first: Any, second: Any) -> Any:
    array = pytest.importorskip("dask.array")
    return tuple(array.ones(sum(chunks), chunks=(chunks,)) for chunks in (first, second))


PARTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "none": (list, ArgumentError, "there are no partitions"),
    "array": (lambda: np.ones(3), ArgumentTypeError, "got ndarray"),
    "arrays": (lambda: [fine(0)], ArgumentTypeError, "partition 0 is ndarray: a worker that is"),
    "tuples": (lambda: [(fine(0), fine(1))], ArgumentTypeError, r"dask\.array\.from_array"),
    "other chunks": (
        lambda: unlike((2, 2), (3, 1)),
        ArgumentError,
        r"parts\[0\] has partition 0 \(rows 0:2\), but parts\[1\] has partition 0 \(rows 0:3\)",
    ),
    "fewer chunks": (
        lambda: unlike((2, 2), (2,)),
        ArgumentError,
        r"parts\[0\] has 2 partitions, but parts\[1\] has 1.*rechunk",
    ),
    "array beside a collection": (
        lambda: (unlike((2,), (2,))[0], np.ones(2)),
        ArgumentTypeError,
        r"parts\[1\] is ndarray",
    ),
    "divided rows": (
        lambda: pytest.importorskip("dask.array").ones((4, 4), chunks=2),
        ArgumentError,
        r"divided along \[2, 2\].*partitions are rows: call .rechunk",
    ),
}


@pytest.mark.parametrize("kind", PARTS)
def test_parts_that_are_no_partitions(client: Any, kind: str) -> None:
    parts, error, message = PARTS[kind]
    with pytest.raises(error, match=message):
        Objective(loss, parts(), client=client)


def test_numbers_of_examples_must_agree(client: Any) -> None:
    parts = [lambda: (np.ones((4, 3)), np.ones(5))]
    objective = Objective(lambda w, x, y: w.sum(), parts, client=client, reduction="mean")
    with pytest.raises(PartitionError, match=r"partition 0.*lengths \[4, 5\]"):
        objective.value(W)


# --- clusters -------------------------------------------------------------------------------------


def test_without_a_client() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed.client, "_global_clients", {})
        with pytest.raises(ArgumentError, match=r"no client of Dask.*local_cluster"):
            contextvars.Context().run(Objective, loss, FINE)


def test_the_current_client_is_the_default(client: Any) -> None:
    assert Objective(loss, FINE).value(W) == Objective(loss, FINE, client=client).value(W)


def test_a_lost_scheduler_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
    command += ["--no-dashboard", "--scheduler-file", str(file)]
    scheduler = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        until(file.exists)
        with Client(scheduler_file=str(file), set_as_default=False, timeout=5) as client:
            objective = Objective(loss, FINE, client=client)
            with ThreadPoolExecutor(1) as pool:
                asked = pool.submit(objective.value, W)  # which no worker computes
                until(lambda: client.futures)
                scheduler.kill()
                assert isinstance(asked.exception(timeout=10), ClusterError)
            with pytest.raises(ClusterError, match="value: the scheduler can't be reached any mo"):
                objective.value(W)
    finally:
        scheduler.kill()
        scheduler.wait()


def until(condition: Callable[[], Any]) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_no_workers_are_an_error_where_dask_is_told_so() -> None:
    import dask

    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "100 ms"}),
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(ClusterError, match=r"^value: the cluster has no workers: "),
    ):
        Objective(loss, FINE, client=client).value(W)


def test_data_that_is_gone(client: Any) -> None:
    future = client.submit(fine, 0, key="gone")
    objective = Objective(loss, [future], client=client)
    future.cancel()
    with pytest.raises(ClusterError, match=r"cancelled.*scattered"):
        objective.value(W)


def test_tensors_beside_the_parameters_that_require_grad_are_refused(client: Any) -> None:
    hidden = cr.ones(1, dtype=cr.float64, requires_grad=True)
    objective = Objective(lambda w, x: (w * x * hidden).sum(), [lambda: np.ones(1)], client=client)
    for ask in (objective.value, objective.value_and_grad):
        with pytest.raises(PartitionError, match="requires grad and is not among the parameters"):
            ask(2.0)
