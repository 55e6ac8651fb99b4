"""Singular matrices, repeated eigenvalues, norms at 0 and at ties, with known results."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.transforms import jvp

INF, NAN = math.inf, math.nan
RANK_1 = [[1.0, 2.0], [2.0, 4.0]]


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def gradient(function: Callable[[cr.Tensor], cr.Tensor], x: Any, weights: Any = None) -> np.ndarray:
    point = cr.tensor(x, dtype=cr.float64, requires_grad=True)
    out = function(point)
    g = cr.ones_like(out) if weights is None else cr.tensor(weights, dtype=cr.float64)
    array: np.ndarray = cr.autograd_grad(out, point, g)[0].numpy()
    return array


def hessian(function: Callable[[cr.Tensor], cr.Tensor], x: np.ndarray) -> np.ndarray:
    """Return the second derivatives, as a matrix over the flattened input."""
    point = cr.tensor(x, requires_grad=True)
    (first,) = cr.autograd_grad(function(point), point, create_graph=True)
    rows = [
        cr.autograd_grad(part, point, retain_graph=True)[0].reshape(-1).numpy()
        for part in first.reshape(-1)
    ]
    return np.array(rows)


# --- determinants ---------------------------------------------------------------------------------


def cofactors(x: np.ndarray) -> np.ndarray:
    """Return the signed minors."""
    n = len(x)
    return np.array(
        [
            [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(n)]
            for i in range(n)
        ]
    )


def of_rank(rank: int, n: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(10 * n + rank)
    left, right = rng.normal(size=(2, n, rank))
    if kind == "complex":
        left = left + 1j * rng.normal(size=(n, rank))
    return left @ right.T


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("deficit", [0, 1, 2, 3])
def test_the_gradient_of_det_is_the_cofactors_at_any_rank(deficit: int, n: int, kind: str) -> None:
    if deficit > n:
        return
    x = of_rank(n - deficit, n, kind)
    point = cr.tensor(x, requires_grad=True)
    cr.linalg.det(point).backward(cr.tensor(1.0, dtype=point.dtype))
    np.testing.assert_allclose(point.grad.numpy(), cofactors(x).conj(), rtol=1e-10, atol=1e-10)
    t = np.ones_like(x)
    slope = jvp(cr.linalg.det, cr.tensor(x), cr.tensor(t))[1].numpy()
    np.testing.assert_allclose(slope, (cofactors(x) * t).sum(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("deficit", [0, 1, 2, 3])
def test_second_derivatives_of_det_are_exact_at_any_rank(deficit: int, n: int) -> None:
    if deficit > n:
        return
    x = of_rank(n - deficit, n, "real")
    got = hessian(cr.linalg.det, x).reshape(n, n, n, n)
    for i, j, k, l in np.ndindex(n, n, n, n):  # noqa: E741
        wanted = 0.0
        if i != k and j != l:
            inner = np.delete(np.delete(x, [i, k], 0), [j, l], 1)
            sign = (-1) ** (i + j + k + l) * (1 if (i < k) == (j < l) else -1)
            wanted = sign * np.linalg.det(inner)
        np.testing.assert_allclose(got[i, j, k, l], wanted, rtol=1e-9, atol=1e-9)


def test_third_derivatives_of_det_at_zero() -> None:
    # det of a 3×3 matrix is a sum of products of three elements, with a sign.
    x = cr.zeros(3, 3, dtype=cr.float64, requires_grad=True)
    (first,) = cr.autograd_grad(cr.det(x), x, create_graph=True)
    (second,) = cr.autograd_grad(first[0, 0], x, create_graph=True)
    (third,) = cr.autograd_grad(second[1, 2], x)
    assert third.tolist() == [[0, 0, 0], [0, 0, 0], [0, -1, 0]]


def test_det_of_a_batch_with_a_singular_matrix() -> None:
    x = np.stack([np.eye(4), np.diag([0.0, 1, 2, 3]), np.full((4, 4), NAN)])
    with np.errstate(invalid="ignore"):
        got = gradient(cr.linalg.det, x)
    np.testing.assert_allclose(got[0], np.eye(4), atol=1e-14)
    np.testing.assert_allclose(got[1], np.diag([6.0, 0, 0, 0]), atol=1e-14)
    assert np.isnan(got[2]).all()


def test_the_logarithm_of_a_determinant_that_is_zero_or_negative() -> None:
    assert cr.logdet(cr.tensor(RANK_1)).item() == -INF
    assert math.isnan(cr.logdet(cr.tensor([[0.0, 1.0], [1.0, 0.0]])).item())
    assert [t.item() for t in cr.slogdet(cr.tensor(RANK_1))] == [0, -INF]
    got = gradient(cr.logdet, [RANK_1, [[2.0, 0.0], [0.0, 4.0]]])
    np.testing.assert_allclose(got, [[[INF, -INF], [-INF, INF]], [[0.5, 0], [0, 0.25]]])


def test_the_determinant_of_an_empty_matrix_is_one() -> None:
    assert cr.linalg.det(cr.zeros(0, 0)).item() == 1
    assert cr.linalg.det(cr.zeros(2, 0, 0)).tolist() == [1, 1]
    assert gradient(cr.linalg.det, np.zeros((2, 0, 0))).shape == (2, 0, 0)
    assert cr.linalg.slogdet(cr.zeros(0, 0)).logabsdet.item() == 0


# --- eigenvalues and singular values that coincide ------------------------------------------------


def test_sums_of_eigenvalues_that_coincide_have_a_gradient() -> None:
    np.testing.assert_allclose(gradient(cr.linalg.eigvalsh, np.eye(3)), np.eye(3), atol=1e-15)
    squares = gradient(lambda x: cr.linalg.eigvalsh(x) ** 2, np.eye(3))
    np.testing.assert_allclose(squares, 2 * np.eye(3), atol=1e-15)


def test_a_unique_eigenvector_has_a_gradient_beside_repeated_eigenvalues() -> None:
    x = np.diag([1.0, 2.0, 2.0])
    # The first one turns towards the others by dA / (1 - 2).
    got = gradient(lambda x: cr.linalg.eigh(x).eigenvectors[1:, 0] ** 2, x)
    np.testing.assert_allclose(got, 0)
    got = gradient(lambda x: x.sum() * 0 + cr.linalg.eigh(x).eigenvectors[:, 0].sum().abs(), x)
    half = -0.5  # of what each triangle does, since the matrix stays symmetric
    np.testing.assert_allclose(got, [[0, half, half], [half, 0, 0], [half, 0, 0]], atol=1e-15)


def test_eigenvectors_of_repeated_eigenvalues_have_no_gradient() -> None:
    got = gradient(lambda x: cr.linalg.eigh(x).eigenvectors, np.diag([1.0, 2.0, 2.0]))
    assert not np.isfinite(got).all()
    got = gradient(lambda x: cr.linalg.svd(x).U, np.eye(3), np.arange(9.0).reshape(3, 3))
    assert not np.isfinite(got).all()


def test_sums_of_singular_values_that_coincide_have_a_gradient() -> None:
    np.testing.assert_allclose(gradient(cr.linalg.svdvals, 2 * np.eye(3)), np.eye(3), atol=1e-15)
    assert np.isfinite(gradient(cr.linalg.svdvals, np.zeros((2, 2)))).all()


def test_rotation_invariant_functions_have_a_gradient_through_all_columns() -> None:
    # The projector onto what a matrix does not reach is I less the one onto what it does.
    x = np.random.default_rng(0).normal(size=(4, 2))
    weights = np.random.default_rng(1).normal(size=(4, 4))

    def reached(x: cr.Tensor) -> cr.Tensor:
        return x @ cr.linalg.pinv(x)

    def by_svd(x: cr.Tensor) -> cr.Tensor:
        rest = cr.linalg.svd(x).U[:, 2:]
        return -rest @ rest.mT

    def by_qr(x: cr.Tensor) -> cr.Tensor:
        rest = cr.linalg.qr(x, "complete").Q[:, 2:]
        return -rest @ rest.mT

    wanted = gradient(reached, x, weights)
    np.testing.assert_allclose(gradient(by_svd, x, weights), wanted, rtol=1e-12)
    np.testing.assert_allclose(gradient(by_qr, x, weights), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", ["eigh", "eig", "svd"])
def test_a_loss_that_depends_on_a_free_phase_is_refused(name: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    point = cr.tensor(x + x.conj().T if name == "eigh" else x, requires_grad=True)
    vectors = getattr(cr.linalg, name)(point)[0 if name == "svd" else 1]
    with pytest.raises(RuntimeError, match=rf"linalg.{name}: .* up to multiplication by e\^{{i"):
        (vectors.imag + vectors.real).sum().backward()


def test_a_loss_that_depends_on_a_free_phase_is_refused_in_a_recorded_pass() -> None:
    point = cr.tensor([[1, 2j], [-2j, 3]], dtype=cr.complex128, requires_grad=True)
    loss = cr.linalg.eigh(point).eigenvectors.imag.sum()
    with pytest.raises(cr.AutogradError, match="ill-defined"):
        loss.backward(create_graph=True)


# --- norms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 1.5, 2, 3, INF, -INF, 0])
def test_norms_at_zero_have_gradient_zero(order: float) -> None:
    assert gradient(lambda x: cr.linalg.vector_norm(x, order), [0.0, 0.0]).tolist() == [0, 0]


@pytest.mark.parametrize("order", [0.5, 1.5, 3])
def test_an_element_that_is_zero_has_gradient_zero(order: float) -> None:
    got = gradient(lambda x: cr.linalg.vector_norm(x, order), [0.0, 2.0])
    np.testing.assert_allclose(got, [0, 1], rtol=1e-15)


@pytest.mark.parametrize("order", ["fro", 1, INF])
def test_norms_of_a_matrix_of_zeros_have_gradient_zero(order: Any) -> None:
    got = gradient(lambda x: cr.linalg.matrix_norm(x, order), [[0.0, 0.0], [0.0, 0.0]])
    assert got.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("order", "slopes"),
    [
        (INF, [[0.5, 0.5], [0.5, 0.5]]),
        (-INF, [[0.5, 0.5], [0.5, 0.5]]),
        (1, [[0.5, 0.5], [0.5, 0.5]]),
    ],
    ids=str,
)
def test_norms_share_a_gradient_among_ties(order: float, slopes: Any) -> None:
    x = [[1.0, 2.0], [2.0, 1.0]]
    assert gradient(lambda x: cr.linalg.matrix_norm(x, order), x).tolist() == slopes
    got = gradient(lambda x: cr.linalg.vector_norm(x, INF), [2.0, -2.0, 1.0])
    assert got.tolist() == [0.5, -0.5, 0]


@pytest.mark.parametrize("order", [2, -2])
def test_spectral_norms_share_a_gradient_among_ties(order: float) -> None:
    got = gradient(lambda x: cr.linalg.matrix_norm(x, order), np.eye(2))
    np.testing.assert_allclose(got, np.eye(2) / 2, atol=1e-15)


@pytest.mark.parametrize("order", [0.5, 3, 8, -2])
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_norms_of_huge_and_of_tiny_numbers(scale: float, order: float) -> None:
    usual = cr.linalg.vector_norm(cr.tensor([3.0, 4.0], dtype=cr.float64), order).item()
    x = [3 * scale, 4 * scale]
    got = cr.linalg.vector_norm(cr.tensor(x, dtype=cr.float64), order).item()
    np.testing.assert_allclose(got, usual * scale, rtol=1e-14)
    slopes = gradient(lambda x: cr.linalg.vector_norm(x, order), [3.0, 4.0])
    np.testing.assert_allclose(
        gradient(lambda x: cr.linalg.vector_norm(x, order), x), slopes, rtol=1e-14
    )


def test_the_zero_norm_counts_nan_and_has_gradient_zero() -> None:
    x = [NAN, 0.0, 3.0]
    assert cr.linalg.vector_norm(cr.tensor(x), 0).item() == 2
    assert gradient(lambda x: cr.linalg.vector_norm(x, 0), x).tolist() == [0, 0, 0]


def test_condition_numbers_of_singular_matrices_are_infinite() -> None:
    x = cr.tensor([RANK_1, [[2.0, 0.0], [0.0, 1.0]]])
    assert cr.linalg.cond(x[0], 1).item() == INF
    for p in (1, INF, "fro"):
        first, second = cr.linalg.cond(x, p).tolist()
        assert first == INF
        assert math.isfinite(second)
    assert cr.linalg.cond(cr.zeros(2, 0, 0)).tolist() == [0, 0]


# --- systems --------------------------------------------------------------------------------------


def test_pseudoinverses_of_singular_matrices() -> None:
    np.testing.assert_allclose(
        cr.linalg.pinv(cr.tensor(RANK_1)).numpy(), np.array(RANK_1) / 25, rtol=1e-6
    )
    assert cr.linalg.pinv(cr.zeros(2, 3)).tolist() == [[0, 0], [0, 0], [0, 0]]
    assert cr.linalg.pinv(cr.zeros(0, 3)).shape == (3, 0)
    assert gradient(cr.linalg.pinv, np.zeros((2, 3))).tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_pseudoinverses_of_hermitian_matrices_read_one_triangle(kind: str) -> None:
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(2, 3, 3)).astype(kind)
    if kind == "complex128":
        x = x + 1j * rng.normal(size=(3, 3))
        t = t + 1j * rng.normal(size=(3, 3))
    x[0, 1:] = x[1, 2] = NAN
    whole = np.tril(x) + np.tril(x, -1).T.conj()
    np.fill_diagonal(whole, whole.diagonal().real)
    t = t + t.T.conj()

    def inverse(x: cr.Tensor) -> cr.Tensor:
        return cr.linalg.pinv(x, hermitian=True)

    value, slope = jvp(inverse, cr.tensor(x), cr.tensor(t))
    wanted, along = jvp(cr.linalg.pinv, cr.tensor(whole), cr.tensor(t))
    np.testing.assert_allclose(value.numpy(), wanted.numpy(), rtol=1e-11)
    np.testing.assert_allclose(slope.numpy(), along.numpy(), rtol=1e-10)
    leaf = cr.tensor(x, requires_grad=True)
    inverse(leaf).abs().sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), leaf.grad.mH.numpy(), rtol=1e-12)


def test_least_squares_of_a_singular_matrix_is_the_shortest_solution() -> None:
    solution = cr.linalg.lstsq(cr.tensor(RANK_1), cr.tensor([[1.0], [2.0]])).solution
    np.testing.assert_allclose(solution.numpy(), [[0.2], [0.4]], rtol=1e-6)


def test_triangles_that_are_not_read_may_hold_anything() -> None:
    a = np.array([[2.0, NAN], [1.0, 4.0]])
    b = [[2.0], [5.0]]
    out = cr.linalg.solve_triangular(cr.tensor(a), cr.tensor(b), upper=False)
    assert out.tolist() == [[1], [1]]
    got = gradient(lambda a: cr.linalg.solve_triangular(a, cr.tensor(b).double(), upper=False), a)
    assert got[0, 1] == 0
    assert np.isfinite(got).all()


def test_exponentials_of_matrices_that_have_no_eigenvectors() -> None:
    x = np.array([[1.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(cr.matrix_exp(cr.tensor(x)).numpy(), math.e * x, rtol=1e-14)
    # ∂/∂a of exp [[a, 1], [0, b]], corner (exp a - exp b) / (a - b), at a = b: half of exp'.
    got = gradient(lambda x: cr.matrix_exp(x)[0, 1], x)
    np.testing.assert_allclose(np.diag(got), [math.e / 2, math.e / 2], rtol=1e-14)


def test_exponentials_of_infinite_or_huge_matrices() -> None:
    x = np.stack([np.full((2, 2), NAN), np.zeros((2, 2)), np.diag([1e4, 0.0])])
    out = cr.matrix_exp(cr.tensor(x)).numpy()
    assert np.isnan(out[0]).all()
    np.testing.assert_array_equal(out[1], np.eye(2))
    assert not np.isfinite(out[2, 0, 0])


def test_nothing_but_empty_matrices() -> None:
    x = cr.zeros(0, 3, 3)
    for name in ("inv", "pinv", "det", "matrix_exp", "cholesky", "eigvalsh", "svdvals", "logdet"):
        assert getattr(cr.linalg, name)(x).shape[0] == 0
    assert cr.linalg.matrix_rank(cr.zeros(2, 0, 3)).tolist() == [0, 0]
    assert cr.linalg.matrix_norm(cr.zeros(2, 0, 3)).tolist() == [0, 0]
    assert cr.linalg.vector_norm(cr.zeros(0), 3).item() == 0
    assert cr.linalg.qr(cr.zeros(3, 0), "complete").Q.tolist() == cr.eye(3).tolist()


# --- dtypes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision_stays(dtype: str) -> None:
    x = cr.tensor([[4.0, 1.0], [1.0, 3.0]]).astype(dtype).requires_grad_()
    for name in (
        *("det", "slogdet", "logdet", "inv", "pinv", "cholesky", "qr", "eigh", "svd", "eig"),
        *("matrix_exp", "matrix_norm", "vector_norm", "cond", "svdvals", "eigvalsh"),
    ):
        result = getattr(cr.linalg, name)(x)
        for out in result if isinstance(result, tuple) else (result,):
            assert out.dtype in (cr.float32, cr.complex64), name
            (g,) = cr.autograd_grad(cr.abs(out).sum(), x, retain_graph=True)
            assert g.dtype == x.dtype, name


def test_integers_are_numbers_of_the_default_dtype() -> None:
    assert cr.linalg.inv(cr.tensor([[2, 0], [0, 4]])).tolist() == [[0.5, 0], [0, 0.25]]
    assert cr.linalg.vector_norm(cr.tensor([3, 4])).item() == 5
    assert cr.linalg.matrix_power(cr.tensor([[1, 1], [0, 1]]), 3).dtype == cr.int64
    solution = cr.linalg.solve(cr.eye(2, dtype=cr.float64), cr.tensor([1, 2]))
    assert solution.dtype == cr.float64


def test_norms_of_half_precision() -> None:
    x = cr.tensor([3.0, 4.0], dtype=cr.float16, requires_grad=True)
    out = cr.linalg.vector_norm(x)
    out.backward()
    assert (out.dtype, x.grad.dtype, out.item()) == (cr.float16, cr.float16, 5)
    assert cr.linalg.vector_norm(x, 3).dtype == cr.float16


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0, 0)])
def test_the_spectral_norm_of_an_empty_matrix_is_zero(shape: tuple[int, ...]) -> None:
    assert not cr.linalg.matrix_norm(cr.zeros(shape), 2).any()
