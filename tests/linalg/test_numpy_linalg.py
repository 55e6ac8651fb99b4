"""`numpy.linalg` called on tensors: NumPy's results, recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

RNG = np.random.default_rng(30)
X = RNG.uniform(-1, 1, (2, 3, 3)) + 2 * np.eye(3)
SYMMETRIC = X @ X.swapaxes(-1, -2)
TALL, VECTOR = RNG.uniform(-1, 1, (4, 2)), RNG.uniform(-1, 1, 3)

CALLS: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "cholesky": (lambda x: np.linalg.cholesky(x), SYMMETRIC),
    "cholesky upper": (lambda x: np.linalg.cholesky(x, upper=True), SYMMETRIC),
    "cond": (lambda x: np.linalg.cond(x, 1), X),
    "cross": (lambda x: np.linalg.cross(x, x[::-1]), X),
    "det": (lambda x: np.linalg.det(x), X),
    "diagonal": (lambda x: np.linalg.diagonal(x, offset=1), X),
    "eig": (lambda x: abs(np.linalg.eig(x)[0]).sum(), SYMMETRIC),
    "eigh": (lambda x: [abs(part) for part in np.linalg.eigh(x, "U")], SYMMETRIC),
    "eigvals": (lambda x: abs(np.linalg.eigvals(x)).sum(), SYMMETRIC),
    "eigvalsh": (lambda x: np.linalg.eigvalsh(x, UPLO="U"), SYMMETRIC),
    "inv": (lambda x: np.linalg.inv(x), X),
    "lstsq": (lambda x: np.linalg.lstsq(x, np.ones((4, 2)), rcond=None)[0], TALL),
    "lstsq singular": (lambda x: np.linalg.lstsq(x, np.ones((4, 2)))[3], TALL),
    "matmul": (lambda x: np.linalg.matmul(x, x), X),
    "matrix_norm": (lambda x: np.linalg.matrix_norm(x, ord="nuc", keepdims=True), X),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, -2), X),
    "matrix_transpose": (lambda x: np.linalg.matrix_transpose(x), X),
    "multi_dot": (lambda x: np.linalg.multi_dot([x, x.T, x]), TALL),
    "norm": (lambda x: np.linalg.norm(x), X),
    "norm of rows": (lambda x: np.linalg.norm(x, 3, 1, True), X),
    "norm of matrices": (lambda x: np.linalg.norm(x, 2, axis=(0, 1)), X),
    "outer": (lambda x: np.linalg.outer(x, x), VECTOR),
    "pinv": (lambda x: np.linalg.pinv(x), TALL),
    "qr": (lambda x: list(np.linalg.qr(x)), TALL),
    "qr complete": (lambda x: np.linalg.qr(x, "complete")[1], TALL),
    "qr r": (lambda x: np.linalg.qr(x, mode="r"), TALL),
    "slogdet": (lambda x: np.linalg.slogdet(x)[1], X),
    "solve a vector": (lambda x: np.linalg.solve(x, np.ones(3)), X),
    "solve one stack": (lambda x: np.linalg.solve(x, np.ones((3, 2))), X),
    "solve a matrix": (lambda x: np.linalg.solve(x[:, :2, :2], np.eye(2)), X),
    "svd": (lambda x: np.linalg.svd(x, full_matrices=False)[1], TALL),
    "svd values": (lambda x: np.linalg.svd(x, compute_uv=False), TALL),
    "svd hermitian": (lambda x: np.linalg.svd(x, hermitian=True)[1], SYMMETRIC),
    "svdvals": (lambda x: np.linalg.svdvals(x), TALL),
    "tensordot": (lambda x: np.linalg.tensordot(x, x, axes=1), X[0]),
    "tensorinv": (lambda x: np.linalg.tensorinv(x.reshape(3, 3, 1), ind=1), X[0]),
    "tensorsolve": (lambda x: np.linalg.tensorsolve(x, np.ones(3), axes=(0,)), X[0]),
    "trace": (lambda x: np.linalg.trace(x, offset=1), X),
    "vecdot": (lambda x: np.linalg.vecdot(x, x[::-1]), X),
    "vector_norm": (lambda x: np.linalg.vector_norm(x, ord=1, axis=1, keepdims=True), X),
}


@pytest.mark.parametrize("name", CALLS)
def test_numpys_function_of_a_tensor_is_recorded(name: str) -> None:
    call, x = CALLS[name]
    leaf = cr.tensor(x, requires_grad=True)
    ours, theirs = call(leaf), call(x)
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, list) else [(ours, theirs)]
    for got, wanted in pairs:
        assert isinstance(got, cr.Tensor)
        assert got.requires_grad
        np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_ranks_of_a_tensor() -> None:
    assert np.linalg.matrix_rank(cr.tensor(X, requires_grad=True)).tolist() == [3, 3]
    assert np.linalg.matrix_rank(cr.tensor(X), 100.0).tolist() == [0, 0]


def test_no_function_of_numpys_is_left_out() -> None:
    dispatched = {
        name
        for name in np.linalg.__all__
        if hasattr(getattr(np.linalg, name), "_implementation") and name != "linalg"
    }
    assert dispatched - {name.split()[0] for name in CALLS} == {"matrix_rank"}


def test_right_sides_that_pytorch_takes_as_vectors_are_matrices_to_numpy_and_the_array_api() -> (
    None
):
    a, b = X[:2, :2, :2] + 3 * np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]])
    wanted = np.linalg.solve(a, b)
    for solve in (np.linalg.solve, cr.array_api.linalg.solve):
        np.testing.assert_allclose(solve(cr.tensor(a), cr.tensor(b)).numpy(), wanted, rtol=1e-13)
    assert cr.linalg.solve(cr.tensor(a), cr.tensor(b)).shape == (2, 2)


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) >= "2.5.0", reason="eigenvalues are complex numbers"
)
def test_eigenvalues_whose_kind_is_unknown_say_what_to_take() -> None:
    for transform in (cr.vmap, lambda f: cr.compile(cr.jacobian(f))):
        with pytest.raises(cr.AutogradError, match=r"take chainrule\.linalg\.eig"):
            transform(np.linalg.eigvals)(X)
