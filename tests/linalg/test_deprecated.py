"""The functions that PyTorch had before `torch.linalg`, and decompositions of low rank."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import check_derivatives, compare_with_torch, random_array

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated")
DTYPES = pytest.mark.parametrize("dtype", ["float64", "complex128"])
pytest.importorskip("torch")


def definite(n: int, dtype: str) -> np.ndarray:
    x = random_array((2, n, n), dtype)
    return x @ x.conj().swapaxes(-1, -2) + np.eye(n)


@DTYPES
def test_cholesky(dtype: str) -> None:
    order = 1 if dtype == "float64" else 0  # of complex ones, PyTorch's gradient isn't Hermitian
    for upper in (False, True):
        compare_with_torch(
            lambda lib, x, u=upper: lib.cholesky(x, u), definite(3, dtype), order=order
        )
    compare_with_torch(lambda lib, x: x.cholesky(upper=True), definite(3, dtype), order=0)


@DTYPES
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 5)])
def test_svd(shape: tuple[int, ...], dtype: str) -> None:
    def products(lib: Any, x: Any, *some: bool) -> Any:
        u, s, v = lib.svd(x, *some)
        k = s.shape[-1]
        return s, (u[..., :k] * s[..., None, :]) @ v[..., :k].mH

    compare_with_torch(products, random_array(shape, dtype))
    compare_with_torch(lambda lib, x: lib.svd(x, compute_uv=False)[1], random_array(shape, dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare_with_torch(
            lambda lib, x: [part.abs() for part in lib.svd(x, compute_uv=False)],
            random_array(shape, dtype),
            order=0,
        )
    x = cr.tensor(random_array(shape, dtype))
    m, n = shape[-2:]
    assert [cr.svd(x, some=False)[i].shape[-2:] for i in (0, 2)] == [(m, m), (n, n)]
    assert x.svd()._fields == ("U", "S", "V")


def test_qr() -> None:
    x = random_array((4, 2))
    compare_with_torch(lambda lib, x: [part.abs() for part in lib.qr(x)], x)
    compare_with_torch(lambda lib, x: [part.abs() for part in x.qr(some=False)], x, order=0)


@DTYPES
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_solve(upper: bool, transpose: bool, unit: bool, dtype: str) -> None:
    a, b = random_array((3, 3), dtype) + 2 * np.eye(3), random_array((3, 2), dtype, 1)

    def solved(lib: Any, a: Any, b: Any) -> Any:
        result = lib.triangular_solve(b, a, upper=upper, transpose=transpose, unitriangular=unit)
        return result.solution, result.cloned_coefficient

    compare_with_torch(solved, a, b, order=1)
    compare_with_torch(lambda lib, a, b: b.triangular_solve(a)[0], a, b, order=1)


@DTYPES
def test_lu(dtype: str) -> None:
    a, b = random_array((2, 3, 3), dtype), random_array((2, 3, 2), dtype, 1)
    compare_with_torch(lambda lib, a: list(lib.lu(a)), a, order=1)
    compare_with_torch(lambda lib, a: list(a.lu(get_infos=True)), a, order=0)
    compare_with_torch(lambda lib, a, b: lib.lu_solve(b, *lib.lu(a)), a, b)
    compare_with_torch(lambda lib, a, b: b.lu_solve(*lib.lu(a)), a, b, order=0)


@DTYPES
@pytest.mark.parametrize("shape", [(2, 3, 3), (4, 2), (2, 4)])
def test_lu_unpack(shape: tuple[int, ...], dtype: str) -> None:
    a = random_array(shape, dtype)
    compare_with_torch(lambda lib, a: list(lib.lu_unpack(*lib.linalg.lu_factor(a))), a, order=1)
    for kept in ("unpack_data", "unpack_pivots"):
        compare_with_torch(
            lambda lib, a, k=kept: list(lib.lu_unpack(*lib.linalg.lu_factor(a), **{k: False})),
            a,
            order=0,
        )
    result = cr.lu_unpack(*cr.lu(cr.tensor(a[..., :2, :2])))
    assert result._fields == ("P", "L", "U")


def test_low_rank() -> None:
    x = random_array((5, 2)) @ random_array(
        (2, 4), seed=1
    )  # of rank 2: PyTorch's iterations are exact

    def rebuilt(lib: Any, x: Any, function: str, **settings: Any) -> Any:
        u, s, v = getattr(lib, function)(x, q=2, **settings)
        return s, (u * s) @ v.mT

    compare_with_torch(lambda lib, x: rebuilt(lib, x, "svd_lowrank"), x, order=0)
    compare_with_torch(lambda lib, x: rebuilt(lib, x, "pca_lowrank"), x, order=0)
    compare_with_torch(lambda lib, x: rebuilt(lib, x, "pca_lowrank", center=False), x, order=0)
    y = cr.tensor(random_array((5, 4), seed=2), requires_grad=True)
    assert cr.svd_lowrank(y, 3, M=y * 0.5).S.tolist() == pytest.approx(
        (cr.linalg.svdvals(y)[:3] / 2).tolist()
    )
    assert [part.shape for part in cr.pca_lowrank(y)] == [(5, 4), (4,), (4, 4)]
    assert cr.gradcheck(lambda x: cr.pca_lowrank(x, 2).S, y, fast_mode=True)


def test_an_invalid_number_of_singular_values() -> None:
    for function in (cr.svd_lowrank, cr.pca_lowrank):
        with pytest.raises(cr.ArgumentError, match=r"q\(=3\) must be non-negative integer and not"):
            function(cr.ones(2, 4), q=3)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_products_with_reflections(left: bool, transpose: bool, dtype: str) -> None:
    a, tau = (t.numpy() for t in cr.geqrf(cr.tensor(random_array((2, 5, 3), dtype))))
    other = random_array((2, 5, 4) if left else (2, 4, 5), dtype)

    def product(lib: Any, a: Any, tau: Any, other: Any) -> Any:
        return lib.ormqr(a, tau, other, left, transpose)

    compare_with_torch(product, a, tau, other, order=0)
    check_derivatives(product, a, tau, other)


def test_methods_of_reflections_and_errors() -> None:
    x = cr.tensor(random_array((4, 3)))
    a, tau = x.geqrf()
    np.testing.assert_allclose(a.orgqr(tau) @ cr.triu(a[:3]), x, atol=1e-12)
    np.testing.assert_allclose(a.ormqr(tau, x, transpose=True), cr.triu(a), atol=1e-12)
    with pytest.raises(ValueError, match=r"other of shape \(..., m, n\)"):
        cr.ormqr(a, tau, cr.ones(3, 4))
