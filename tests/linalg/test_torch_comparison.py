"""Linear algebra that is no primitive: values and derivatives, compared with PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import compare_with_torch, random_array, random_arrays

INF = math.inf


def spread(x: np.ndarray) -> np.ndarray:
    """Return a matrix with singular values far from each other."""
    m, n = x.shape[-2:]
    return x + 2 * np.eye(m, n) * np.arange(1, n + 1)


DTYPES = pytest.mark.parametrize("dtype", ["float64", "complex128"])
SHAPES = pytest.mark.parametrize(
    "shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 3, 2)], ids=lambda s: "x".join(map(str, s))
)
SQUARES = pytest.mark.parametrize(
    "shape", [(3, 3), (5, 5), (2, 2, 2), (0, 2, 2)], ids=lambda s: "x".join(map(str, s))
)


@DTYPES
@SHAPES
@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, INF, -INF])
def test_norms_of_matrices(order: Any, shape: tuple[int, ...], dtype: str) -> None:
    x = spread(random_array(shape, dtype, 1))
    compare_with_torch(lambda lib, x: lib.linalg.matrix_norm(x, order), x)
    compare_with_torch(lambda lib, x: lib.linalg.matrix_norm(x, order, keepdim=True), x, order=1)
    compare_with_torch(lambda lib, x: lib.linalg.norm(x, order, dim=(-1, -2)), x, order=1)


@DTYPES
@pytest.mark.parametrize("order", [0, 0.5, 1, 1.5, 2, 3, 4.5, INF, -INF, -1, -2.5])
def test_norms_of_vectors(order: float, dtype: str) -> None:
    x = random_array((2, 3, 4), dtype, 2)
    for dim in (None, 1, (0, 2)):
        compare_with_torch(
            lambda lib, x, dim=dim: lib.linalg.vector_norm(x, order, dim), x, order=1
        )
        compare_with_torch(
            lambda lib, x, dim=dim: lib.linalg.vector_norm(x, order, dim, keepdim=True),
            x,
            order=2 if order else 1,
        )


@DTYPES
@pytest.mark.parametrize("p", [None, 2, -2, "fro", "nuc", 1, -1, INF, -INF])
def test_condition_numbers(p: Any, dtype: str) -> None:
    x = spread(random_array((2, 3, 3), dtype, 3))
    if p in (None, 2, -2):
        compare_with_torch(lambda lib, x: lib.linalg.cond(x, p), x)
        return
    # PyTorch's cond writes into what its own backward pass needs.
    compare_with_torch(
        lambda lib, x: (
            lib.linalg.cond(x, p)
            if lib is cr
            else lib.linalg.matrix_norm(x, p) * lib.linalg.matrix_norm(lib.linalg.inv(x), p)
        ),
        x,
    )


@DTYPES
@SQUARES
@pytest.mark.parametrize("power", [-3, -1, 0, 1, 2, 3, 6, 7])
def test_powers_of_matrices(power: int, shape: tuple[int, ...], dtype: str) -> None:
    x = spread(random_array(shape, dtype, 4)) / 3
    compare_with_torch(lambda lib, x: lib.linalg.matrix_power(x, power), x)


@DTYPES
@SQUARES
def test_logarithms_of_determinants(shape: tuple[int, ...], dtype: str) -> None:
    x = spread(random_array(shape, dtype, 5))
    compare_with_torch(lambda lib, x: lib.logdet(x), x)
    compare_with_torch(lambda lib, x: lib.slogdet(x), x)
    compare_with_torch(lambda lib, x: x.slogdet(), x)
    compare_with_torch(lambda lib, x: x.logdet(), x)


@DTYPES
def test_eigenvalues_alone(dtype: str) -> None:
    x = random_array((2, 4, 4), dtype, 6)
    compare_with_torch(lambda lib, x: lib.linalg.eigvalsh(x @ x.mT.conj()), x)
    compare_with_torch(lambda lib, x: lib.linalg.eigvalsh(x @ x.mT.conj(), UPLO="U"), x)
    compare_with_torch(lambda lib, x: lib.linalg.eigvals(x).abs().sort(-1)[0], spread(x))
    compare_with_torch(lambda lib, x: lib.linalg.svdvals(x), x)


@DTYPES
def test_both_triangles_of_an_asymmetric_matrix(dtype: str) -> None:
    x = random_array((3, 3), dtype, 9)
    for triangle in "LU":
        compare_with_torch(lambda lib, x, t=triangle: lib.linalg.eigh(x, UPLO=t)[0], x, order=1)
        compare_with_torch(
            lambda lib, x, t=triangle: lib.linalg.eigh(x, UPLO=t)[1].abs(), x, order=1
        )
    x[np.arange(3), np.arange(3)] = [5, 6, 7]
    for upper in (False, True):
        # Of complex matrices, PyTorch's gradient is not Hermitian: on the diagonal it isn't real.
        hermitian = dtype == "complex128"
        compare_with_torch(
            lambda lib, x, u=upper, h=hermitian: lib.linalg.cholesky(
                x + x.mT.conj() if h else x, upper=u
            ),
            x,
            order=1,
        )


@DTYPES
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("b", [(2, 2), (3, 2, 2), (4, 2, 5), (2,), (3, 2)], ids=str)
def test_solutions(b: tuple[int, ...], left: bool, dtype: str) -> None:
    batch = (3,) if b == (3, 2) else ()
    a = spread(random_array((*batch, 2, 2), dtype, 10))
    if left or b in [(2, 2), (3, 2, 2)]:
        compare_with_torch(
            lambda lib, a, b: lib.linalg.solve(a, b, left=left), a, random_array(b, dtype, 11)
        )


@DTYPES
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("n", [3, 150], ids=["small", "by halves"])
def test_triangular_solutions(n: int, unit: bool, upper: bool, left: bool, dtype: str) -> None:
    a, b = random_array((n, n), dtype, 12) / n + 2 * np.eye(n), random_array((n, n), dtype, 13)

    def solved(lib: Any, a: Any, b: Any) -> Any:
        return lib.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)

    compare_with_torch(solved, a, b, order=2 if n == 3 else 1)


@DTYPES
@pytest.mark.parametrize("upper", [True, False])
def test_solutions_from_a_cholesky_factor(upper: bool, dtype: str) -> None:
    # PyTorch's gradient of the triangle that isn't read is not zero: so it is cut off here.
    factor, b = spread(random_array((2, 3, 3), dtype, 14)), random_array((2, 3, 2), dtype, 15)
    factor[:, np.arange(3), np.arange(3)] = [2, 4, 6]  # which LAPACK takes as real

    def triangle(lib: Any, x: Any) -> Any:
        return lib.triu(x) if upper else lib.tril(x)

    compare_with_torch(lambda lib, f, b: lib.cholesky_solve(b, triangle(lib, f), upper), factor, b)
    compare_with_torch(lambda lib, f: lib.cholesky_inverse(triangle(lib, f), upper), factor)


@DTYPES
@SHAPES
def test_least_squares(shape: tuple[int, ...], dtype: str) -> None:
    a, b = spread(random_array(shape, dtype, 16)), random_array((*shape[:-1], 2), dtype, 17)
    compare_with_torch(lambda lib, a, b: lib.linalg.lstsq(a, b).solution, a, b)
    torch = pytest.importorskip("torch")
    if 0 in shape:
        return
    for driver in ("gelsd", "gelss", "gels", "gelsy"):
        if driver == "gels" and shape[-2] < shape[-1]:
            continue
        ours = cr.linalg.lstsq(cr.tensor(a), cr.tensor(b), driver=driver)
        theirs = torch.linalg.lstsq(torch.tensor(a), torch.tensor(b), driver=driver)
        for name in ("solution", "rank", "singular_values", "residuals"):
            if name == "residuals" and driver == "gelsy":
                continue  # left out there, though its documentation promises them
            np.testing.assert_allclose(
                getattr(ours, name).numpy(), getattr(theirs, name).numpy(), rtol=1e-9, atol=1e-9
            )


def test_least_squares_of_vectors() -> None:
    a, b = spread(random_array((2, 4, 3), "float64", 18)), random_array((2, 4), "float64", 19)
    compare_with_torch(lambda lib, a, b: lib.linalg.lstsq(a, b).solution, a, b)


@DTYPES
@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 3), (3, 4)],
        [(2, 3), (3, 4), (4, 5), (5, 2)],
        [(3,), (3, 4), (4, 2)],
        [(2, 3), (3, 4), (4,)],
        [(3,), (3, 4), (4,)],
        [(2, 0), (0, 3), (3, 2)],
    ],
    ids=str,
)
def test_chains_of_products(shapes: list[tuple[int, ...]], dtype: str) -> None:
    compare_with_torch(lambda lib, *xs: lib.linalg.multi_dot(xs), *random_arrays(shapes, dtype))


@DTYPES
def test_wide_triangles(dtype: str) -> None:
    for shape in ((2, 4), (2, 2, 3), (1, 3)):
        x = spread(random_array(shape, dtype, 20))
        for mode in ("reduced", "complete"):
            compare_with_torch(lambda lib, x, mode=mode: lib.linalg.qr(x, mode), x)
    x = spread(random_array((4, 2), dtype, 21))
    values = [cr.linalg.qr(cr.tensor(x), mode).R.numpy() for mode in ("r", "reduced")]
    np.testing.assert_array_equal(*values)


@DTYPES
def test_powers_of_numbers(dtype: str) -> None:
    x = random_array((2, 3), dtype, 22)
    compare_with_torch(lambda lib, x: lib.linalg.vander(x), x)
    compare_with_torch(lambda lib, x: lib.linalg.vander(x, N=5), x)
    compare_with_torch(lambda lib, x: lib.linalg.vander(x), np.array([0.0, 1.0, 2.0, 3.0]))
    for small in ("int8", "uint8"):
        x = np.array([7, 3, 2, 5]).astype(small)
        compare_with_torch(lambda lib, x: (lib.vander(x), lib.linalg.vander(x)), x, order=0)


@DTYPES
def test_tensors_as_linear_maps(dtype: str) -> None:
    a, b = random_array((2, 3, 6), dtype, 23), random_array((2, 3), dtype, 24)
    compare_with_torch(lambda lib, a: lib.linalg.tensorinv(a), a)
    compare_with_torch(lambda lib, a, b: lib.linalg.tensorsolve(a, b), a, b)
    compare_with_torch(
        lambda lib, a, b: lib.linalg.tensorsolve(a, b, dims=(0,)),
        random_array((6, 2, 3), dtype, 25),
        b,
    )


@DTYPES
def test_diagonals_and_products(dtype: str) -> None:
    x, y = random_array((2, 3, 3), dtype, 26), random_array((2, 3, 3), dtype, 27)
    compare_with_torch(lambda lib, x: lib.linalg.diagonal(x, offset=1), x)
    compare_with_torch(lambda lib, x, y: lib.linalg.cross(x, y), x, y)
    compare_with_torch(lambda lib, x, y: lib.linalg.cross(x, y, dim=1), x, y)
    compare_with_torch(lambda lib, x, y: lib.linalg.vecdot(x, y), x, y)
    ours = cr.linalg.trace(cr.tensor(x), offset=1).numpy()
    np.testing.assert_allclose(ours, np.linalg.trace(x, offset=1), rtol=1e-14)


@pytest.mark.parametrize("hermitian", [True, False])
@pytest.mark.parametrize(
    "tolerances", [{}, {"atol": 0.5}, {"rtol": 0.1}, {"atol": 0.1, "rtol": 0.2}], ids=str
)
def test_ranks_and_tolerances(tolerances: dict[str, float], hermitian: bool) -> None:
    torch = pytest.importorskip("torch")
    x = np.stack([np.diag([3.0, 0.4, -1e-3]), np.diag([1.0, 1e-9, 0.0]), np.zeros((3, 3))])
    for name in ("matrix_rank", "pinv"):
        ours = getattr(cr.linalg, name)(cr.tensor(x), hermitian=hermitian, **tolerances)
        theirs = getattr(torch.linalg, name)(torch.tensor(x), hermitian=hermitian, **tolerances)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-12)
        each = {key: np.array([value, value, 0.01]) for key, value in tolerances.items()}
        ours = getattr(cr.linalg, name)(
            cr.tensor(x), hermitian=hermitian, **{k: cr.tensor(v) for k, v in each.items()}
        )
        theirs = getattr(torch.linalg, name)(
            torch.tensor(x), hermitian=hermitian, **{k: torch.tensor(v) for k, v in each.items()}
        )
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-12)


def test_pseudoinverses_for_more_tolerances_than_matrices() -> None:
    def function(lib: Any, x: Any, part: Any) -> Any:
        return lib.linalg.pinv(x, rtol=part.detach())

    compare_with_torch(function, random_array((2, 3, 3), "float64", 4), np.full((5, 2), 0.1))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 10.0, 300.0])
def test_exponentials_of_small_and_large_matrices(scale: float) -> None:
    x = random_array((3, 4, 4), "float64", 28) * np.array([1.0, scale, 0.0])[:, None, None]
    torch = pytest.importorskip("torch")
    for dtype, rtol in ((np.float64, 1e-11), (np.float32, 2e-3 if scale > 1 else 1e-5)):
        ours = cr.matrix_exp(cr.tensor(x.astype(dtype))).numpy()
        theirs = torch.matrix_exp(torch.tensor(x)).numpy()
        assert ours.dtype == dtype
        norms = np.abs(theirs).max(axis=(-2, -1), keepdims=True)
        if norms.max() < np.finfo(dtype).max:
            np.testing.assert_allclose(ours / norms, theirs / norms, rtol=0, atol=rtol)


@pytest.mark.parametrize("order", [1, float("inf"), 2, "fro", "nuc"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3)])
def test_the_norm_of_an_empty_tensor_is_zero(shape: tuple[int, ...], order: Any) -> None:
    compare_with_torch(lambda lib, x: lib.linalg.matrix_norm(x, order), np.ones(shape), order=0)


@pytest.mark.parametrize("shape", [(5, 3), (4, 4), (2, 5, 3)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_householder_product(shape: tuple, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    a, tau = rng.normal(size=shape), rng.normal(size=(*shape[:-2], shape[-1] - 1))
    if dtype == "complex128":
        a, tau = a + 1j * rng.normal(size=a.shape), tau + 1j * rng.normal(size=tau.shape)
    tau[..., 0] = 0
    compare_with_torch(lambda m, a, tau: m.linalg.householder_product(a, tau), a, tau, order=1)
    own, other = cr.geqrf(cr.tensor(a)), torch.geqrf(torch.tensor(a))
    np.testing.assert_allclose(own.a.numpy(), other.a.numpy(), atol=1e-12)
    np.testing.assert_allclose(own.tau.numpy(), other.tau.numpy(), atol=1e-12)
    q = cr.orgqr(*own)
    np.testing.assert_allclose((q @ cr.triu(own.a[..., : shape[-1], :])).numpy(), a, atol=1e-12)
    with pytest.raises(cr.ShapeError, match="expected A of shape"):
        cr.linalg.householder_product(cr.ones(2, 3), cr.ones(2))
