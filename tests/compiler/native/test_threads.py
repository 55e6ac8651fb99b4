"""Partition of loops into parts, and sharing of the parts among threads."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import native
from chainrule.compiler.native import call_wrapper, fusion_groups
from chainrule.compiler.native.threads import pool
from chainrule.compiler.native.threads.pool import Team
from chainrule.kernels import threads


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide loops of any size into parts of a few iterations."""
    monkeypatch.setattr(native, "_emit_whole", lambda program: None)
    monkeypatch.setattr(fusion_groups, "LOOP_CALLS", 0)
    monkeypatch.setattr(call_wrapper, "PART_NS", 2)
    monkeypatch.setattr(call_wrapper, "MIN_PARALLEL_NS", 0)
    monkeypatch.setattr(call_wrapper, "JOIN_NS", 0)


SHAPES = [(101,), (13, 7), (11, 4, 5), (3, 30, 2)]
AXES = [None, 0, 1, 2, (0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("shape", "axis"),
    [(s, a) for s in SHAPES for a in AXES if a is None or np.max(a) < len(s)],
)
@pytest.mark.usefixtures("interpreted", "small_parts")
def test_parts_give_the_complete_result(shape: tuple[int, ...], axis: Any) -> None:
    def reduced(x: Any) -> Any:
        y = x * 2 + 1
        return y, (y * y).sum(axis), y.amax(axis), (-y).amin(axis, keepdim=True)

    x = cr.tensor(numbers(*shape))
    compiled = cr.compile(reduced, backend="native")
    for got, want in zip(compiled(x), reduced(x), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert "in parallel parts of" in compiled.source_native


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads_compute_every_part(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite", reason="machine code needs LLVM")
    monkeypatch.setattr(threads, "usable_cores", lambda: count)
    before = cr.get_num_threads()
    x = cr.tensor(numbers(997))
    try:
        cr.set_num_threads(count)
        compiled = cr.compile(lambda x: (x * 2 + 1, x.sum()), backend="native")
        for _ in range(20):
            found, total = compiled(x)
            np.testing.assert_array_equal(found, x * 2 + 1)
            np.testing.assert_allclose(total, x.sum(), rtol=1e-5)
    finally:
        cr.set_num_threads(before)
    assert "in parallel parts of" in compiled.source_native


@pytest.mark.usefixtures("interpreted", "small_parts")
def test_nan_in_one_part_propagates_to_the_extremum() -> None:
    def extrema(x: Any) -> Any:
        y = x * 1
        return y.amax(), y.amin(), y.sum()

    x = numbers(200)
    x[150] = np.nan
    for found in cr.compile(extrema, backend="native")(cr.tensor(x)):
        assert np.isnan(found.item())


@pytest.mark.usefixtures("interpreted", "small_parts")
def test_partial_results_take_a_fraction_of_the_summed_memory() -> None:
    def columns(x: Any) -> Any:
        return (x * x).sum(0)

    for rows in (40, 400):
        x = cr.tensor(numbers(rows, 50))
        compiled = cr.compile(columns, backend="native")
        np.testing.assert_allclose(compiled(x), columns(x), rtol=1e-5)
        (found,) = re.findall(r"None, \((\d+), 50\)", compiled.source_native)
        assert 1 < int(found) <= max(rows // 8, 5)


def test_small_jobs_wake_threads_only_in_quick_succession(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    woken: list[int] = []
    monkeypatch.setattr(threads, "usable_cores", lambda: 2)
    monkeypatch.setattr(Team, "_start", lambda members: members.locks.append(7))
    monkeypatch.setattr(pool, "_compiled_wait", lambda: lambda *words: None)
    monkeypatch.setattr(pool, "_release", woken.append)
    members = Team(2)
    members.wake(large=False)  # the first one
    assert woken == []
    members.wake(large=True)
    assert woken == [7]
    members.wake(large=True)  # it is spinning
    assert woken == [7]
    members.words[pool.MEMBERS + 16] = 0
    members.last_job_end = time.perf_counter() + 1  # recent, however slow this test is
    members.wake(large=False)
    assert woken == [7, 7]
