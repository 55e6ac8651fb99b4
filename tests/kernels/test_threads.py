"""Large arrays are computed in parts by several threads, without an effect on the results."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.kernels import parallel, threads

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _three_threads() -> Iterator[None]:
    before = cr.get_num_threads()
    cr.set_num_threads(3)
    yield
    cr.set_num_threads(before)


def _sides(f: Callable[..., cr.Tensor], x: np.ndarray, g: np.ndarray) -> tuple[Any, Any]:
    leaf = cr.from_numpy(x.copy()).requires_grad_()
    out = f(leaf)
    out.backward(cr.from_numpy(g))
    return out.detach().numpy(), leaf.grad.numpy()


FUNCTIONS: dict[str, Callable[..., cr.Tensor]] = {
    "sigmoid": lambda x: x.sigmoid(),
    "tanh": lambda x: x.tanh(),
    "relu": lambda x: x.relu(),
    "gelu": cr.nn.functional.gelu,
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1, keepdim=True).expand(x.shape),
    "layer_norm": lambda x: cr.nn.functional.layer_norm(x, x.shape[-1:]),
    "softplus": lambda x: cr.nn.functional.softplus(x, beta=2, threshold=3),
    "elu": lambda x: cr.nn.functional.elu(x, 0.5),
    "mish": cr.nn.functional.mish,
    "logsigmoid": cr.nn.functional.logsigmoid,
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(701, 503), (3, 131_073), (262_147, 2)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_parts_give_the_bits_of_one_call(
    name: str, shape: Any, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, g = (RNG.standard_normal(shape).astype(dtype) * 3 for _ in range(2))
    x.flat[5] = np.inf
    x.flat[-1] = np.nan
    began: list[int] = []
    parallel_for = threads.parallel_for

    def spy(task: Any, parts: range) -> None:
        began.append(len(parts))
        parallel_for(task, parts)

    monkeypatch.setattr(threads, "parallel_for", spy)
    with np.errstate(invalid="ignore"):
        in_parts = _sides(FUNCTIONS[name], x, g)
        assert began
        assert max(began) > 1
        monkeypatch.setattr(parallel, "PARALLEL_MIN_ELEMENTS", 1 << 40)
        whole = _sides(FUNCTIONS[name], x, g)
    for one, other in zip(in_parts, whole, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu", "softplus", "elu"])
def test_large_arrays_give_the_bits_of_small_ones(name: str, dtype: str) -> None:
    x, g = (RNG.standard_normal(300_001).astype(dtype) for _ in range(2))
    x[:5] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    g[5:8] = [np.nan, np.inf, -np.inf]
    whole = _sides(FUNCTIONS[name], x, g)
    pairs = [
        _sides(FUNCTIONS[name], x[i : i + 50_000], g[i : i + 50_000])
        for i in range(0, len(x), 50_000)
    ]
    for one, parts in zip(whole, zip(*pairs, strict=True), strict=True):
        np.testing.assert_array_equal(one, np.concatenate(parts))


@pytest.mark.parametrize("rows", [264, 1576, 2101])
def test_results_do_not_depend_on_the_number_of_threads(rows: int) -> None:
    """A last part of only a row or two would be computed as a small array."""
    x, g = (RNG.standard_normal((rows, 1000)).astype("float32") for _ in range(2))
    found = []
    for count in (1, 2, 5, 200):
        cr.set_num_threads(count)
        found.append([_sides(FUNCTIONS[name], x, g) for name in ("softmax", "layer_norm")])
    for sides in found[1:]:
        for pair, others in zip(sides, found[0], strict=True):
            for one, other in zip(pair, others, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_other_axes_and_layouts_are_computed_in_one_part(name: str) -> None:
    x = RNG.standard_normal((600, 700)).astype("float32")
    first = getattr(cr.from_numpy(x), name)(0).numpy()
    strided = getattr(cr.from_numpy(x.T), name)(1).numpy()
    np.testing.assert_allclose(first, strided.T, rtol=2e-6)


# --- threads --------------------------------------------------------------------------------------


def test_every_block_runs_once() -> None:
    counts = np.zeros(1000, int)
    threads.parallel_for(lambda i: np.add.at(counts, i, 1), range(1000))
    assert (counts == 1).all()


def _together(count: int) -> Callable[[], None]:
    """Return a barrier for `count` threads, which proves that so many are at work."""
    barrier = threading.Barrier(count)
    return lambda: barrier.wait(timeout=20)  # type: ignore[return-value]


def test_the_requested_number_of_threads_work() -> None:
    meet = _together(3)
    threads.parallel_for(lambda _: meet(), range(3))


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
def test_helper_threads_avoid_the_callers_core() -> None:
    before, meet = os.sched_getaffinity(0), _together(3)
    if len(before) == 1:
        pytest.skip("needs two cores")
    found: dict[int, set[int]] = {}

    def task(_: int) -> None:
        found[threading.get_ident()] = os.sched_getaffinity(0)
        meet()

    def call(core: int) -> None:
        os.sched_setaffinity(0, {core})
        threads.parallel_for(task, range(3))
        del found[threading.get_ident()]

    for core in [*before, *before]:
        found.clear()
        caller = threading.Thread(target=call, args=(core,))
        caller.start()
        caller.join()
        assert list(found.values()) == [before - {core}] * 2


def test_with_one_thread_the_caller_computes() -> None:
    cr.set_num_threads(1)
    names: set[int] = set()
    threads.parallel_for(lambda _: names.add(threading.get_ident()), range(50))
    assert names == {threading.get_ident()}


def test_numpys_error_state_holds_in_every_thread() -> None:
    meet, found = _together(3), []

    def task(_: int) -> None:
        found.append(np.geterr()["over"])
        meet()

    with np.errstate(over="raise"):
        threads.parallel_for(task, range(3))
    assert found == ["raise"] * 3


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("own", [False, True], ids=["another-thread", "calling-thread"])
def test_an_exception_of_a_task_reaches_the_caller(error: type[BaseException], own: bool) -> None:
    meet, caller = _together(3), threading.get_ident()
    busy: list[int] = []

    def task(i: int) -> None:
        busy.append(i)
        if i < 3:
            meet()
        if (threading.get_ident() == caller) == own:
            raise error("in a task")
        busy.append(-i)

    with pytest.raises(error, match="in a task"):
        threads.parallel_for(task, range(1000))
    seen = list(busy)
    threads.parallel_for(lambda _: None, range(9))  # the pool still works
    assert busy == seen  # no task ran after the exception


def test_nested_calls_end() -> None:
    found: list[int] = []
    threads.parallel_for(
        lambda i: threads.parallel_for(lambda j: found.append(10 * i + j), range(10)), range(10)
    )
    assert sorted(found) == list(range(100))


def test_many_callers_at_once() -> None:
    x = RNG.standard_normal((512, 1024)).astype("float32")
    wanted = cr.from_numpy(x).softmax(1).numpy()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: cr.from_numpy(x).softmax(1).numpy(), range(20)))
    for one in found:
        np.testing.assert_array_equal(one, wanted)


def test_the_number_of_threads_may_change_while_others_compute() -> None:
    x = cr.from_numpy(RNG.standard_normal((512, 1024)).astype("float32"))
    wanted = x.softmax(1).numpy()
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda _: x.softmax(1).numpy(), range(30))
        for count in (1, 4, 2, 3) * 5:
            cr.set_num_threads(count)
        for one in found:
            np.testing.assert_array_equal(one, wanted)


def test_the_number_of_threads_is_checked() -> None:
    assert cr.get_num_threads() == 3
    with pytest.raises(ValueError, match="expects a positive integer, but got 0"):
        cr.set_num_threads(0)
    for wrong in (2.0, True, "2"):
        with pytest.raises(TypeError, match="set_num_threads expects an int"):
            cr.set_num_threads(wrong)  # type: ignore[arg-type]
    assert cr.get_num_threads() == 3


def _python(code: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("value", "count"), [("3", "3"), ("5,2", "5"), ("0", "1")])
def test_the_default_number_comes_from_the_environment(value: str, count: str) -> None:
    code = "import chainrule as cr; print(cr.get_num_threads())"
    assert _python(code, OMP_NUM_THREADS=value) == count


def test_no_thread_is_started_before_it_is_needed() -> None:
    code = """
import threading, chainrule as cr
cr.ones(100).sigmoid(); print(threading.active_count(), end=" ")
cr.set_num_threads(2); cr.ones(1_000_000).sigmoid(); print(threading.active_count())
"""
    assert _python(code) == "1 2"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    code = """
import os, warnings, chainrule as cr
warnings.simplefilter("ignore")
cr.set_num_threads(3)
x = cr.ones(1_000_000)
wanted = x.sigmoid().sum().item()
child = os.fork()
if child == 0:
    os._exit(0 if x.sigmoid().sum().item() == wanted and cr.get_num_threads() == 3 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert _python(code) == "0"
