"""Triangular systems and LU factors: by NumPy's OpenBLAS, by SciPy, and by NumPy alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.blas import lapack, openblas
from chainrule.kernels import lu
from chainrule.kernels.triangular import solve_triangular as by_halves

Array = Any
RNG = np.random.default_rng(5)


@pytest.fixture(params=["as it is", "scipy", "numpy alone"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the routines come from."""
    lapack.routines.cache_clear()
    if request.param != "as it is":
        monkeypatch.setattr(openblas, "loaded", lambda: None)
    if request.param == "scipy":
        pytest.importorskip("scipy")
    if request.param == "numpy alone":
        monkeypatch.setattr(lapack, "find_spec", lambda name: None)
    yield request.param
    lapack.routines.cache_clear()


def numbers(*shape: int, dtype: str) -> Array:
    found = RNG.standard_normal(shape)
    return (found + 1j * RNG.standard_normal(shape) if dtype in "FD" else found).astype(dtype)


def matrix(*shape: int, dtype: str) -> Array:
    """Return matrices both of whose triangles are far from singular."""
    eye = np.eye(shape[-1], dtype=dtype)
    return (numbers(*shape, dtype=dtype) / max(shape[-1], 1) + 2 * eye).astype(dtype)


SHAPES = [
    *[((1, 1), (1, 1)), ((3, 3), (3, 1)), ((3, 3), (3, 4)), ((70, 70), (70, 1))],
    *[((70, 70), (70, 5)), ((0, 0), (0, 2)), ((3, 3), (3, 0)), ((0, 3, 3), (0, 3, 1))],
    *[((2, 3, 3), (2, 3, 2)), ((30, 30), (2, 30, 2)), ((2, 1, 30, 30), (3, 30, 1))],
    *[((2, 23, 23), (2, 23, 1)), ((2, 24, 24), (2, 24, 1)), ((1, 30, 30), (2, 30, 1))],
]
LAYOUTS = {
    "C": lambda x: x,
    "Fortran": lambda x: np.array(x.swapaxes(-1, -2), order="C").swapaxes(-1, -2),
    "strided": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "reversed": lambda x: np.array(x[..., ::-1])[..., ::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", "fdFD")
def test_triangular_systems_of_every_kind(dtype: str, layout: str, source: str) -> None:
    tolerance = 1e-4 if dtype in "fF" else 1e-12
    for shape, sides in SHAPES:
        a, b = (
            LAYOUTS[layout](f) for f in (matrix(*shape, dtype=dtype), numbers(*sides, dtype=dtype))
        )
        for upper in (False, True):
            for unit in (False, True):
                x = lapack.solve_triangular(a, b, upper=upper, unit=unit)
                eye = np.eye(shape[-1], dtype=dtype)
                read = np.triu(a) if upper else np.tril(a)
                read = read * (1 - eye) + eye if unit else read
                assert x.dtype == b.dtype
                assert x.flags.c_contiguous
                assert x.shape == (read @ b).shape
                np.testing.assert_allclose(read @ x, np.broadcast_to(b, x.shape), atol=tolerance)


def test_the_other_triangle_and_a_unit_diagonal_are_not_read(source: str) -> None:
    a, b = matrix(50, 50, dtype="d"), numbers(50, 2, dtype="d")
    expected = lapack.solve_triangular(a, b, upper=False, unit=True)
    a[np.triu_indices(50)] = np.nan
    np.testing.assert_allclose(lapack.solve_triangular(a, b, upper=False, unit=True), expected)


@pytest.mark.parametrize("shape", [(3, 3), (70, 70), (2, 3, 3), (2, 30, 30)])
def test_a_zero_on_the_diagonal_raises(shape: tuple[int, ...], source: str) -> None:
    a = matrix(*shape, dtype="d")
    a[..., -1, -1] = 0
    b = numbers(*shape[:-1], 2, dtype="d")
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        lapack.solve_triangular(a, b, upper=True, unit=False)
    assert np.isfinite(lapack.solve_triangular(a, b, upper=True, unit=True)).all()


def test_inputs_are_left_alone_and_may_be_read_only(source: str) -> None:
    a, b = matrix(70, 70, dtype="d"), numbers(70, 3, dtype="d")
    kept = a.copy(), b.copy()
    a.flags.writeable = b.flags.writeable = False
    lapack.solve_triangular(a, b, upper=True, unit=False)
    lapack.lu_factor(a)
    assert (a == kept[0]).all()
    assert (b == kept[1]).all()


def test_other_byte_orders_and_mixed_dtypes_are_left_to_numpy() -> None:
    a, b = matrix(30, 30, dtype="d"), numbers(30, 1, dtype="d")
    expected = by_halves(a, b, upper=True, unit=False)
    for x, y in ((a.astype(">f8"), b.astype(">f8")), (a.astype("D"), b)):
        found = lapack.solve_triangular(x, y, upper=True, unit=False)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_library_without_these_symbols_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    lapack.routines.cache_clear()

    def missing(self: Any, name: str, arguments: int) -> Any:
        raise AttributeError(name)

    monkeypatch.setattr(openblas.OpenBLAS, "routine", missing)
    monkeypatch.setattr(lapack, "find_spec", lambda name: None)
    try:
        assert lapack.routines("d") is None
        assert not lapack.pays((200, 200), np.dtype("d"))
    finally:
        lapack.routines.cache_clear()


# --- Cholesky factors -----------------------------------------------------------------------------


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", "fdFD")
def test_cholesky_factors_read_one_triangle(
    dtype: str, layout: str, upper: bool, source: str
) -> None:
    few, enough = lapack.MIN_CHOLESKY_ROWS - 1, lapack.MIN_CHOLESKY_ROWS
    sizes = [(0, 0), (1, 1), (few, few), (enough, enough), (70, 70), (2, 70, 70), (2, 0, 70, 70)]
    for shape in sizes:
        x = numbers(*shape, dtype=dtype)
        x = x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)
        triangle = (np.triu if upper else np.tril)(np.ones(shape[-2:]))
        given = LAYOUTS[layout](np.where(triangle, x, np.nan).astype(dtype))
        given.flags.writeable = False
        factor = lapack.cholesky(given, upper=upper)
        assert factor.dtype == x.dtype
        assert (factor[..., triangle == 0] == 0).all()
        other = factor.conj().swapaxes(-1, -2)
        tolerance = 1e-3 if dtype in "fF" else 1e-11
        product = other @ factor if upper else factor @ other
        np.testing.assert_allclose(product, x, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(3, 3), (70, 70), (2, 70, 70)])
def test_a_matrix_that_is_not_positive_definite_has_no_factor(
    shape: tuple[int, ...], source: str
) -> None:
    x = np.broadcast_to(np.eye(shape[-1]), shape).copy()
    x[..., -1, -1] = -1
    with pytest.raises(np.linalg.LinAlgError, match="Matrix is not positive definite"):
        lapack.cholesky(x)
    for function in (cr.linalg.cholesky, cr.compile(cr.linalg.cholesky, backend="numpy")):
        with pytest.raises(np.linalg.LinAlgError, match=r"not positive.definite"):
            function(cr.tensor(x))


def test_eager_and_compiled_cholesky_factors_are_lapacks(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, real = [], lapack.cholesky
    monkeypatch.setattr(
        lapack, "cholesky", lambda x, upper: (calls.append(x.shape), real(x, upper=upper))[1]
    )
    x = cr.eye(200) * 4
    for function in (cr.linalg.cholesky, cr.compile(cr.linalg.cholesky)):
        calls.clear()
        assert (function(x) == cr.eye(200) * 2).all()
        assert (200, 200) in calls


# --- LU factors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(
    "shape",
    [(1, 1), (5, 3), (3, 5), (70, 70), (0, 3), (0, 2, 2), (2, 3, 5, 4), (9, 2, 2), (99, 24, 24)],
    ids=str,
)
def test_factors_of_matrices_of_any_shape(
    shape: tuple[int, ...], dtype: str, layout: str, source: str
) -> None:
    x = LAYOUTS[layout](numbers(*shape, dtype=dtype))
    kept = x.copy()
    packed, pivots = lapack.factorize(x, pivot=True)
    *stack, m, n = shape
    k = min(m, n)
    assert (x == kept).all()
    assert packed.shape == shape
    assert packed.dtype == x.dtype
    assert pivots.shape == (*stack, k)
    lower, upper = np.tril(packed[..., :k], -1) + np.eye(m, k), np.triu(packed[..., :k, :])
    order = lu.row_permutation(np, pivots, m)[..., None]
    rows = np.take_along_axis(x, np.broadcast_to(order, x.shape), -2)
    np.testing.assert_allclose(lower @ upper, rows, atol=1e-4 if dtype in "fF" else 1e-12)
    assert (abs(lower) <= 1.5).all()  # of complex elements, LAPACK compares |re| + |im|


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", "fdFD")
def test_factors_solve_with_a_matrix_and_its_transpose(dtype: str, order: str, source: str) -> None:
    tolerance = 1e-2 if dtype in "fF" else 1e-9
    for n in (1, 5, 100):
        x = np.array(numbers(n, n, dtype=dtype), order=order)
        factors = lapack.lu_factor(x)
        for b in (numbers(n, 1, dtype=dtype), numbers(n, 3, dtype=dtype)):
            y = lu.lu_solve(np, *factors, b, transposed=False, solve=lapack.solve_triangular)
            np.testing.assert_allclose(x @ y, b, atol=tolerance)
            y = lu.lu_solve(np, *factors, b, transposed=True, solve=lapack.solve_triangular)
            np.testing.assert_allclose(x.T @ y, b, atol=tolerance)
        for found, expected in zip(lu.lu_slogdet(np, *factors), np.linalg.slogdet(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-3)
        inverse = lu.lu_inverse(np, *factors, x, transposed=True, lenient=False)
        np.testing.assert_allclose(inverse @ x.T, np.eye(n), atol=tolerance)


def test_factors_of_a_singular_matrix(source: str) -> None:
    x = np.ones((100, 100))
    factors = lapack.lu_factor(x)
    assert lu.lu_slogdet(np, *factors) == (0, -np.inf)
    with pytest.raises(np.linalg.LinAlgError):
        lu.lu_inverse(np, *factors, x, transposed=False, lenient=False)
    assert not np.isfinite(lu.lu_inverse(np, *factors, x, transposed=False, lenient=True)).all()


# --- solutions of large systems, whose derivatives use the factors --------------------------------


@pytest.mark.parametrize("n", [lapack.MIN_FACTORED_ROWS - 1, lapack.MIN_FACTORED_ROWS])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("dtype", "dD")
def test_solve_beside_pytorch_to_second_order(n: int, left: bool, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    a, b = matrix(n, n, dtype=dtype), numbers(n, 2, dtype=dtype)
    arrays = (a, b if left else b.T.copy())

    def derivatives(lib: Any, grad: Any, tensors: Any) -> list[Any]:
        out = lib.linalg.solve(*tensors, left=left)
        first = grad((abs(out) ** 2).sum(), tensors, create_graph=True)
        second = grad(sum((abs(g) ** 2).sum() for g in first), tensors)
        return [out, *first, *second]

    ours = derivatives(cr, cr.autograd_grad, [cr.tensor(x).requires_grad_() for x in arrays])
    theirs = derivatives(
        torch, torch.autograd.grad, [torch.tensor(x).requires_grad_() for x in arrays]
    )
    for mine, other in zip(ours, theirs, strict=True):
        expected = other.detach().resolve_conj().numpy()
        np.testing.assert_allclose(
            mine.detach().numpy(), expected, rtol=1e-7, atol=1e-9 * abs(expected).max()
        )


def test_a_large_matrix_is_factorised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    if lapack.routines("d") is None:
        pytest.skip("there is no LAPACK to call")
    n, calls = lapack.MIN_FACTORED_ROWS, []
    real = lapack.lu_factor
    monkeypatch.setattr(lapack, "lu_factor", lambda x: (calls.append(x.shape), real(x))[1])
    monkeypatch.setattr(np.linalg, "solve", lambda *_: calls.append("np.linalg.solve"))
    a = cr.tensor(matrix(n, n, dtype="d")).requires_grad_()
    cr.linalg.solve(a, cr.ones(n, 1, dtype=cr.float64)).sum().backward()
    assert calls == [(n, n)]


def test_a_large_singular_system_raises() -> None:
    with pytest.raises(cr.LinAlgError, match="solve: The solver failed because the input matrix"):
        cr.linalg.solve(cr.ones(100, 100), cr.ones(100, 1))
