"""Settings of the client that hold on the workers, and those that are refused."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.distributed import Objective
from chainrule.distributed.settings import Settings, capture
from chainrule.errors import AutogradError, PartitionError


def observed() -> dict[str, Any]:
    import threadpoolctl

    blas = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    return {
        "dtype": cr.get_default_dtype().name,
        "kernels": cr.get_kernels(),
        "threads": cr.get_num_threads(),
        "blas": max(blas, default=1),
        "grad": cr.is_grad_enabled(),
    }


def loss(w: Any, seen: Any) -> Any:
    """Fail with what is observed."""
    raise KeyError(*sorted({**observed(), **{f"loaded {k}": v for k, v in seen.items()}}.items()))


def found_on_a_worker(client: Any) -> dict[str, Any]:
    with pytest.raises(PartitionError) as info:
        Objective(lambda w, **seen: loss(w, seen), [observed], client=client).value(1.0)
    remote = info.value.__cause__.__cause__
    return dict(remote.args)


@pytest.fixture
def float64() -> Any:
    before = cr.get_default_dtype()
    cr.set_default_dtype(cr.float64)
    yield
    cr.set_default_dtype(before)


def test_the_clients_settings_hold_while_loading_and_computing(
    processes: Any, float64: None
) -> None:
    before = processes.submit(observed, pure=False, workers=_one(processes)).result()
    with cr.no_grad():
        found = found_on_a_worker(processes)
    wanted = {"dtype": "float64", "kernels": "numpy", "threads": 1, "blas": 1, "grad": False}
    assert found == wanted | {f"loaded {name}": value for name, value in wanted.items()}
    assert processes.submit(observed, pure=False, workers=_one(processes)).result() == before


def _one(client: Any) -> list[str]:
    return [next(iter(client.scheduler_info()["workers"]))]


def test_threads_that_were_chosen_travel(processes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import chainrule.autograd.function_wrapper as wrapper
    import chainrule.distributed.settings as settings

    chosen = wrapper.settings()._replace(num_threads=3)
    monkeypatch.setattr(settings, "process_settings", lambda: chosen)
    found = found_on_a_worker(processes)
    assert found["threads"] == found["loaded threads"] == 3


MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "saved_tensors_hooks": lambda: cr.saved_tensors_hooks(lambda t: t, lambda t: t),
    "disable_saved_tensors_hooks": lambda: cr.autograd.graph.disable_saved_tensors_hooks("no"),
    "explain": lambda: cr.explain(),
}


@pytest.mark.parametrize("mode", MODES)
def test_modes_that_do_not_travel_are_refused(client: Any, mode: str) -> None:
    objective = Objective(lambda w, x: w * x.sum(), [lambda: np.ones(3)], client=client)
    with MODES[mode](), pytest.raises(AutogradError, match=f"{mode} is in force here"):
        objective.value(1.0)


def test_anomaly_mode_is_refused(client: Any) -> None:
    objective = Objective(lambda w, x: w * x.sum(), [lambda: np.ones(3)], client=client)
    with cr.detect_anomaly(), pytest.raises(AutogradError, match="detect_anomaly is in force"):
        objective.value(1.0)


def test_other_versions_are_refused() -> None:
    with (
        pytest.raises(AutogradError, match=r"client runs chainrule 0\.0\.1, this worker"),
        capture()._replace(version="0.0.1").applied(),
    ):
        pass


def test_kernels_that_a_worker_lacks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from chainrule.compiler.native import jit

    monkeypatch.setattr(jit, "is_installed", lambda: False)
    with (
        pytest.raises(cr.MissingExtraError, match=r"native.*llvmlite"),
        capture()._replace(kernels="native").applied(),
    ):
        pass
    assert cr.get_kernels() == "numpy"


def test_native_kernels_hold_in_a_block() -> None:
    pytest.importorskip("llvmlite")
    from chainrule.compiler.eager import has_chosen

    chosen = has_chosen()
    with capture()._replace(kernels="native").applied():
        assert cr.get_kernels() == "native"
    assert (cr.get_kernels(), has_chosen()) == ("numpy", chosen)


def test_tasks_of_other_settings_wait_for_their_turn() -> None:
    """Threads of one process: kernels and number of threads are the same in all of it."""
    entered, leave = threading.Event(), threading.Event()
    order: list[str] = []

    def run(name: str, settings: Settings) -> None:
        with settings.applied():
            order.append(f"{name} {cr.get_num_threads()}")
            entered.set()
            assert leave.wait(10)
            order.append(f"{name} ends")

    one, two = (capture()._replace(num_threads=n) for n in (1, 2))
    threads = [threading.Thread(target=run, args=("first", one))]
    threads[0].start()
    assert entered.wait(10)
    entered.clear()
    threads += [threading.Thread(target=run, args=each) for each in (("same", one), ("other", two))]
    threads[1].start()
    assert entered.wait(10)  # beside the first
    threads[2].start()
    before = cr.get_num_threads()
    assert order == ["first 1", "same 1"]
    leave.set()
    for thread in threads:
        thread.join(10)
    assert before == 1
    assert order[-2:] == ["other 2", "other ends"]


def test_threads_of_the_process_come_back() -> None:
    from chainrule.kernels import threads

    before = cr.get_num_threads(), threads.has_chosen()
    for number in (before[0], before[0] + 1):
        with capture()._replace(num_threads=number).applied():
            assert (cr.get_num_threads(), threads.has_chosen()) == (number, True)
        assert (cr.get_num_threads(), threads.has_chosen()) == before
