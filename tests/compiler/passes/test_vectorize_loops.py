"""Loop vectorisation: independent products with one matrix become a single matrix product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import build, passes
from chainrule.compiler.ir.program import every_op


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    optimize = passes.optimize
    monkeypatch.setattr(build, "optimize", lambda program: optimize(program, check=True))


def numbers(*shape: int, seed: int = 0, **options: Any) -> cr.Tensor:
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    return cr.tensor(values, dtype="float64", **options)


def functions(function: Callable[..., Any], *args: Any) -> Counter[str]:
    """Return the counts of the functions that a program calls, after comparing it with eager."""
    compiled = cr.compile(function, backend="numpy")
    for _ in range(2):
        got, wanted = compiled(*args).detach(), function(*args).detach()
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-10, atol=1e-12)
    return Counter(op.function for op in every_op(compiled.program.programs[0].ops))


MATRIX = numbers(60, 40, seed=1)
WEIGHTS = numbers(40, requires_grad=True)


def rows(values: Any, x: Any) -> Any:
    return cr.stack([cr.autograd_grad(v, x, retain_graph=True)[0] for v in values])


def hessian(function: Callable[..., Any]) -> Callable[..., Any]:
    def found(x: Any, *others: Any) -> Any:
        (slope,) = cr.autograd_grad(function(x, *others).sum(), x, create_graph=True)
        return rows(slope, x)

    return found


@pytest.mark.parametrize(
    "function",
    [
        lambda w, a: (a @ w).sin(),
        lambda w, a: cr.log(1 + cr.exp(a @ w)) * cr.tanh(w).sum(),
        lambda w, a: (w @ a.T).pow(3).mean(),
        lambda w, a: cr.logsumexp((a @ w)[10:] * 2, 0) + w[::2].pow(2).sum(),
        lambda w, a: (a @ w.reshape(40, 1)).sin().reshape(6, 10).amax(1),
        lambda w, a: cr.where(a @ w > 0, (a @ w).exp(), a @ w),
    ],
)
def test_hessians(function: Callable[..., Any]) -> None:
    found = functions(hessian(function), WEIGHTS, MATRIX)
    assert found["for"] == 0
    assert found["np.matmul"] <= 4


@pytest.mark.parametrize(
    "function",
    [
        lambda w, a: (a @ w).sin(),
        lambda w, a: (w @ a.T).softmax(0) * w[3],
        lambda w, a: (a @ w.sin()) / (a @ w.cos()).pow(2).sum(),
        lambda w, a: a @ cr.cat([w[:20].sin(), w[20:]]) + cr.stack([w[0], w[1]]).sum(),
        lambda w, a: (a @ w).reshape(6, 10).T.flatten() * w.clone().mul_(2)[3],
    ],
)
def test_jacobians(function: Callable[..., Any]) -> None:
    found = functions(lambda w, a: rows(function(w, a), w), WEIGHTS, MATRIX)
    assert found["for"] == 0


def test_a_scan_is_vectorised() -> None:
    def products(vectors: Any, a: Any) -> Any:
        _, found = cr.scan(lambda carry, v: (carry, (a @ v).exp().sum(0) + v), (), vectors)
        return found

    found = functions(products, numbers(12, 40), MATRIX)
    assert (found["for"], found["np.matmul"]) == (0, 1)


def test_results_can_be_differentiated_outside() -> None:
    def jacobian(w: Any, a: Any) -> Any:
        values = (a @ w).sin()
        return cr.stack([cr.autograd_grad(v, w, create_graph=True)[0] for v in values])

    slopes = [
        cr.autograd_grad(function(WEIGHTS, MATRIX).pow(2).sum(), WEIGHTS)[0]
        for function in (jacobian, cr.compile(jacobian, backend="numpy"))
    ]
    np.testing.assert_allclose(*slopes, rtol=1e-10)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: [(a @ v) @ (a @ v) for v in numbers(12, 40)],  # both operands vary
        lambda a: [a[:10, :10] @ v for v in numbers(12, 10)],  # a matrix that stays in the cache
        lambda a: [(a * i) @ v for i, v in enumerate(numbers(12, 40))],  # the matrix varies
        lambda a: [(a @ v).sort()[0] for v in numbers(12, 40)],  # sort has no batch rule
    ],
)
def test_other_loops_are_not_vectorised(function: Callable[..., Any]) -> None:
    functions(lambda a: cr.stack(function(a)), MATRIX)


def test_loops_with_too_large_batches_are_not_vectorised(monkeypatch: pytest.MonkeyPatch) -> None:
    from chainrule.compiler.passes import vectorize_loops

    monkeypatch.setattr(vectorize_loops, "MAX_BATCH_SIZE", 60)
    found = functions(hessian(lambda w, a: (a @ w).sin()), WEIGHTS, MATRIX)
    assert found["for"] == 1


def test_random_numbers_are_drawn_in_each_step() -> None:
    @cr.compile(backend="numpy")
    def noisy(a: Any, vectors: Any) -> Any:
        _, found = cr.scan(lambda c, v: (c, a @ v + cr.randn(60)), (), vectors)
        return found

    found = noisy(MATRIX, cr.zeros(12, 40, dtype="float64"))
    assert len(np.unique(found.numpy())) == found.numel()
