"""The communicator: derivatives over all ranks, models that are split, and faults."""

from __future__ import annotations

import copy
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.distributed import Communicator, connect, run_ranks
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
    found = comm.recv((comm.rank - 1) % comm.size)
    return connect(found, sent) if isinstance(x, cr.Tensor) else found.numpy()


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
    "bcast-none": (
        lambda c, x: c.bcast(x if c.rank == 2 else None, 2) * x,
        lambda r: (3,),
        lambda xs: [xs[2] * x for x in xs],
    ),
    "scatter-none": (
        lambda c, x: c.scatter(x if c.rank == 1 else None, root=1) * x[0],
        lambda r: (3, 2),
        lambda xs: [xs[1][r : r + 1] * xs[r][0] for r in range(RANKS)],
    ),
    "constants": (
        lambda c, x: c.allreduce(x if c.rank else x**0) * x,
        lambda r: (),
        lambda xs: [(1 + sum(xs[1:])) * x for x in xs],
    ),
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
        np.testing.assert_allclose(got.numpy(), value, rtol=1e-13)
        assert isinstance(array, np.ndarray | np.generic) or "none" in name
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
        lambda c, x: connect(x.detach(), x) if c.rank == 0 else x,
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
    wanted = cr.autograd_grad(loss, xs, materialize_grads=True)
    for got, value in zip(run_ranks(program, ranks), wanted, strict=True):
        np.testing.assert_allclose(got, value.numpy(), 1e-10, 1e-12)


# --- models that are split over ranks -------------------------------------------------------------


def layers(seed: int = 0) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    shapes = [(5, 4), (6, 4), (6,), (2, 6)]
    return tuple(cr.tensor(rng.normal(size=shape)) for shape in shapes)


def whole_network(x: Any, first: Any, bias: Any, second: Any) -> Any:
    return (((x @ first.T + bias).tanh() @ second.T) ** 2).mean()


def part(t: Any, comm: Communicator, dim: int = 0) -> Any:
    return t.chunk(comm.size, dim)[comm.rank]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_network_split_by_outputs_and_then_by_inputs(ranks: int) -> None:
    """Megatron's layout: the first layer by rows, the second by columns, one sum at the end."""
    x, first, bias, second = layers()
    wanted = cr.grad(whole_network, argnums=(0, 1, 2, 3))(x, first, bias, second)

    def program(comm: Communicator) -> Any:
        def loss(x: Any, first: Any, bias: Any, second: Any) -> Any:
            hidden = (x @ first.T + bias).tanh()
            return (comm.allreduce(hidden @ second.T) ** 2).mean() / comm.size

        own = part(first, comm), part(bias, comm), part(second, comm, 1)
        return cr.grad(loss, argnums=(0, 1, 2, 3))(x, *own)

    by_rank = run_ranks(program, ranks)
    np.testing.assert_allclose(sum(g[0] for g in by_rank).numpy(), wanted[0].numpy(), rtol=1e-12)
    for i, dim in ((1, 0), (2, 0), (3, 1)):
        joined = cr.cat([grads[i] for grads in by_rank], dim)
        np.testing.assert_allclose(joined.numpy(), wanted[i].numpy(), rtol=1e-12)


def diffuse(u: Any, left: Any, right: Any) -> Any:
    padded = cr.cat([left, u, right])
    return u + 0.1 * (padded[2:] - 2 * u + padded[:-2]) - 0.05 * u**3


def test_a_stencil_with_halo_exchange() -> None:
    start = cr.tensor(np.random.default_rng(1).normal(size=12))

    def whole(u: Any) -> Any:
        for _ in range(5):
            u = diffuse(u, cr.zeros(1, dtype=u.dtype), cr.zeros(1, dtype=u.dtype))
        return (u**2).sum()

    def program(comm: Communicator) -> Any:
        left, right = neighbours(comm)

        def loss(u: Any) -> Any:
            for _ in range(5):
                u = diffuse(
                    u, comm.sendrecv(u[-1:], right, left), comm.sendrecv(u[:1], left, right)
                )
            return (u**2).sum()

        own = part(start, comm)
        direction = cr.ones_like(own)
        return cr.grad(loss)(own), cr.jvp(cr.grad(loss), own, direction)[1]

    grads, products = zip(*run_ranks(program, 4), strict=True)
    wanted = cr.jvp(cr.grad(whole), start, cr.ones_like(start))
    np.testing.assert_allclose(cr.cat(list(grads)).numpy(), wanted[0].numpy(), rtol=1e-12)
    np.testing.assert_allclose(cr.cat(list(products)).numpy(), wanted[1].numpy(), rtol=1e-12)


@pytest.mark.parametrize("by_transform", [True, False])
def test_a_pipeline_of_two_stages(by_transform: bool) -> None:
    x, first, bias, second = layers()

    def program(comm: Communicator) -> Any:
        def stage(*weights: Any) -> Any:
            if comm.rank == 0:
                first, bias = weights
                micro_batches = x.chunk(2)
                return sum([comm.send((each @ first.T + bias).tanh(), 1) for each in micro_batches])
            outputs = [comm.recv(0) @ weights[0].T for _ in range(2)]
            return (cr.cat(outputs) ** 2).mean()

        own = (first, bias) if comm.rank == 0 else (second,)
        if by_transform:  # of the received, nothing leads to the weights of the second stage
            return cr.grad(stage, argnums=tuple(range(len(own))))(*own)
        leaves = [weight.clone().requires_grad_() for weight in own]
        stage(*leaves).backward()
        return [leaf.grad for leaf in leaves]

    (got_first, got_bias), (got_second,) = run_ranks(program, 2)
    wanted = cr.grad(whole_network, argnums=(1, 2, 3))(x, first, bias, second)
    for got, value in zip((got_first, got_bias, got_second), wanted, strict=True):
        np.testing.assert_allclose(got.numpy(), value.numpy(), rtol=1e-12)


def test_a_grid_of_groups() -> None:
    def program(comm: Communicator) -> Any:
        row, column = comm.split(comm.rank // 2), comm.split(comm.rank % 2, -comm.rank)
        x = cr.tensor(float(comm.rank), requires_grad=True)
        (row.allreduce(x) * column.allgather(x[None])[0]).backward()
        return (row.rank, column.rank), x.grad.item()

    # Rows 0 1 and 2 3, columns 2 0 and 3 1; the loss is 1·2 + 1·3 + 5·2 + 5·3.
    assert run_ranks(program, 4) == [
        ((0, 1), 5.0),
        ((1, 1), 5.0),
        ((0, 0), 5.0 + 6.0),
        ((1, 0), 5.0 + 6.0),
    ]


# --- recording ------------------------------------------------------------------------------------


def test_an_exchange_is_recorded_where_any_rank_needs_it() -> None:
    def program(comm: Communicator) -> Any:
        x = cr.ones(2, requires_grad=comm.rank == 1)
        y = comm.allreduce(x)
        y.sum().backward()
        constant = comm.allreduce(cr.ones(2))
        with cr.no_grad():
            silent = comm.allreduce(x)
        shifted = shift(comm, x)
        return x.grad, y.requires_grad, constant.requires_grad, silent.requires_grad, shifted

    results = run_ranks(program, 3)
    assert [r[0] is not None for r in results] == [False, True, False]
    assert results[1][0].tolist() == [3.0, 3.0]
    assert [r[1:4] for r in results] == [(True, False, False)] * 3
    assert [r[4].requires_grad for r in results] == [False, True, True]


def test_gradients_of_a_shift_go_back_only_where_one_is_needed() -> None:
    def program(comm: Communicator) -> Any:
        x = cr.tensor(2.0, requires_grad=comm.rank == 1)
        y = shift(comm, x) * (comm.rank + 1)
        if y.requires_grad:
            y.backward()
        return None if x.grad is None else x.grad.item()

    assert run_ranks(program, 4) == [None, 3.0, None, None]


def test_tangents_of_a_shift_go_only_where_there_are_some() -> None:
    def program(comm: Communicator) -> Any:
        def function(x: Any) -> Any:
            return shift(comm, x if comm.rank == 1 else x.detach()) * x

        return cr.jvp(function, cr.tensor(2.0), cr.tensor(1.0))[1].item()

    assert run_ranks(program, 4) == [0.0, 2.0, 4.0, 2.0]


def test_a_derivative_that_one_side_has_no_use_for_is_recorded_on_neither() -> None:
    def program(comm: Communicator) -> Any:
        x, w = (cr.tensor(2.0, requires_grad=True) for _ in range(2))
        if comm.rank:
            (comm.recv(0) * 5.0).backward(create_graph=True)  # linear: 5 is a constant
            return None
        found = cr.autograd_grad(comm.send(x, 1) * w + x**2 * w, [x, w], create_graph=True)
        return found[0].item(), cr.autograd_grad(found[0], [w])[0].item()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of cycles by create_graph
        assert run_ranks(program, 2)[0] == (13.0, 4.0)


def test_ranks_share_no_memory() -> None:
    def program(comm: Communicator) -> Any:
        x = cr.arange(2.0) + comm.rank
        results = [comm.bcast(x), comm.allreduce(x), comm.sendrecv(x, 1 - comm.rank, 1 - comm.rank)]
        comm.send(x, 1 - comm.rank)
        x.fill_(7.0)
        comm.barrier()
        results.append(comm.recv(1 - comm.rank))
        if comm.rank:
            for each in results:
                each.fill_(9.0)
        comm.barrier()
        return [each.tolist() for each in results]

    first, second = run_ranks(program, 2)
    assert first == [[0.0, 1.0], [1.0, 3.0], [1.0, 2.0], [1.0, 2.0]]
    assert second == [[9.0, 9.0]] * 4


def test_modes_are_those_of_the_caller() -> None:
    with cr.no_grad():
        assert run_ranks(lambda comm: cr.is_grad_enabled(), 2) == [False, False]
    assert run_ranks(lambda comm: cr.is_grad_enabled(), 2) == [True, True]


def test_an_inner_derivative_leaves_outer_exchanges_alone() -> None:
    def program(comm: Communicator) -> Any:
        x = cr.tensor(2.0, requires_grad=True)
        y = comm.allreduce(x)
        if comm.rank == 0:  # alone: the exchange isn't part of it
            assert cr.grad(lambda z: z * y)(cr.tensor(1.0)).item() == 4.0
        y.backward()
        return x.grad.item()

    assert run_ranks(program, 2) == [2.0, 2.0]


def test_no_copy_of_a_communicator() -> None:
    comm = cr.distributed.world()
    assert (comm.rank, comm.size) == (0, 1)
    assert copy.deepcopy([comm])[0] is comm
    assert repr(comm) == "<rank 0 of 1>"


# --- faults ---------------------------------------------------------------------------------------


def one(comm: Communicator, n: int = 2) -> cr.Tensor:
    return cr.ones(n, requires_grad=True)


FAULTS: dict[str, tuple[Callable[[Communicator], Any], type[Exception], str]] = {
    "shapes": (
        lambda c: c.allreduce(one(c, 2 + c.rank)),
        CommunicationError,
        r"rank 0 calls allreduce of float32 \[2\]; rank 1 calls allreduce of float32 \[3\]",
    ),
    "dtypes": (lambda c: c.bcast(cr.arange(2) if c.rank else one(c)), CommunicationError, "int64"),
    "names": (
        lambda c: c.bcast(one(c)) if c.rank else c.reduce(one(c)),
        CommunicationError,
        "rank 0 calls reduce .*, root=0; rank 1 calls bcast",
    ),
    "roots": (lambda c: c.bcast(one(c), root=c.rank), CommunicationError, "root=1"),
    "ranks": (lambda c: c.allgather(one(c)[None] if c.rank else one(c)), CommunicationError, "2"),
    "vmap": (
        lambda c: cr.vmap(c.allreduce)(cr.ones(3, 2)) if c.rank else c.allreduce(cr.ones(2)),
        CommunicationError,
        r"rank 1 calls allreduce of float32 \[2\] under vmap of \(3,\)",
    ),
    "one is missing": (
        lambda c: c.allreduce(one(c)) if c.rank else None,
        CommunicationError,
        r"deadlock: rank 0 has ended; rank 1 waits in allreduce of float32 \[2\]",
    ),
    "both receive": (
        lambda c: c.recv(1 - c.rank, tag=3),
        CommunicationError,
        "rank 0 waits in recv from rank 1, tag 3; rank 1 waits",
    ),
    "another order": (
        lambda c: (c.allreduce(one(c)), c.recv(0)) if c.rank else (c.recv(1), c.allreduce(one(c))),
        CommunicationError,
        "deadlock: rank 0 waits in recv from rank 1; rank 1 waits in allreduce",
    ),
    "a message is left": (
        lambda c: c.send(one(c), 0) if c.rank else None,
        CommunicationError,
        r"rank 0 never received what rank 1 sent by send of float32 \[2\], tag 0",
    ),
    "backward of the sender alone": (
        lambda c: c.recv(1) if c.rank == 0 else c.send(one(c), 0).backward(),
        CommunicationError,
        "connect what a rank sends or receives with its loss",
    ),
    "backward of the receiver alone": (
        lambda c: c.recv(1).sum().backward() if c.rank == 0 else (c.send(one(c), 0), None)[1],
        CommunicationError,
        "rank 1 never received what rank 0 sent .* if it is a gradient, connect what rank 1 sent",
    ),
    "one under no_grad": (
        lambda c: cr.no_grad()(c.allreduce)(one(c)) if c.rank else c.allreduce(one(c)),
        CommunicationError,
        "rank 0 records allreduce .* rank 1, which doesn't record: let all ranks pass tensors",
    ),
    "receiver under no_grad": (
        lambda c: cr.no_grad()(c.recv)(0) if c.rank else c.send(one(c), 1),
        CommunicationError,
        "rank 0 records send .* rank 1, which doesn't record",
    ),
    "receiver under vmap": (
        lambda c: cr.vmap(lambda x: c.recv(0) * x)(cr.ones(3)) if c.rank else c.send(1.0, 1),
        CommunicationError,
        r"rank 1 receives it under vmap of \(3,\)",
    ),
    "shapes of sendrecv": (
        lambda c: c.sendrecv(one(c, 2 + c.rank), 1 - c.rank, 1 - c.rank),
        CommunicationError,
        r"rank \d sends float32 .* shapes must be equal; send and recv take any",
    ),
    "the root has nothing": (lambda c: c.bcast(None), TypeError, "the root must pass a tensor"),
    "a failure": (lambda c: c.barrier() if c.rank else 1 / 0, ZeroDivisionError, "division"),
    "bool": (lambda c: c.allreduce(cr.ones(2) > 0), TypeError, "sums of bool are counts"),
    "op": (lambda c: c.allreduce(one(c), "xor"), ValueError, "one of sum, mean, prod, max, min"),
    "no such rank": (lambda c: c.send(one(c), 2), ValueError, "dest=2: ranks are from 0 to 1"),
    "no such axis": (lambda c: c.allgather(cr.tensor(1.0)), ValueError, "axis=0 is out of range"),
    "parts": (lambda c: c.reduce_scatter(one(c, 3)), ValueError, "into 2 equal parts: pass sizes="),
    "sizes": (
        lambda c: c.scatter(one(c, 3), sizes=[1, 1]),
        ValueError,
        "sizes must be 2 lengths with the sum 3",
    ),
    "parts of all": (lambda c: c.alltoall(one(c, 3)), ValueError, "into 2 equal parts: pad it"),
    "compiled": (
        lambda c: cr.compile(lambda x: c.allreduce(x) * 2)(cr.ones(2)),
        cr.CompileError,
        "a compiled function can't communicate",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_errors_on_all_ranks(name: str) -> None:
    program, kind, text = FAULTS[name]
    with pytest.raises(kind, match=text) as raised:
        run_ranks(program, 2)
    assert isinstance(raised.value, kind)
    assert not [t for t in threading.enumerate() if t.name.startswith("rank ")]


def test_the_others_learn_of_a_failure() -> None:
    seen = []

    def program(comm: Communicator) -> None:
        if comm.rank == 1:
            raise KeyError("missing")
        try:
            comm.recv(1)
        except CommunicationError as error:
            seen.append(str(error))
            raise

    with pytest.raises(KeyError, match="missing") as raised:
        run_ranks(program, 3)
    assert raised.value.__notes__ == ["On rank 1 of 3."]
    assert len(seen) == 2
    assert all("rank 1 raised KeyError: 'missing'" in text for text in seen)


def test_the_number_of_ranks_is_positive() -> None:
    with pytest.raises(ValueError, match="ranks must be positive, got 0"):
        run_ranks(lambda comm: None, 0)


def test_names_of_pytorch_lead_here() -> None:
    with pytest.raises(AttributeError, match=r"it is a method of cr\.distributed\.world\(\)"):
        cr.distributed.scatter  # noqa: B018 - its absence is the point


# --- processes of MPI -----------------------------------------------------------------------------

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


needs_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py and mpiexec"
)


@needs_mpi
def test_mpi_gives_what_threads_give() -> None:
    """Each exchange, its derivatives and a fault, in two processes and in two threads."""
    script = Path(__file__).with_name("mpi_program.py")
    command = [str(MPIEXEC), "-n", "2", sys.executable, str(script)]
    output = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    threads = subprocess.run(
        [sys.executable, str(script), "threads"], capture_output=True, text=True, check=True
    ).stdout
    assert output.splitlines() == threads.splitlines()
    assert output.count("\n") > 20


@needs_mpi
def test_processes_train_as_one_does_on_all_data() -> None:
    script = [sys.executable, str(Path(__file__).with_name("ddp_program.py"))]
    found, alone = (
        subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
        for command in ([str(MPIEXEC), "-n", "2", *script], script)
    )
    np.testing.assert_allclose(
        [float(v) for v in found.split()], [float(v) for v in alone.split()], atol=1e-4
    )
    assert len(alone.split()) == 4


def test_a_process_group_is_told_how_many_processes_there_are() -> None:
    dist = cr.distributed
    for call in (dist.get_rank, dist.get_world_size, dist.barrier):
        with pytest.raises(cr.ArgumentError, match=r"make sure to call init_process_group"):
            call()
    with pytest.raises(cr.CommunicationError, match=r"2 processes are expected.* mpiexec -n 2"):
        dist.init_process_group("nccl", world_size=2, rank=0)
    dist.init_process_group("nccl", world_size=1, rank=0)
    try:
        assert (dist.is_initialized(), dist.get_backend()) == (True, "mpi")
        with pytest.raises(cr.CommunicationError, match="twice"):
            dist.init_process_group()
    finally:
        dist.destroy_process_group()


IN_VAIN = {
    "ended": "rank 1 has ended; rank 2 waits in allreduce of float32 [2]",
    "message": "rank 0 waits in recv from rank 1, tag 4; rank 1 has ended",
    "circle": "rank 1 waits in recv from rank 2; rank 2 waits in recv from rank 0",
    "kinds": "rank 0 waits in recv from rank 1; rank 1 waits in barrier",
    "part": "rank 0 waits in barrier; rank 1 waits in barrier; rank 2 has ended",
    "gradient": "rank 0 waits in allreduce of float32 [2]; rank 1 has ended",
    "unreceived": "rank 0 waits in send, at its end; rank 1 has ended; rank 2 has ended",
    "long": "",
    "late": "",
}
"""What the ranks that wait in vain say for each fault of ``mpi_faults.py``."""


@needs_mpi
@pytest.mark.parametrize(
    "fault",
    [
        "ended",
        "late",
        *[pytest.param(f, marks=pytest.mark.thorough) for f in [*IN_VAIN][1:-1]],
    ],
)
def test_mpi_waits_in_vain_are_errors(fault: str) -> None:
    """The first rank that knows ends the others, so not all of them need to say it."""
    script = Path(__file__).with_name("mpi_faults.py")
    command = [str(MPIEXEC), "-n", "3", sys.executable, str(script), fault]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    said = re.findall(r"^\d: (.*)$", run.stdout, re.MULTILINE)
    if IN_VAIN[fault]:
        wrong = [line for line in (run.stdout + run.stderr).split("\n") if "deadlock:" in line]
        assert run.returncode
        assert wrong
        assert all(IN_VAIN[fault] in line for line in wrong), run.stdout + run.stderr
    else:
        assert said == ["done"] * 3, run.stdout + run.stderr


# --- the example ----------------------------------------------------------------------------------


def test_the_example_trains_as_one_rank_does() -> None:
    spec = importlib.util.spec_from_file_location("split_model", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    losses = example.main()
    (alone,) = run_ranks(example.train, 1)
    np.testing.assert_allclose(losses, alone[0], rtol=1e-6)
    assert losses[-1] < losses[0] / 20


# --- random numbers -------------------------------------------------------------------------------


def _numbers(comm: Any) -> list[float]:
    drawn = []
    for _ in range(20):  # so many that threads alternate
        drawn.append(cr.rand(()).item())
        comm.allreduce(0)
    found: list[float] = drawn
    return found


def test_each_rank_has_a_default_generator_as_a_process_has() -> None:
    def seeds_itself(comm: Any) -> list[float]:
        cr.manual_seed(3)
        return _numbers(comm)

    first, second, third = cr.distributed.run_ranks(seeds_itself, 3)
    cr.manual_seed(3)
    assert first == second == third == _numbers(cr.distributed.run_ranks(lambda comm: comm, 1)[0])
    cr.manual_seed(3)
    assert cr.distributed.run_ranks(_numbers, 2) == [first, first]
    assert cr.distributed.run_ranks(_numbers, 2) != [first, first]  # it goes on

    def rank_seeds(comm: Any) -> list[float]:
        cr.manual_seed(comm.rank)
        return _numbers(comm)

    zeroth, other = cr.distributed.run_ranks(rank_seeds, 2)
    assert zeroth != other
    assert cr.distributed.run_ranks(rank_seeds, 2) == [zeroth, other]


def test_ranks_of_an_unseeded_program_draw_different_numbers() -> None:
    cr.seed()
    first, second = cr.distributed.run_ranks(_numbers, 2)
    assert first != second


def test_a_compiled_function_draws_from_the_generator_of_its_rank() -> None:
    noisy = cr.compile(lambda x: x + cr.rand(2))

    def program(comm: Any) -> Any:
        cr.manual_seed(comm.rank)
        found = [noisy(cr.zeros(2)).tolist() for _ in range(3)]
        cr.manual_seed(comm.rank)
        return found == [cr.rand(2).tolist() for _ in range(3)]

    noisy(cr.zeros(2))
    assert cr.distributed.run_ranks(program, 2) == [True, True]
