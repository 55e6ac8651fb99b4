"""The communicator: derivatives over all ranks, models that are split, and faults."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.distributed import Communicator, communication, connect, run_ranks
from chainrule.errors import CommunicationError
from chainrule.primitives import TABLE
from conformance import cases_of, checks
from conformance.rows.communication import ROWS

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "split_model.py"

# --- one rank: the conformance table --------------------------------------------------------------

CASES = [case for row in ROWS for case in cases_of(row)]
CHECKS = [
    *(checks.check_primitive, checks.check_value, checks.check_pairing, checks.check_dtypes),
    *(checks.check_untouched, checks.check_contiguity, checks.check_cotangent_derivative),
]
DOUBLE_CHECKS = [
    *(checks.check_vjp, checks.check_jvp, checks.check_second_order, checks.check_third_order),
    *(checks.check_forward_over_forward, checks.check_taylor),
]


def test_every_primitive_has_a_row() -> None:
    names = {name for name in TABLE if name.startswith("comm_")}
    assert names == {row.primitive for row in ROWS}
    assert len(names) == 11


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_rows(check: Callable[..., None]) -> None:
    checks.demand(check, CASES)


@pytest.mark.parametrize("check", DOUBLE_CHECKS, ids=lambda check: check.__name__)
def test_rows_in_double_precision(check: Callable[..., None]) -> None:
    checks.demand(check, [case for case in CASES if case.dtype in ("float64", "complex128")])


# --- several ranks --------------------------------------------------------------------------------

RANKS = 3


def neighbours(comm: Communicator) -> tuple[int | None, int | None]:
    """Return the ranks on the left and on the right; None at an end."""
    left = comm.rank - 1 if comm.rank else None
    return left, comm.rank + 1 if comm.rank < comm.size - 1 else None


def shift(comm: Communicator, x: Any) -> Any:
    left, right = neighbours(comm)
    return comm.sendrecv(x, right, left)


def around(comm: Communicator, x: Any) -> Any:
    """Send to the right by messages, connected so that every derivative finds its way."""
    sent = comm.send(x, (comm.rank + 1) % comm.size)
    return connect(comm.recv((comm.rank - 1) % comm.size, after=x), sent)


def shifted(parts: list[Any]) -> list[Any]:
    return [np.zeros_like(parts[0]), *parts[:-1]]


def summed(parts: list[Any]) -> Any:
    return np.sum(parts, axis=0)


EXCHANGES: dict[str, tuple[Any, Any, Any]] = {
    # the call, the shape of a rank's tensor, all ranks' results from all ranks' tensors
    "allreduce": (lambda c, x: c.allreduce(x), lambda r: (2, 3), lambda xs: [summed(xs)] * RANKS),
    "mean": (lambda c, x: c.allreduce(x, "mean"), lambda r: (2,), lambda xs: [summed(xs) / 3] * 3),
    "prod": (
        lambda c, x: c.allreduce(x, "prod"),
        lambda r: (2, 3),
        lambda xs: [np.prod(xs, axis=0)] * RANKS,
    ),
    "max": (lambda c, x: c.allreduce(x, "max"), lambda r: (), lambda xs: [max(xs)] * RANKS),
    "min": (lambda c, x: c.allreduce(x, "min"), lambda r: (4,), lambda xs: [np.min(xs, 0)] * 3),
    "reduce": (
        lambda c, x: c.reduce(x, 1),
        lambda r: (2, 3),
        lambda xs: [0 * xs[0], summed(xs), 0 * xs[0]],
    ),
    "bcast": (lambda c, x: c.bcast(x, 2), lambda r: (3,), lambda xs: [xs[2]] * RANKS),
    "allgather": (
        lambda c, x: c.allgather(x, -1),
        lambda r: (2, r + 1),
        lambda xs: [np.concatenate(xs, 1)] * RANKS,
    ),
    "reduce_scatter": (
        lambda c, x: c.reduce_scatter(x, 1, sizes=[0, 1, 3]),
        lambda r: (2, 4),
        lambda xs: np.split(summed(xs), [0, 1], 1),
    ),
    "reduce_scatter-equal": (
        lambda c, x: c.reduce_scatter(x),
        lambda r: (6, 2),
        lambda xs: np.split(summed(xs), 3),
    ),
    "gather": (
        lambda c, x: c.gather(x, 1, 2),
        lambda r: (2, r),
        lambda xs: [np.zeros((2, 0)), np.zeros((2, 0)), np.concatenate(xs, 1)],
    ),
    "scatter": (
        lambda c, x: c.scatter(x, 0, 1, sizes=[2, 0, 1]),
        lambda r: (3, 2),
        lambda xs: np.split(xs[1], [2, 2]),
    ),
    "alltoall": (
        lambda c, x: c.alltoall(x, 0, 1),
        lambda r: (6, 2),
        lambda xs: [np.concatenate([x[2 * r : 2 * r + 2] for x in xs], 1) for r in range(3)],
    ),
    "sendrecv": (shift, lambda r: (2, 2), shifted),
    "send-recv": (around, lambda r: (3,), lambda xs: [xs[-1], *xs[:-1]]),
}


def numbers(rank: int, *shape: int) -> np.ndarray:
    return np.random.default_rng([rank, *shape]).normal(size=shape)


@pytest.mark.parametrize("name", EXCHANGES)
def test_values(name: str) -> None:
    call, shape, wanted = EXCHANGES[name]
    parts = [numbers(rank, *shape(rank)) for rank in range(RANKS)]
    results = run_ranks(lambda comm: call(comm, cr.tensor(parts[comm.rank])), RANKS)
    arrays = run_ranks(lambda comm: call(comm, parts[comm.rank]), RANKS)
    for got, array, value in zip(results, arrays, wanted(parts), strict=True):
        np.testing.assert_allclose(got.numpy(), value, rtol=1e-14)
        assert isinstance(array, np.ndarray)
        np.testing.assert_array_equal(array, got.numpy())


@pytest.mark.parametrize("name", EXCHANGES)
def test_both_modes_agree_over_all_ranks(name: str) -> None:
    """⟨g, J t⟩ = ⟨Jᵀ g, t⟩, and second derivatives are the same in three modes."""
    call, shape, _ = EXCHANGES[name]

    def program(comm: Communicator) -> tuple[float, float]:
        def function(x: cr.Tensor) -> cr.Tensor:
            return (call(comm, x * x) + 0.5).sin()

        x, t = [cr.tensor(numbers(comm.rank + i, *shape(comm.rank))) for i in (0, 10)]
        y, dy = cr.jvp(function, x, t)
        g = cr.tensor(numbers(comm.rank, *y.shape))
        gx = cr.vjp(function, x)[1](g)

        def loss(x: cr.Tensor) -> cr.Tensor:
            return (function(x) * g).sum()

        leaf = x.clone().requires_grad_()
        (first,) = cr.autograd_grad(loss(leaf), [leaf], create_graph=True)
        (reverse_reverse,) = cr.autograd_grad((first * t).sum(), [leaf])
        forward_reverse = cr.jvp(cr.grad(loss), x, t)[1]
        reverse_forward = cr.grad(lambda x: cr.jvp(loss, x, t)[1])(x)
        for other in (forward_reverse, reverse_forward):
            np.testing.assert_allclose(reverse_reverse.numpy(), other.numpy(), 1e-12, 1e-14)
        return float((g * dy).sum()), float((gx * t).sum())

    forward, reverse = np.sum(run_ranks(program, RANKS), axis=0)
    np.testing.assert_allclose(forward, reverse, rtol=1e-12)


@pytest.mark.parametrize("name", EXCHANGES)
def test_vmap_passes_the_batch_through(name: str) -> None:
    call, shape, _ = EXCHANGES[name]

    def program(comm: Communicator) -> None:
        def loss(x: cr.Tensor) -> cr.Tensor:
            return (call(comm, x * x) + 0.5).sin().sum()

        batch = cr.tensor(numbers(comm.rank, 4, *shape(comm.rank)))
        for function in (loss, cr.grad(loss)):
            wanted = [function(x).numpy() for x in batch]
            np.testing.assert_allclose(cr.vmap(function)(batch).numpy(), wanted, 1e-12, 1e-14)

    run_ranks(program, RANKS)


# A program of exchanges, once by ranks and once of all ranks' tensors in one process.
STEPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "allreduce": (lambda c, x: c.allreduce(x), lambda xs: [sum(xs)] * len(xs)),
    "bcast": (lambda c, x: c.bcast(x, c.size - 1), lambda xs: [xs[-1]] * len(xs)),
    "reduce": (lambda c, x: c.reduce(x), lambda xs: [sum(xs), *[0 * x for x in xs[1:]]]),
    "shift": (shift, lambda xs: [0 * xs[0], *xs[:-1]]),
    "around": (around, lambda xs: [xs[-1], *xs[:-1]]),
    "own": (lambda c, x: x * (c.rank + 1), lambda xs: [x * (i + 1) for i, x in enumerate(xs)]),
    "freeze": (
        lambda c, x: x.detach() if c.rank == 0 else x,
        lambda xs: [xs[0].detach(), *xs[1:]],
    ),
    "max": (
        lambda c, x: c.allreduce(x, "max"),
        lambda xs: [cr.stack(list(xs)).amax(0)] * len(xs),
    ),
    "gather": (
        lambda c, x: c.reduce_scatter(c.allgather(x.sin())),
        lambda xs: [len(xs) * x.sin() for x in xs],
    ),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=6), st.integers(1, 4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_program_has_the_gradients_of_the_whole(
    names: Sequence[str], ranks: int, skips: bool
) -> None:
    starts = [numbers(rank, 2) for rank in range(ranks)]

    def program(comm: Communicator) -> Any:
        x = y = cr.tensor(starts[comm.rank], requires_grad=True)
        for name in names:
            z = STEPS[name][0](comm, y).cos()
            if skips and comm.rank == 0 and name != "freeze":
                z = connect(cr.ones(2, dtype=cr.float64), z)  # what was received isn't used
            y = z
        (y * (comm.rank + 1)).sum().backward()
        return x.grad.numpy()

    xs = [cr.tensor(start, requires_grad=True) for start in starts]
    ys = list(xs)
    for name in names:
        ys = [y.cos() for y in STEPS[name][1](ys)]
        if skips and name != "freeze":
            ys[0] = cr.ones(2, dtype=cr.float64)
    loss = sum([(y * (rank + 1)).sum() for rank, y in enumerate(ys)])
    wanted = [np.zeros(2)] * ranks
    if loss.requires_grad:
        grads = cr.autograd_grad(loss, xs, allow_unused=True, materialize_grads=None)
        wanted = [np.zeros(2) if g is None else g.numpy() for g in grads]
    for got, value in zip(run_ranks(program, ranks), wanted, strict=True):
        np.testing.assert_allclose(got, value, 1e-10, 1e-12)
