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
    series="solution",
)

# The solution of a x = b by known factors, those of `a` or of its transpose: a derivative of any
# order solves systems with this matrix, and none of them factorises it again.


def _solve_factored_vjp(
    xp: Any,
    g: Array,
    a: Array,
    lu: Array,
    order: Array,
    out: Array,
    needs: Needs,
    *,
    transposed: bool,
) -> tuple[Array | None, Array | None, None, None]:  # 2.3.1
    grad_b = applied(solve_factored, xp)(transpose(xp, a), g, lu, order, transposed=not transposed)
    grad_a = -xp.matmul(grad_b, transpose(xp, out)) if needs[0] else None
    return grad_a, grad_b if needs[1] else None, None, None


def _solve_factored_jvp(
    xp: Any, t: Array, a: Array, lu: Array, order: Array, out: Array, *, transposed: bool
) -> Array:
    return -applied(solve_factored, xp)(a, xp.matmul(t, out), lu, order, transposed=transposed)


solve_factored: Primitive = general(
    "solve_factored",
    lambda xp, a, b, lu, order, *, transposed: xp.lu_solve(lu, order, b, transposed=transposed),
    vjp=_solve_factored_vjp,
    jvp=(
        _solve_factored_jvp,
        lambda xp, t, a, lu, order, *, transposed: applied(solve_factored, xp)(
            a, t, lu, order, transposed=transposed
        ),
        None,
        None,
    ),
    label="LinalgSolveExBackward0",
    broadcasts=False,
    series="solution",
)


def _triangle(xp: Any, x: Array, upper: bool, unit: bool) -> Array:
    """Return the triangle of `x`, without the diagonal if `unit`."""
    below = below_diagonal(xp, x)
    if unit:
        others = xp.logical_or(below, on_diagonal(xp, x))
        return xp.masked(x, xp.logical_not(others) if upper else below)
    return xp.masked(
        x, xp.logical_not(below) if upper else xp.logical_or(below, on_diagonal(xp, x))
    )


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
    lambda xp, a, b, *, upper, unit: xp.solve_triangular(a, b, upper=upper, unit=unit),
    vjp=_solve_triangular_vjp,
    jvp=(
        _solve_triangular_jvp,
        lambda xp, t, a, *, upper, unit: applied(solve_triangular, xp)(
            a, t, upper=upper, unit=unit
        ),
    ),
    label="LinalgSolveTriangularBackward0",
    broadcasts=False,
    series="solution",
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
