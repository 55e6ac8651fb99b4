"""Eigenvalues and singular values, with SciPy's arguments and vectors.

Where eigenvalues coincide, a derivative that depends on the choice of their vectors is inf or nan,
as for `chainrule.linalg.eigh`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import linalg, ops
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import check_known, is_known
from chainrule.creation import zeros
from chainrule.errors import (
    ArgumentError,
    ArgumentTypeError,
    LinAlgError,
    MissingRuleError,
    ShapeError,
)
from chainrule.implicit import implicit_function
from chainrule.interop.operands import array_of
from chainrule.linalg.arguments import apply_lapack
from chainrule.ops.statistics import squared_magnitudes
from chainrule.primitives import decompositions
from chainrule.primitives.primitive import general
from chainrule.scipy.linalg.arguments import TABLE, adjoint, operands, square

Array = Any

# --- Hermitian matrices ---------------------------------------------------------------------------

eigh_primitive = general(
    "scipy_eigh",
    lambda xp, x, *, lower, driver: xp.scipy_linalg(
        x, routine="eigh", lower=lower, driver=driver, check_finite=False
    ),
    vjp=decompositions.eigh.vjp,
    jvp=decompositions.eigh.jvp,
    outputs=("values", "vectors"),
)

_NOT_CONVERGED = "The algorithm failed to converge."


def _standard(x: Tensor, lower: bool, driver: str | None) -> tuple[Tensor, Tensor]:
    values, vectors = apply_lapack(
        "eigh", eigh_primitive, _NOT_CONVERGED, x, lower=lower, driver=driver
    )
    return values, vectors


def hermitian_of(x: Tensor, lower: bool, conjugate: bool = True) -> Tensor:
    """Return a Hermitian matrix, or else a symmetric one, from one of its triangles."""
    flip = adjoint if conjugate else ops.matrix_transpose
    upper = ops.triu(flip(x) if lower else x, 1)
    diagonal = ops.diagonal(x, 0, -2, -1)
    diagonal = ops.real(diagonal) if conjugate and x.is_complex() else diagonal
    return upper + flip(upper) + ops.diag_embed(diagonal)


_GENERALISED_DRIVERS = (None, "gv", "gvd", "gvx")


def _generalised(
    a: Tensor, b: Tensor, lower: bool, kind: int, driver: str | None
) -> tuple[Tensor, Tensor]:
    """Return the solution of A v = w B v, of A B v = w v or of B A v = w v, for kind 1 to 3.

    With the Cholesky factor L of B, w are the eigenvalues of L⁻¹ A L⁻ᴴ or of Lᴴ A L.
    """
    factor = linalg.cholesky(b if lower else adjoint(b))
    a = hermitian_of(a, lower)
    if kind == 1:
        left = linalg.solve_triangular(factor, a, upper=False)
        inner = linalg.solve_triangular(factor, adjoint(left), upper=False)
    else:
        inner = adjoint(factor) @ a @ factor
    values, vectors = _standard(inner, lower, "ev" if driver == "gv" else "evd")
    if kind == 3:
        return values, factor @ vectors
    return values, linalg.solve_triangular(adjoint(factor), vectors, upper=True)


def _kept(values: Tensor, by_index: Any, by_value: Any) -> slice:
    """Return the range of eigenvalues that `subset_by_index` or `subset_by_value` choose."""
    n = values.shape[-1]
    if by_index is not None and by_value is not None:
        raise ArgumentError(
            "scipy.linalg.eigh: either subset_by_index or subset_by_value can be given, not both"
        )
    if by_index is not None:
        first, last = (int(i) for i in by_index)
        if not 0 <= first <= last < n:
            raise ArgumentError(
                f"scipy.linalg.eigh: expected 0 <= first <= last < {n} in subset_by_index, got "
                f"{by_index}"
            )
        return slice(first, last + 1)
    if by_value is None:
        return slice(None)
    low, high = by_value
    if not low < high:
        raise ArgumentError(
            f"scipy.linalg.eigh: the limits of subset_by_value must increase, got {by_value}"
        )
    check_known(values._array, "scipy.linalg.eigh", "choose by index, subset_by_index")
    array = array_of(values)
    return slice(int((array <= low).sum()), int((array <= high).sum()))


@TABLE.function("eigh", "rule")
def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Any:
    """Return eigenvalues and eigenvectors of Hermitian matrices, or of a pair of matrices."""
    if type not in (1, 2, 3):
        raise ArgumentError(f"scipy.linalg.eigh: expected type 1, 2 or 3, got {type!r}")
    lower = bool(lower)
    if b is None:
        if driver not in (None, "ev", "evd", "evr", "evx"):
            raise ArgumentError(
                f"scipy.linalg.eigh: {driver!r} is not a driver for standard problems: expected "
                "'ev', 'evd', 'evr' or 'evx'"
            )
        (x,) = square("eigh", a, finite=check_finite)
        values, vectors = _standard(x, lower, driver)
    else:
        if driver not in _GENERALISED_DRIVERS:
            raise ArgumentError(
                f"scipy.linalg.eigh: {driver!r} is not a driver for generalized problems: expected "
                "'gv', 'gvd' or 'gvx'"
            )
        x, y = square("eigh", a, b, finite=check_finite)
        values, vectors = _generalised(x, y, lower, type, driver)
    kept = _kept(values, subset_by_index, subset_by_value)
    if kept != slice(None):
        values, vectors = values[..., kept], vectors[..., kept]
    return values if eigvals_only else (values, vectors)


@TABLE.function("eigvalsh", "rule")
def eigvalsh(a: Any, b: Any = None, **settings: Any) -> Tensor:
    """Return the eigenvalues of Hermitian matrices, or of a pair of matrices."""
    values: Tensor = eigh(a, b, eigvals_only=True, **settings)
    return values


# --- general matrices -----------------------------------------------------------------------------


def _normalised(vectors: Tensor) -> Tensor:
    """Return vectors of length 1."""
    return vectors / ops.sqrt(ops.sum(squared_magnitudes(vectors), dim=-2, keepdim=True))


def _in_phase(vectors: Tensor, scipys: Callable[[], Any]) -> Tensor:
    """Return eigenvectors times constants of size 1, which make them SciPy's if they are known."""
    array = vectors._array
    if array.__class__ is not np.ndarray:
        return vectors
    phase = (array.conj() * scipys()).sum(-2, keepdims=True)
    size = np.abs(phase)
    phase = np.divide(phase, size, out=np.ones_like(phase), where=size > 0)
    return vectors * make(phase.astype(array.dtype), None)


def _of_pair(name: str, a: Any, b: Any, homogeneous: bool, finite: bool) -> Tensor:
    if homogeneous:
        raise MissingRuleError(
            f"scipy.linalg.{name}: homogeneous_eigvals=True has no derivative: the pairs are "
            "defined up to a factor"
        )
    if b is None:
        return square(name, a, finite=finite)[0]
    x, y = square(name, a, b, finite=finite)
    try:
        return linalg.solve(y, x)
    except LinAlgError:
        raise LinAlgError(
            f"scipy.linalg.{name}: b is singular, so that eigenvalues are infinite, which have no "
            "derivative: take those of the pair (b, a), which are their inverses"
        ) from None


@TABLE.function("eig", "rule")
def eig(
    a: Any,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Return eigenvalues and eigenvectors of square matrices, or of a pair of matrices."""
    x = _of_pair("eig", a, b, homogeneous_eigvals, check_finite)
    if not (left or right):
        return linalg.eigvals(x)
    values, vectors = linalg.eig(x)
    is_real = not x.is_complex() and is_known(values._array) and not values._array.imag.any()
    found = [values]
    if left:  # rows of the inverse; of a pair, in the coordinates before B⁻¹
        rows = linalg.inv(vectors)
        if b is not None:
            rows = linalg.solve(operands("eig", rows, b)[1], rows, left=False)
        pair = (array_of(a), None if b is None else array_of(b))
        left_vectors = _normalised(adjoint(rows))
        found.append(_in_phase(left_vectors, lambda: TABLE.scipys.eig(*pair, True, False)[1]))
    if right:
        found.append(vectors)
    return values, *[ops.real(part) if is_real else part for part in found[1:]]


@TABLE.function("eigvals", "rule")
def eigvals(
    a: Any,
    b: Any = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Tensor:
    """Return the eigenvalues of square matrices, or of a pair of matrices.

    Of a pair with a singular `b`, those that are infinite are constants.
    """
    try:
        x = _of_pair("eigvals", a, b, homogeneous_eigvals, check_finite)
    except LinAlgError:
        pair = square("eigvals", a, b, finite=check_finite)
        if pair[0].ndim > 2 or not all([is_known(x._array) for x in pair]):
            raise
        return _finite_of_pair(*pair)
    return linalg.eigvals(x)


def _finite_of_pair(a: Tensor, b: Tensor) -> Tensor:
    """Return the eigenvalues of a pair, of which the finite ones are recorded, by A x = λ B x."""
    numbers = [array_of(x.detach()) for x in (a, b)]
    found, right = TABLE.scipys.eig(*numbers)
    finite = np.isfinite(found)
    start = {"x": right[:, finite].astype(found.dtype), "values": found[finite]}
    away = make(start["x"].conj(), None)

    def residual(unknowns: Any) -> Any:
        x, values = unknowns["x"], unknowns["values"]
        size = ops.sum(away * x, dim=0) - 1.0
        return {"equation": a.to(x.dtype) @ x - b.to(x.dtype) @ x * values, "size": size}

    values = implicit_function(lambda: start, residual)()["values"]
    order = np.cumsum(finite) - 1
    parts = ops.where(finite, values[np.where(finite, order, 0)], 0.0)
    return parts + make(np.where(finite, 0.0, found), None)


# --- bands and tridiagonals -----------------------------------------------------------------------
#
# The matrix is made from its bands, since the derivative of vectors needs all of them.


def dense_of_bands(bands: Tensor, lower: bool) -> Tensor:
    """Return a Hermitian matrix from its bands on and below the diagonal, or on and above it."""
    count, n = bands.shape[-2:]
    flat = ops.reshape(bands, (*bands.shape[:-2], count * n))
    rows, columns = np.arange(n)[:, None], np.arange(n)
    band = rows - columns if lower else count - 1 + rows - columns
    inside = (band >= 0) & (band < count)
    index = np.where(inside, band * n + columns, 0)
    return hermitian_of(ops.masked_fill(flat[..., index], ~inside, 0), lower)


def _by_select(select: Any, limits: Any) -> dict[str, Any]:
    """Return SciPy's choice of eigenvalues as arguments of `eigh`."""
    if select in ("a", "all", 0):
        return {}
    if select in ("i", "index", 2):
        return {"subset_by_index": limits}
    if select in ("v", "value", 1):
        return {"subset_by_value": limits}
    raise ArgumentError(f"scipy.linalg: expected select 'a', 'i' or 'v', got {select!r}")


@TABLE.function("eig_banded", "composite")
def eig_banded(
    a_band: Any,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: Any = "a",
    select_range: Any = None,
    max_ev: int = 0,
    check_finite: bool = True,
) -> Any:
    """Return eigenvalues and eigenvectors of a Hermitian band matrix."""
    (bands,) = operands("eig_banded", a_band, finite=check_finite)
    if bands.ndim < 2:
        raise ShapeError(
            f"scipy.linalg.eig_banded: expected bands in rows, got the shape {list(bands.shape)}"
        )
    chosen = _by_select(select, select_range)
    dense = dense_of_bands(bands, lower)
    values, vectors = eigh(dense, lower=lower, check_finite=False, **chosen)
    if eigvals_only:
        return values

    def scipys() -> Any:
        limits = {"select": select, "select_range": select_range, "max_ev": max_ev}
        return TABLE.scipys.eig_banded(array_of(bands), lower, check_finite=False, **limits)[1]

    return values, _in_phase(vectors, scipys)


@TABLE.function("eigvals_banded", "composite")
def eigvals_banded(
    a_band: Any,
    lower: bool = False,
    overwrite_a_band: bool = False,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
) -> Tensor:
    """Return the eigenvalues of a Hermitian band matrix."""
    values: Tensor = eig_banded(a_band, lower, True, False, select, select_range, 0, check_finite)
    return values


_TRIDIAGONAL_DRIVERS = ("auto", "stemr", "sterf", "stebz", "stev", "stevd")


@TABLE.function("eigh_tridiagonal", "composite")
def eigh_tridiagonal(
    d: Any,
    e: Any,
    eigvals_only: bool = False,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Return eigenvalues and eigenvectors of a real symmetric tridiagonal matrix."""
    if lapack_driver not in _TRIDIAGONAL_DRIVERS:
        kind = ArgumentError if isinstance(lapack_driver, str) else TypeError
        raise kind(
            "scipy.linalg.eigh_tridiagonal: expected lapack_driver to be one of "
            f"{', '.join(map(repr, _TRIDIAGONAL_DRIVERS))}, got {lapack_driver!r}"
        )
    diagonal, beside = operands("eigh_tridiagonal", d, e, finite=check_finite)
    if diagonal.is_complex():
        raise ArgumentTypeError("scipy.linalg.eigh_tridiagonal: only real arrays are supported")
    if diagonal.shape[-1] != beside.shape[-1] + 1:
        raise ShapeError(
            f"scipy.linalg.eigh_tridiagonal: d of length {diagonal.shape[-1]} must have one more "
            f"element than e of length {beside.shape[-1]}"
        )
    last = zeros(*diagonal.shape[:-1], 1, dtype=diagonal.dtype)
    bands = ops.stack([diagonal, ops.concat([beside, last], axis=-1)], dim=-2)
    found = eig_banded(bands, True, eigvals_only, False, select, select_range, 0, False)
    if eigvals_only:
        return found

    def scipys() -> Any:
        limits = {"select": select, "select_range": select_range, "lapack_driver": lapack_driver}
        return TABLE.scipys.eigh_tridiagonal(array_of(diagonal), array_of(beside), **limits)[1]

    return found[0], _in_phase(found[1], scipys)


@TABLE.function("eigvalsh_tridiagonal", "composite")
def eigvalsh_tridiagonal(
    d: Any,
    e: Any,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Tensor:
    """Return the eigenvalues of a real symmetric tridiagonal matrix."""
    values: Tensor = eigh_tridiagonal(
        d, e, True, select, select_range, check_finite, tol, lapack_driver
    )
    return values


# --- singular values ------------------------------------------------------------------------------


@TABLE.function("svd", "rule")
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Return the singular value decomposition."""
    if lapack_driver not in ("gesdd", "gesvd"):
        raise ArgumentError(
            f"scipy.linalg.svd: expected lapack_driver 'gesdd' or 'gesvd', got {lapack_driver!r}"
        )
    (x,) = operands("svd", a, finite=check_finite)
    return tuple(linalg.svd(x, full_matrices)) if compute_uv else linalg.svdvals(x)


@TABLE.function("svdvals", "rule")
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """Return the singular values."""
    return linalg.svdvals(operands("svdvals", a, finite=check_finite)[0])


def rank_of(values: Tensor, shape: tuple[int, ...], rcond: Any, name: str) -> int:
    """Return the number of singular values above `rcond` times the largest one."""
    check_known(values._array, f"scipy.linalg.{name}", "take columns of svd()")
    array = array_of(values)
    cut = np.finfo(array.dtype).eps * max(shape[-2:]) if rcond is None else float(rcond)
    ranks = (array > cut * array.max(-1, initial=0.0, keepdims=True)).sum(-1)
    if ranks.size and (ranks != ranks.flat[0]).any():
        raise ShapeError(
            f"scipy.linalg.{name}: the matrices of a stack must have one rank, got {ranks.tolist()}"
        )
    return int(ranks.flat[0]) if ranks.size else min(shape[-2:])


@TABLE.function("orth", "composite")
def orth(A: Any, rcond: Any = None) -> Tensor:
    """Return an orthonormal basis of the range of a matrix, for a constant rank."""
    (x,) = operands("orth", A)
    u, s, _ = linalg.svd(x, False)
    return u[..., : rank_of(s, x.shape, rcond, "orth")]


@TABLE.function("null_space", "composite")
def null_space(
    A: Any,
    rcond: Any = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Tensor:
    """Return an orthonormal basis of the null space of a matrix, for a constant rank."""
    (x,) = operands("null_space", A, finite=check_finite)
    _, s, vh = linalg.svd(x, True)
    return adjoint(vh[..., rank_of(s, x.shape, rcond, "null_space") :, :])


@TABLE.function("subspace_angles", "composite")
def subspace_angles(A: Any, B: Any) -> Tensor:
    """Return the angles between the ranges of two matrices, from the largest on."""
    first, second = orth(A), orth(B)
    if first.shape[-2] != second.shape[-2]:
        raise ShapeError(
            "scipy.linalg.subspace_angles: expected A and B with equally many rows, got the shapes "
            f"{list(np.shape(A))} and {list(np.shape(B))}"
        )
    inner = adjoint(first) @ second
    cosines = linalg.svdvals(inner)
    if first.shape[-1] >= second.shape[-1]:
        rest = second - first @ inner
    else:
        rest = first - second @ adjoint(inner)
    # Small angles from their sines, which are precise: Knyazev, Argentati, SIAM J. Sci. Comput.
    # 23(6), 2002.
    large = ops.square(cosines) < 0.5
    sines = ops.clip(linalg.svdvals(rest), -1.0, 1.0)
    cosines = ops.clip(ops.flip(cosines, (-1,)), -1.0, 1.0)
    large = ops.flip(large, (-1,))
    safe = ops.where(large, 0.5, sines)
    return ops.where(large, ops.acos(ops.where(large, cosines, 0.5)), ops.asin(safe))
