"""Products of SciPy's sparse matrices with what is differentiated: those of the dense matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

sparse = pytest.importorskip("scipy.sparse")

DENSE = np.array([[2.0, 1.0, 0.0], [0.0, 3.0, -1.0], [1.0, 0.0, 4.0], [0.0, 0.5, 0.0]])
X = np.array([1.0, -2.0, 0.5])

PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "A @ x": lambda A, x: A @ x,
    "A.dot(x)": lambda A, x: A.dot(x) if sparse.issparse(A) and A.format != "coo" else A @ x,
    "A.T @ y": lambda A, x: A.T @ np.concatenate([x, x[:1]]),
    "x @ A.T": lambda A, x: x @ A.T,
    "A @ X": lambda A, x: A @ np.stack([x, x * x], 1),
    "X @ A": lambda A, x: np.stack([x, x, x * x, x], 1) @ A,
}


def squared(product: Callable[[Any, Any], Any], A: Any) -> Callable[[Any], Any]:
    return lambda x: np.sum(product(A, np.sin(x)) ** 2 * product(A, x))


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_array", "dia_matrix"])
@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_derivatives_are_those_of_the_dense_matrix(product: Any, kind: str) -> None:
    ours, dense = squared(product, getattr(sparse, kind)(DENSE)), squared(product, DENSE)
    np.testing.assert_allclose(cr.grad(ours)(X), cr.grad(dense)(X), rtol=1e-12)
    np.testing.assert_allclose(cr.hessian(ours)(X), cr.hessian(dense)(X), rtol=1e-12)
    forward = cr.jvp(ours, X, X[::-1].copy())[1]
    np.testing.assert_allclose(forward, cr.jvp(dense, X, X[::-1].copy())[1], rtol=1e-12)


@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "coo_matrix"])
@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_mapped_and_compiled(product: Any, kind: str) -> None:
    matrix = getattr(sparse, kind)(DENSE)
    wanted = product(DENSE, X)
    np.testing.assert_allclose(cr.compile(lambda x: product(matrix, x))(X), wanted, rtol=1e-12)
    gradient = cr.grad(squared(product, matrix))
    np.testing.assert_allclose(cr.compile(gradient)(X), gradient(X), rtol=1e-12)
    batch = np.stack([X, 2 * X])
    mapped = cr.vmap(lambda x: product(matrix, x))(batch)
    np.testing.assert_allclose(mapped, np.stack([wanted, product(DENSE, 2 * X)]), rtol=1e-12)


def test_compiled_functions_see_what_becomes_of_the_matrix() -> None:
    matrix = sparse.csr_array(DENSE)
    compiled = cr.compile(lambda x: matrix @ x)
    for change in (None, "written", "other", None):
        if change == "written":
            matrix.data[:] *= 2
        elif change == "other":
            matrix.data = matrix.data + 1.0
        np.testing.assert_allclose(compiled(X), matrix @ X, rtol=1e-12)


def test_complex_matrices() -> None:
    matrix = sparse.csr_array(DENSE * (1 + 2j))
    z = X * (0.5 - 1j)
    gradient = cr.grad(lambda z: np.sum(np.abs(matrix @ z) ** 2))(z)
    np.testing.assert_allclose(gradient, 2 * (matrix.conj().T @ (matrix @ z)), rtol=1e-12)


def test_tensors() -> None:
    t = cr.tensor(X, requires_grad=True)
    (sparse.csr_array(DENSE) @ t).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), DENSE.sum(0), rtol=1e-12)


def test_an_asterisk_is_the_product_that_scipy_means() -> None:
    gradient = cr.grad(lambda x: np.sum(sparse.csr_matrix(DENSE) * x))(X)
    np.testing.assert_allclose(gradient, DENSE.sum(0), rtol=1e-12)
    with pytest.raises(TypeError, match=r"write @ for the matrix product, or .*toarray\(\)"):
        cr.grad(lambda x: np.sum(x * sparse.csr_array(DENSE)))(X)


def test_formats_without_places_are_refused_where_they_would_be_constants() -> None:
    with pytest.raises(cr.CompileError, match=r"format dia .*A\.tocsr\(\)"):
        cr.compile(lambda x: sparse.dia_matrix(DENSE) @ x)(X)
