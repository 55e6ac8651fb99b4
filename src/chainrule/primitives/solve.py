"""Linear systems: inverses, solutions and pseudoinverses.

The rules are those of M. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008 (its numbers are given), unless another source is named.
"""

from __future__ import annotations

from typing import Any

from chainrule.primitives.matrices import (
    adjoint,
    below_diagonal,
    conj,
    hermitian_part,
    on_diagonal,
    real,
    rows,
    transpose,
)
from chainrule.primitives.primitive import Primitive, applied, general, symmetric

Array = Any
Needs = tuple[bool, ...]

# --- inverse and solutions ------------------------------------------------------------------------


def _inv_vjp(xp: Any, g: Array, out: Array) -> Array:  # 2.2.3
    back = transpose(xp, out)
    return -xp.matmul(xp.matmul(back, g), back)


inv = general(
    "inv",
    lambda xp, x, *, lenient: xp.inverses(x) if lenient else xp.linalg.inv(x),
    vjp=(_inv_vjp,),
    jvp=(lambda xp, t, out: -xp.matmul(xp.matmul(out, t), out),),
    label="LinalgInvExBackward0",
)


def _solve_vjp(
    xp: Any, g: Array, a: Array, out: Array, needs: Needs
) -> tuple[Array | None, Array | None]:  # 2.3.1
    grad_b = applied(solve, xp)(transpose(xp, a), g)
    grad_a = -xp.matmul(grad_b, transpose(xp, out)) if needs[0] else None
    return grad_a, grad_b if needs[1] else None


solve: Primitive = general(
    "solve",
    lambda xp, a, b: xp.linalg.solve(a, b),
    vjp=_solve_vjp,
    jvp=(
        lambda xp, t, a, out: -applied(solve, xp)(a, xp.matmul(t, out)),
        lambda xp, t, a: applied(solve, xp)(a, t),
    ),
    label="LinalgSolveExBackward0",
    broadcasts=False,
)

_MAX_GENERAL_SIZE = 64
"""Order up to which LAPACK's general routine solves triangular systems; larger ones are halved."""


def _back_substitution(xp: Any, a: Array, b: Array) -> Array:
    """Solve with an upper triangular matrix, in which the general routine eliminates nothing."""
    n = a.shape[-1]
    if n <= _MAX_GENERAL_SIZE:
        return xp.linalg.solve(a, b)
    half = n // 2
    lower = _back_substitution(xp, a[..., half:, half:], b[..., half:, :])
    rest = b[..., :half, :] - xp.matmul(a[..., :half, half:], lower)
    upper = _back_substitution(xp, a[..., :half, :half], rest)
    return xp.concat([upper, lower], axis=-2)


def _triangle(xp: Any, x: Array, upper: bool, unit: bool) -> Array:
    """Return the triangle of `x`, without the diagonal if `unit`."""
    below = below_diagonal(xp, x)
    if unit:
        others = xp.logical_or(below, on_diagonal(xp, x))
        return xp.masked(x, xp.logical_not(others) if upper else below)
    return xp.masked(
        x, xp.logical_not(below) if upper else xp.logical_or(below, on_diagonal(xp, x))
    )


def _solve_triangular(xp: Any, a: Array, b: Array, *, upper: bool, unit: bool) -> Array:
    a = _triangle(xp, a, upper, unit)
    if unit:
        a = a + xp.eye(a.shape[-1], dtype=a.dtype)
    if upper:
        return _back_substitution(xp, a, b)
    # Reversing rows and columns makes a lower triangular matrix an upper one.
    a, b = xp.flip(a, axis=(a.ndim - 2, a.ndim - 1)), xp.flip(b, axis=(b.ndim - 2,))
    out = _back_substitution(xp, a, b)
    return xp.flip(out, axis=(out.ndim - 2,))


def _solve_triangular_vjp(
    xp: Any, g: Array, a: Array, out: Array, needs: Needs, *, upper: bool, unit: bool
) -> tuple[Array | None, Array | None]:
    grad_b = applied(solve_triangular, xp)(transpose(xp, a), g, upper=not upper, unit=unit)
    if not needs[0]:
        return None, grad_b
    grad_a = -xp.matmul(grad_b, transpose(xp, out))
    return _triangle(xp, grad_a, upper, unit), grad_b if needs[1] else None


def _solve_triangular_jvp(
    xp: Any, t: Array, a: Array, out: Array, *, upper: bool, unit: bool
) -> Array:
    moved = xp.matmul(_triangle(xp, t, upper, unit), out)
    return -applied(solve_triangular, xp)(a, moved, upper=upper, unit=unit)


solve_triangular: Primitive = general(
    "solve_triangular",
    _solve_triangular,
    vjp=_solve_triangular_vjp,
    jvp=(
        _solve_triangular_jvp,
        lambda xp, t, a, *, upper, unit: applied(solve_triangular, xp)(
            a, t, upper=upper, unit=unit
        ),
    ),
    label="LinalgSolveTriangularBackward0",
    broadcasts=False,
)

# --- Hermitian matrices from their lower triangle -------------------------------------------------


def _mirror_lower(xp: Any, x: Array) -> Array:
    lower = xp.masked(x, below_diagonal(xp, x))
    return lower + adjoint(xp, lower) + real(xp, xp.masked(x, on_diagonal(xp, x)))


hermitian = symmetric(
    "hermitian", lambda xp, g: hermitian_part(xp, g), forward=lambda xp, x: _mirror_lower(xp, x)
)


# --- pseudoinverse: G. Golub, V. Pereyra, SIAM J. Numer. Anal. 10(2), 1973 ------------------------


def _pinv(xp: Any, x: Array, *, rtol: Any, atol: Any, hermitian: bool) -> Array:
    if hermitian:
        values, vectors = xp.linalg.eigh(x)
        left, right, sizes = vectors, adjoint(xp, vectors), xp.abs(values)
    else:
        u, values, vh = xp.linalg.svd(x, full_matrices=False)
        left, right, sizes = adjoint(xp, vh), adjoint(xp, u), values
    if 0 in values.shape:
        return xp.matmul(left, right)
    floor = rtol * xp.max(sizes, axis=-1, keepdims=True)
    kept = xp.logical_and(sizes > floor, sizes > atol)
    inverses = xp.masked(1 / xp.where(kept, values, xp.ones_like(values)), kept)
    return xp.matmul(left * rows(xp, inverses), right)


def _pinv_vjp(xp: Any, g: Array, x: Array, out: Array) -> Array:
    g, y, yh, gh = conj(xp, g), out, adjoint(xp, out), transpose(xp, g)
    inside = -xp.matmul(xp.matmul(yh, g), yh)
    left = xp.matmul(xp.matmul(gh, y), yh)
    right = xp.matmul(xp.matmul(yh, y), gh)
    across = left - xp.matmul(x, xp.matmul(y, left)) + right - xp.matmul(xp.matmul(right, y), x)
    return conj(xp, inside + across)


def _pinv_jvp(xp: Any, t: Array, x: Array, out: Array) -> Array:
    y, yh, th = out, adjoint(xp, out), adjoint(xp, t)
    inside = -xp.matmul(xp.matmul(y, t), y)
    left = xp.matmul(xp.matmul(y, yh), th)
    right = xp.matmul(xp.matmul(th, yh), y)
    across = left - xp.matmul(xp.matmul(left, x), y) + right - xp.matmul(y, xp.matmul(x, right))
    return inside + across


pinv = general("pinv", _pinv, vjp=(_pinv_vjp,), jvp=(_pinv_jvp,), label="LinalgPinvBackward0")
