"""Operations on arrays that record: their class, beside other operands, and all derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy as xp

X = np.array([0.3, -0.7, 1.1, 0.4])
A = np.arange(16.0).reshape(4, 4) / 16

EXPRESSIONS = """
x * 1.5 + 2 | 2 / (x + 3) | x**2 * X | X * x | X - x | A @ x | x @ A | x[1] * x | (x * x)[::-1]
np.sin(x) | np.exp(-x) | np.maximum(x, 0.0) * x | np.where(x > 0, x, 0.1 * x) * x
np.where(X > 0, x * x, x) | x / x.sum() | np.sum(x * x, 0) * x | x.reshape(2, 2).T.reshape(4) * x
np.concatenate([x, X])[2:6] * x | np.stack([x * x, x])[:, 0] | np.dot(A, x) * x | np.prod(x) * x
np.outer(x, x).mean(axis=1) | np.cumsum(x * x) | np.clip(x, -0.5, 0.5) * x | np.hypot(x, 1.0)
np.roll(x, 1) * x | np.einsum('i,ij->j', x, A) * x | np.take(x, [0, 0, 2, 1]) * x | -x * abs(x)
np.diff(x * x) | np.linalg.solve(A + 3 * np.eye(4), x) * x
np.add(X, x, out=np.ones(4) * x) * x | np.max(x) * x | x.var() * x | np.tensordot(A, x, 1) * x
xp.array([[x[0], 1], [2.0, x[3]]]) @ x[1:3] | xp.array([[[x[0]]], [[x[1] * 2j]]]).imag
np.repeat(x, 2) * 2 | (np.cumsum(x * x) * 1j * x).imag | x[:2].T @ x[:2].reshape(2, 1)
np.tile(x, 2) | np.append(x, 2) ** 2 | xp.array([[x[0], x[1]], [x[2], 3]]).ravel() * x
np.sort(x) * x | np.float32(2) * x * x | np.arange(4) * x * x | x.astype(complex).real * x
"""
CODES = [code.strip() for code in EXPRESSIONS.replace("\n", "|").split("|") if code.strip()]


def total(x: Any) -> Any:
    """Return one number of all expressions, of which each counts with another factor."""
    scope = {"np": np, "xp": xp, "x": x, "X": X, "A": A}
    return sum([np.sum(np.sin((k + 1) * eval(code, scope))) for k, code in enumerate(CODES)])


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "forward mode": lambda x: cr.func.jacfwd(total)(x),
    "compiled": cr.compile(cr.grad(total), backend="numpy"),
    "of a compiled function": cr.grad(cr.compile(total, backend="numpy")),
    "vmap": lambda x: cr.vmap(cr.grad(total))(np.stack([x, x + 1]))[0],
    "of a vmap": lambda x: cr.grad(lambda x: cr.vmap(total)(np.stack([x, x + 1]))[0])(x),
    "beside another": lambda x: cr.grad(lambda a, b: total(a) * np.sum(b))(x, np.array([1.0])),
    "nested": lambda x: cr.grad(lambda x: cr.grad(lambda s, x: s * total(x))(1.0, x))(x),
    "recomputed": cr.grad(cr.checkpoint(total)),
}


@pytest.fixture(scope="module")
def gradient() -> Any:
    found = cr.grad(total)(X)
    differences = [total(X + 1e-6 * row) - total(X - 1e-6 * row) for row in np.eye(4)]
    np.testing.assert_allclose(found, np.array(differences) / 2e-6, rtol=1e-4, atol=1e-5)
    return found


@pytest.mark.parametrize("way", GRADIENTS)
def test_gradients_in_every_way(way: str, gradient: Any) -> None:
    np.testing.assert_allclose(GRADIENTS[way](X), gradient, rtol=1e-9)


def test_second_derivatives_in_both_modes() -> None:
    forward, reverse = cr.func.jacfwd(cr.grad(total))(X), cr.func.jacrev(cr.grad(total))(X)
    np.testing.assert_allclose(forward, reverse, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(forward, cr.hessian(total)(X), rtol=1e-7, atol=1e-7)
    rows = [cr.grad(total)(X + 1e-6 * row) - cr.grad(total)(X - 1e-6 * row) for row in np.eye(4)]
    np.testing.assert_allclose(forward, np.array(rows) / 2e-6, rtol=1e-4, atol=1e-3)


RECORDING = cr.tensor(X, requires_grad=True)
OPERANDS = {
    "array": xp.array(X),
    "NumPy's": X,
    "tensor": cr.tensor(X),
    "tensor that records": RECORDING * 1.0,
    "view that records": RECORDING[:],
    "number": 2.0,
    "integer": 2,
    "integers": np.arange(4),
    "single": np.float32(2),
    "complex": 2j,
}


@pytest.mark.parametrize("kind", OPERANDS)
def test_results_beside_other_operands_are_arrays(kind: str) -> None:
    other = OPERANDS[kind]
    for dtype in (float, np.float32, complex):
        plain = X.astype(dtype)
        a = xp.array(plain)
        for code in ("a * b", "b * a", "np.multiply(a, b)", "np.add(b, a)", "a + b"):
            found = eval(code, {"np": np, "a": a, "b": other})
            number = other.detach().numpy() if isinstance(other, cr.Tensor) else other
            wanted = eval(code, {"np": np, "a": plain, "b": number})
            assert type(found) is xp.ndarray
            assert found.dtype == wanted.dtype, code
            np.testing.assert_array_equal(found.detach(), wanted)
