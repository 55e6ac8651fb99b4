"""Solutions of linear systems, inverses and norms, with SciPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import linalg, ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend import check_known
from chainrule.errors import ArgumentError, LinAlgError, ShapeError
from chainrule.interop import array_function
from chainrule.linalg.rank import matrix_rank
from chainrule.scipy.linalg.arguments import (
    TABLE,
    adjoint,
    as_vector,
    eye_like,
    operands,
    square,
    system,
)
from chainrule.scipy.linalg.banded import solve_bands
from chainrule.scipy.linalg.decompositions import cho_solve
from chainrule.scipy.linalg.eigenvalues import hermitian_of

_STRUCTURES: dict[Any, str] = {
    **dict.fromkeys([None, "gen", "general", "banded"], "general"),
    **dict.fromkeys(["sym", "symmetric"], "symmetric"),
    **dict.fromkeys(["her", "hermitian"], "hermitian"),
    **dict.fromkeys(["pos", "positive definite"], "positive definite"),
    **{s: s for s in ("diagonal", "tridiagonal", "upper triangular", "lower triangular")},
}


def _structure(name: str, assume_a: str | None) -> str:
    try:
        return _STRUCTURES[assume_a]
    except (KeyError, TypeError):
        raise ArgumentError(
            f"scipy.linalg.{name}: {assume_a!r} is not a recognized matrix structure: expected one "
            f"of {', '.join(repr(s) for s in _STRUCTURES if s)}"
        ) from None


def _solve(name: str, x: Tensor, b: Tensor, structure: str, lower: bool) -> Tensor:
    """Return the solution for a matrix of which only what its structure has is read."""
    if structure == "positive definite":
        factor = linalg.cholesky(x, upper=not lower)
        return cho_solve((factor, lower), b, check_finite=False)
    if structure == "diagonal":
        diagonal = ops.diagonal(x, 0, -2, -1)
        if diagonal._array.__class__ is np.ndarray and not diagonal._array.all():
            raise LinAlgError(f"scipy.linalg.{name}: the matrix is singular: a 0 on its diagonal")
        return b / ops.reshape(diagonal, (*diagonal.shape, 1))
    if structure.endswith("triangular"):
        return linalg.solve_triangular(x, b, upper=structure.startswith("upper"))
    if structure == "tridiagonal":
        n = x.shape[-1]
        parts = [
            ops.diagonal(x, 1, -2, -1),
            ops.diagonal(x, 0, -2, -1),
            ops.diagonal(x, -1, -2, -1),
        ]
        zero = parts[1][..., :1] * 0
        first = [ops.concat([zero, parts[0]], axis=-1), parts[1]]
        bands = ops.stack([*first, ops.concat([parts[2], zero], axis=-1)], dim=-2)
        return solve_bands(bands, b, (1, 1)) if n > 1 else b / x
    if structure in ("symmetric", "hermitian"):
        x = hermitian_of(x, lower, structure == "hermitian")
    return linalg.solve(x, b)


@TABLE.function("solve", "equation")
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Tensor:
    """Return the solution of A x = b, or of Aᵀ x = b if `transposed`.

    What an assumed structure doesn't read has the gradient 0; that of a positive definite matrix
    is Hermitian.
    """
    structure = _structure("solve", assume_a)
    x, sides, vector = system("solve", a, b, check_finite)
    if transposed:
        if x.is_complex():
            raise NotImplementedError(
                "scipy.linalg.solve can currently not solve a^T x = b or a^H x = b for complex "
                "matrices: pass a.T"
            )
        x, lower = ops.matrix_transpose(x), not lower
        flipped = {"upper triangular": "lower triangular", "lower triangular": "upper triangular"}
        structure = flipped.get(structure, structure)
    return as_vector(_solve("solve", x, sides, structure, bool(lower)), vector)


@TABLE.function("inv", "rule")
def inv(
    a: Any,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Tensor:
    """Return the inverse of square matrices; `assume_a` is as for `solve`."""
    structure = _structure("inv", assume_a)
    (x,) = square("inv", a, finite=check_finite)
    if structure in ("general", "tridiagonal"):
        return linalg.inv(x)
    return _solve("inv", x, eye_like(x, x.shape[-1]), structure, bool(lower))


@TABLE.function("solve_triangular", "equation")
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """Return the solution of A x = b, of Aᵀ x = b or of Aᴴ x = b, for a triangular matrix."""
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ArgumentError(
            f"scipy.linalg.solve_triangular: expected trans 0, 1, 2, 'N', 'T' or 'C', got {trans!r}"
        )
    x, sides, vector = system("solve_triangular", a, b, check_finite)
    upper = not lower
    if trans not in (0, "N"):
        x = ops.matrix_transpose(x) if trans in (1, "T") else adjoint(x)
        upper = not upper
    found = linalg.solve_triangular(x, sides, upper=upper, unitriangular=bool(unit_diagonal))
    return as_vector(found, vector)


@TABLE.function("det", "rule")
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """Return the determinant of square matrices."""
    return linalg.det(square("det", a, finite=check_finite)[0])


@TABLE.function("lstsq", "composite")
def lstsq(
    a: Any,
    b: Any,
    cond: float | None = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: str | None = None,
) -> tuple[Tensor, Tensor, Any, Tensor | None]:
    """Return the least-squares solution, the residuals, the rank and the singular values."""
    if lapack_driver not in (None, "gelsd", "gelsy", "gelss"):
        raise ArgumentError(f"scipy.linalg.lstsq: LAPACK driver {lapack_driver!r} is not found")
    x, y = operands("lstsq", a, b, finite=check_finite)
    vector = y.ndim == 1
    y = ops.reshape(y, (*y.shape, 1)) if vector else y
    if min(x.ndim, y.ndim) < 2 or y.shape[-2] != x.shape[-2]:
        raise ShapeError(
            "scipy.linalg.lstsq: shape mismatch: expected a matrix and right sides with as many "
            f"rows, got the shapes {list(x.shape)} and {list(np.shape(b))}"
        )
    check_known(x._array, "scipy.linalg.lstsq", "the solution is pinv(a) @ b")
    if x.ndim > 2 and y.ndim < x.ndim:
        y = ops.broadcast_to(y, (*x.shape[:-2], *y.shape[-2:]))
    cut = float(np.finfo(x.dtype).eps if cond is None else cond)
    solution, residuals, ranks, singular = linalg.lstsq(x, y, cut, driver="gelsd")
    rank = ranks if x.ndim > 2 else int(ranks)
    if lapack_driver == "gelsy":
        return as_vector(solution, vector), residuals[:0], rank, None
    if vector and residuals.numel():
        residuals = ops.reshape(residuals, residuals.shape[:-1])
    return as_vector(solution, vector), residuals, rank, singular


def _tolerances(name: str, atol: Any, rtol: Any) -> None:
    if any(x is not None and float(x) < 0 for x in (atol, rtol)):
        raise ArgumentError(f"scipy.linalg.{name}: atol and rtol values must be positive")


def _pinv(name: str, x: Tensor, atol: Any, rtol: Any, rank: bool, hermitian: bool) -> Any:
    _tolerances(name, atol, rtol)
    relative = np.finfo(x.dtype).eps * max(x.shape[-2:]) if rtol is None else float(rtol)
    absolute: Any = None
    if atol is not None and float(atol):  # SciPy adds the tolerances
        absolute = float(atol) + relative * linalg.svdvals(x.detach())[..., 0]
        relative = 0.0
    found = linalg.pinv(x, hermitian=hermitian, atol=absolute, rtol=relative)
    if not rank:
        return found
    ranks = matrix_rank(x.detach(), atol=absolute, rtol=relative)
    return found, ranks if x.ndim > 2 else int(ranks)


@TABLE.function("pinv", "rule")
def pinv(
    a: Any,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return the pseudoinverse of matrices, for a constant rank."""
    (x,) = operands("pinv", a, finite=check_finite)
    return _pinv("pinv", x, atol, rtol, return_rank, False)


@TABLE.function("pinvh", "rule")
def pinvh(
    a: Any,
    atol: float | None = None,
    rtol: float | None = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return the pseudoinverse of Hermitian matrices, for a constant rank."""
    (x,) = square("pinvh", a, finite=check_finite)
    return _pinv("pinvh", x if lower else adjoint(x), atol, rtol, return_rank, True)


@TABLE.function("norm", "rule")
def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Tensor:
    """Return a norm of vectors or matrices."""
    (x,) = operands("norm", a, finite=check_finite)
    settings = {"ord": ord, "axis": axis, "keepdims": keepdims}
    found: Tensor = array_function(np.linalg.norm, (), (x,), settings)
    return found
