"""Decompositions: Cholesky, LU, QR and polar, with SciPy's arguments."""

from __future__ import annotations

from typing import Any

from chainrule import linalg, ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, MissingRuleError, ShapeError
from chainrule.interop.operands import tensor_of
from chainrule.primitives.matrices import adjoint as adjoint_rule
from chainrule.primitives.matrices import conj, hermitian_part, transpose
from chainrule.primitives.primitive import Primitive, applied, constant, general
from chainrule.primitives.solve import solve
from chainrule.scipy.linalg.arguments import TABLE, adjoint, as_vector, operands, square, system
from chainrule.scipy.linalg.equations import sylvester

Array = Any

# --- Cholesky -------------------------------------------------------------------------------------


@TABLE.function("cholesky", "rule")
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Tensor:
    """Return the Cholesky factor, upper or lower, of Hermitian positive-definite matrices.

    One triangle is read; the gradient is Hermitian, as that of `chainrule.linalg.cholesky`.
    """
    (x,) = square("cholesky", a, finite=check_finite)
    return linalg.cholesky(x, upper=not lower)


@TABLE.function("cho_factor", "rule")
def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, bool]:
    """Return the Cholesky factor for `cho_solve`; the other triangle is that of the matrix."""
    (x,) = square("cho_factor", a, finite=check_finite)
    other = ops.triu(x, 1) if lower else ops.tril(x, -1)
    return linalg.cholesky(x, upper=not lower) + other, lower


@TABLE.function("cho_solve", "composite")
def cho_solve(
    c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Tensor:
    """Return the solution of A x = b, given the Cholesky factor of A."""
    c, lower = c_and_lower
    factor, sides, vector = system("cho_solve", c, b, check_finite)
    found = linalg.solve_triangular(factor if lower else adjoint(factor), sides, upper=False)
    return as_vector(
        linalg.solve_triangular(adjoint(factor) if lower else factor, found, upper=True), vector
    )


# --- LU -------------------------------------------------------------------------------------------


@TABLE.function("lu", "rule")
def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> Any:
    """Return the factors of A = P L U, with a constant permutation."""
    (x,) = operands("lu", a, finite=check_finite)
    p, left, right = linalg.lu(x)
    if permute_l:
        return p @ left, right
    p = ops.real(p) if p.is_complex() else p
    return cast(ops.argmax(p, dim=-1), "int32") if p_indices else p, left, right


@TABLE.function("lu_factor", "rule")
def lu_factor(
    a: Any, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, Tensor]:
    """Return both factors in one matrix, and the row exchanges counted from 0, for `lu_solve`."""
    (x,) = operands("lu_factor", a, finite=check_finite)
    packed, pivots, _ = linalg.lu_factor_ex(x)
    return packed, pivots - 1


@TABLE.function("lu_solve", "composite")
def lu_solve(
    lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Tensor:
    """Return the solution of A x = b, of Aᵀ x = b or of Aᴴ x = b, from `lu_factor`."""
    if trans not in (0, 1, 2):
        raise ArgumentError(f"scipy.linalg.lu_solve: expected trans 0, 1 or 2, got {trans!r}")
    packed, pivots = lu_and_piv
    factors, sides, vector = system("lu_solve", packed, b, check_finite)
    exchanges = tensor_of(pivots) + 1
    if trans == 1:
        found = linalg.lu_solve(factors, exchanges, ops.matrix_transpose(sides), left=False)
        return as_vector(ops.matrix_transpose(found), vector)
    return as_vector(linalg.lu_solve(factors, exchanges, sides, adjoint=trans == 2), vector)


# --- QR -------------------------------------------------------------------------------------------

qr_pivots = constant(
    "scipy_qr_pivots", forward=lambda xp, x: xp.scipy_linalg(x, routine="qr_pivots")
)

_MODES = ("full", "qr", "r", "economic", "raw")


@TABLE.function("qr", "rule")
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return the factors of A = Q R, or of A[:, P] = Q R with a constant permutation."""
    if mode not in _MODES:
        raise ArgumentError(
            f"scipy.linalg.qr: expected mode 'full', 'r', 'economic' or 'raw', got {mode!r}"
        )
    if mode == "raw":
        raise MissingRuleError(
            "scipy.linalg.qr has no derivative in mode 'raw', whose reflectors are LAPACK's own: "
            "take mode='full' or 'economic'"
        )
    (x,) = operands("qr", a, finite=check_finite)
    order: tuple[Tensor, ...] = ()
    if pivoting:
        pivots = qr_pivots.apply(x)
        x = ops.take_along_dim(x, ops.broadcast_to(pivots[..., None, :], x.shape), dim=-1)
        order = (cast(pivots, "int32"),)
    q, r = linalg.qr(x, "reduced" if mode == "economic" else "complete")
    if mode == "r":
        return (r, *order)
    return q, r, *order


@TABLE.function("rq", "rule")
def rq(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    check_finite: bool = True,
) -> Any:
    """Return the factors of A = R Q: those of the flipped adjoint by QR, flipped back."""
    if mode not in ("full", "r", "economic"):
        raise ArgumentError(
            f"scipy.linalg.rq: expected mode 'full', 'r' or 'economic', got {mode!r}"
        )
    (x,) = operands("rq", a, finite=check_finite)
    flipped = adjoint(ops.flip(x, (-2, -1)))
    q, r = linalg.qr(flipped, "reduced" if mode == "economic" else "complete")
    factor = ops.flip(adjoint(r), (-2, -1))
    return factor if mode == "r" else (factor, ops.flip(adjoint(q), (-2, -1)))


@TABLE.function("qr_multiply", "composite")
def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    """Return c Q, or Q c in mode "left", and R of the QR decomposition of `a`."""
    if mode not in ("left", "right"):
        raise ArgumentError(
            f"scipy.linalg.qr_multiply: expected mode 'left' or 'right', got {mode!r}"
        )
    x, y = operands("qr_multiply", a, c)
    m, n = x.shape[-2:]
    vector = y.ndim == 1
    if vector:
        y = ops.reshape(y, (1, y.shape[0]) if mode == "right" else (y.shape[0], 1))
    inner = y.shape[-1] if mode == "right" else y.shape[-2]
    whole = mode == "left" and m > n and inner == m
    found = qr(x, mode="full" if whole else "economic", pivoting=pivoting)
    q, r = ops.conj(found[0]) if conjugate else found[0], found[1][..., : min(m, n), :]
    if inner != q.shape[-2 if mode == "right" else -1]:
        raise ShapeError(
            f"scipy.linalg.qr_multiply: c of shape {list(y.shape)} doesn't fit Q of shape "
            f"{list(q.shape)}"
        )
    product = y @ q if mode == "right" else q @ y
    if vector:
        product = product[..., 0, :] if mode == "right" else product[..., 0]
    return product, r, *found[2:]


# --- polar: the unitary factor U of A = U P, with Uᴴ dU P + P Uᴴ dU = Uᴴ dA - dAᴴ U ---------------


def _polar_jvp(xp: Any, t: Array, x: Array, out: Array) -> Array:
    uh = adjoint_rule(xp, out)
    size = hermitian_part(xp, xp.matmul(uh, x))
    inner = xp.matmul(uh, t)
    turn = applied(sylvester, xp)(size, size, inner - adjoint_rule(xp, inner))
    moved = xp.matmul(out, turn)
    if x.shape[-2] == x.shape[-1]:
        return moved
    outside = transpose(xp, t - xp.matmul(out, inner))
    return moved + transpose(xp, applied(solve, xp)(transpose(xp, size), outside))


def _polar_vjp(xp: Any, g: Array, x: Array, out: Array) -> Array:
    g, uh = conj(xp, g), adjoint_rule(xp, out)
    size = hermitian_part(xp, xp.matmul(uh, x))
    inner = xp.matmul(uh, g)
    turn = applied(sylvester, xp)(size, size, inner - adjoint_rule(xp, inner))
    found = xp.matmul(out, turn)
    if x.shape[-2] != x.shape[-1]:
        outside = transpose(xp, g - xp.matmul(out, inner))
        found = found + transpose(xp, applied(solve, xp)(transpose(xp, size), outside))
    return conj(xp, found)


polar_factor: Primitive = general(
    "scipy_polar",
    lambda xp, x: xp.scipy_linalg(x, routine="polar"),
    vjp=(_polar_vjp,),
    jvp=(_polar_jvp,),
)


def unitary_factor(x: Tensor) -> Tensor:
    """Return the factor of a polar decomposition that has orthonormal columns or rows."""
    if x.shape[-2] >= x.shape[-1]:
        return polar_factor.apply(x)
    return adjoint(polar_factor.apply(adjoint(x)))


@TABLE.function("polar", "equation")
def polar(a: Any, side: str = "right") -> tuple[Tensor, Tensor]:
    """Return the unitary and the positive semidefinite factor of A = U P, or of A = P U.

    Differentiable where A has full rank.
    """
    if side not in ("right", "left"):
        raise ArgumentError(f"scipy.linalg.polar: expected side 'right' or 'left', got {side!r}")
    (x,) = operands("polar", a, finite=False)
    if x.ndim < 2:
        raise ShapeError(f"scipy.linalg.polar: expected a matrix, got the shape {list(x.shape)}")
    u = unitary_factor(x)
    p = adjoint(u) @ x if side == "right" else x @ adjoint(u)
    return u, (p + adjoint(p)) * 0.5


@TABLE.function("orthogonal_procrustes", "equation")
def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> tuple[Tensor, Tensor]:
    """Return the unitary R that minimises ‖A R - B‖, and the scale: the sum of singular values."""
    x, y = operands("orthogonal_procrustes", A, B, finite=check_finite)
    if x.shape != y.shape or x.ndim != 2:
        raise ShapeError(
            "scipy.linalg.orthogonal_procrustes: expected two matrices of one shape, got "
            f"{list(x.shape)} and {list(y.shape)}"
        )
    product = adjoint(x) @ y
    r = unitary_factor(product)
    return r, ops.real(ops.trace(adjoint(r) @ product))
