"""Matrix decompositions: Cholesky, QR, LU, eigenvalues, singular values.

Where eigenvalues or singular values coincide, their vectors are defined only up to a rotation. The
derivative of a function that depends on that rotation is inf or nan; others are not affected.
"""

from __future__ import annotations

from typing import Any

from chainrule.primitives.matrices import (
    adjoint,
    below_diagonal,
    columns,
    conj,
    diagonal,
    diagonal_matrix,
    first,
    hermitian_part,
    on_diagonal,
    quotient,
    real,
    rows,
    transpose,
    without_diagonal,
)
from chainrule.primitives.primitive import applied, constant, general, is_complex, name_of
from chainrule.primitives.solve import solve, solve_triangular

Array = Any
Parts = dict[int, Array]

check_phases = constant("check_phases")


def _check_phases(xp: Any, inner: Array, operation: str) -> None:
    """Raise if the loss depends on the phase of the vectors; `inner` is vectorsᴴ · gradient."""
    if is_complex(inner):
        applied(check_phases, xp)(xp.imag(diagonal(xp, inner)), xp.abs(inner), operation=operation)


# --- Cholesky: I. Murray, "Differentiation of the Cholesky decomposition", 2016, eq. (8) and (10) -


def _lower_and_half_diagonal(xp: Any, x: Array) -> Array:
    """Return Φ(x): the part below the diagonal, and half of the diagonal."""
    lower = xp.masked(x, below_diagonal(xp, x))
    return lower + 0.5 * xp.masked(x, on_diagonal(xp, x))


def _cholesky_vjp(xp: Any, g: Array, out: Array, *, upper: bool) -> Array:
    g = conj(xp, g)
    factor, g = (adjoint(xp, out), adjoint(xp, g)) if upper else (out, g)
    factor_h = adjoint(xp, factor)
    inner = _lower_and_half_diagonal(xp, xp.matmul(factor_h, g))
    inner = 0.5 * (inner + adjoint(xp, inner))
    under = applied(solve_triangular, xp)
    left = under(factor_h, inner, upper=True, unit=False)
    both = under(factor_h, adjoint(xp, left), upper=True, unit=False)
    return conj(xp, both)  # Hermitian, as `inner` is


def _cholesky_jvp(xp: Any, t: Array, out: Array, *, upper: bool) -> Array:
    factor = adjoint(xp, out) if upper else out
    t = 0.5 * (t + adjoint(xp, t))
    under = applied(solve_triangular, xp)
    left = under(factor, t, upper=False, unit=False)
    both = under(factor, adjoint(xp, left), upper=False, unit=False)
    moved = xp.matmul(factor, _lower_and_half_diagonal(xp, both))
    return adjoint(xp, moved) if upper else moved


cholesky = general(
    "cholesky",
    lambda xp, x, *, upper: xp.linalg.cholesky(x, upper=upper),
    vjp=(_cholesky_vjp,),
    jvp=(_cholesky_jvp,),
    label="LinalgCholeskyExBackward0",
)

# --- QR: S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2010 ---
# For matrices with no more columns than rows; wider ones are composed of these.


def _thin_gradient(xp: Any, q: Array, g: Array, n: int) -> Array:
    """Return the gradient of the first `n` columns of a unitary matrix, including that of the rest.

    The other columns change only so far as they stay orthogonal: by -Q dQᴴ Q_rest. They are defined
    up to a rotation; for functions that don't depend on it, this is their derivative.
    """
    if q.shape[-1] == n:
        return g
    moved = xp.matmul(adjoint(xp, g[..., n:]), q[..., :n])
    return g[..., :n] - xp.matmul(q[..., n:], moved)


def _complete_tangent(xp: Any, q: Array, dq: Array) -> Array:
    """Return the tangent of a unitary matrix from that of its first columns."""
    n = dq.shape[-1]
    if q.shape[-1] == n:
        return dq
    rest = -xp.matmul(q[..., :n], xp.matmul(adjoint(xp, dq), q[..., n:]))
    return xp.concat([dq, rest], axis=dq.ndim - 1)


def _qr(xp: Any, x: Array, *, complete: bool) -> tuple[Array, Array]:
    q, r = xp.linalg.qr(x, mode="complete" if complete else "reduced")
    return q, r


def _qr_vjp(xp: Any, g: Parts, q: Array, r: Array) -> Array:
    n = r.shape[-1]
    thin, square = first(q, n), r[..., :n, :]
    square_h = adjoint(xp, square)
    total, gq = None, None
    if 1 in g:
        total = xp.matmul(conj(xp, g[1])[..., :n, :], square_h)
    if 0 in g:
        gq = _thin_gradient(xp, q, conj(xp, g[0]), n)
        inner = xp.matmul(adjoint(xp, thin), gq)
        total = -inner if total is None else total - inner
    over = xp.masked(total, transpose(xp, below_diagonal(xp, total)))
    mirrored = over + adjoint(xp, over) + real(xp, xp.masked(total, on_diagonal(xp, total)))
    left = xp.matmul(thin, mirrored)
    left = left if gq is None else left + gq
    solved = applied(solve_triangular, xp)(square, adjoint(xp, left), upper=True, unit=False)
    return transpose(xp, solved)


def _qr_jvp(xp: Any, t: Array, q: Array, r: Array) -> tuple[Array, Array]:
    n = r.shape[-1]
    thin, square = first(q, n), r[..., :n, :]
    ratio = transpose(
        xp,
        applied(solve_triangular, xp)(
            transpose(xp, square), transpose(xp, t), upper=False, unit=False
        ),
    )
    inner = xp.matmul(adjoint(xp, thin), ratio)
    below = below_diagonal(xp, inner)
    lower = xp.masked(inner, below)
    upper = inner - lower + adjoint(xp, lower)
    if is_complex(inner):
        diagonal_part = xp.masked(upper, on_diagonal(xp, upper))
        upper = upper - diagonal_part + xp.real(diagonal_part)
    dr = xp.matmul(upper, square)
    if r.shape[-2] != n:
        dr = xp.concat([dr, xp.zeros_like(r[..., n:, :])], axis=dr.ndim - 2)
    return _complete_tangent(xp, q, ratio - xp.matmul(thin, upper)), dr


qr = general(
    "qr",
    _qr,
    vjp=(_qr_vjp,),
    jvp=(_qr_jvp,),
    label="LinalgQrBackward0",
    outputs=("q", "r"),
)

# --- LU without pivoting, of square matrices: S. Walter, L. Lehmann, as above ---------------------
# The factors are known before: `packed` is both of them in one matrix.


def _lu(xp: Any, x: Array, packed: Array) -> tuple[Array, Array]:
    below = below_diagonal(xp, packed)
    left = xp.masked(packed, below) + xp.eye(x.shape[-1], dtype=x.dtype)
    return left, xp.masked(packed, xp.logical_not(below))


def _lu_vjp(xp: Any, g: Parts, left: Array, right: Array) -> Array:
    inner = None
    if 0 in g:
        product = xp.matmul(transpose(xp, left), g[0])
        inner = xp.masked(product, below_diagonal(xp, product))
    if 1 in g:
        product = xp.matmul(g[1], transpose(xp, right))
        over = xp.masked(product, xp.logical_not(below_diagonal(xp, product)))
        inner = over if inner is None else inner + over
    under = applied(solve_triangular, xp)(transpose(xp, left), inner, upper=True, unit=True)
    solved = applied(solve_triangular, xp)(right, transpose(xp, under), upper=True, unit=False)
    return transpose(xp, solved)


def _lu_jvp(xp: Any, t: Array, left: Array, right: Array) -> tuple[Array, Array]:
    under = applied(solve_triangular, xp)(left, t, upper=False, unit=True)
    ratio = transpose(
        xp,
        applied(solve_triangular, xp)(
            transpose(xp, right), transpose(xp, under), upper=False, unit=False
        ),
    )
    lower = xp.masked(ratio, below_diagonal(xp, ratio))
    return xp.matmul(left, lower), xp.matmul(ratio - lower, right)


lu = general(
    "lu",
    _lu,
    vjp=(_lu_vjp, None),
    jvp=(_lu_jvp, None),
    label="LinalgLuBackward0",
    outputs=("left", "right"),
)

# --- eigenvalues: M. Giles, "Collected matrix derivative results …", 2008, 3.1; with complex
# numbers, C. Boeddeker et al., "On the computation of complex-valued gradients …", 2017 -----------


def _gaps(xp: Any, values: Array) -> Array:
    """Return the differences of all pairs: element (i, j) is the j-th minus the i-th."""
    return rows(xp, values) - columns(xp, values)


def _eigh(xp: Any, x: Array, *, upper: bool) -> tuple[Array, Array]:
    # LAPACK reads the lower triangle: take the adjoint for the upper one.
    values, vectors = xp.linalg.eigh(adjoint(xp, x) if upper else x)
    return values, vectors


def _eigh_vjp(xp: Any, g: Parts, values: Array, vectors: Array) -> Array:
    v = vectors
    if 1 not in g:
        return conj(xp, xp.matmul(v * rows(xp, g[0]), adjoint(xp, v)))
    vh = adjoint(xp, v)
    inner = xp.matmul(vh, conj(xp, g[1]))
    _check_phases(xp, inner, "eigh")
    inner = hermitian_part(xp, quotient(xp, without_diagonal(xp, inner), _gaps(xp, values)))
    if 0 in g:
        inner = inner + diagonal_matrix(xp, g[0])
    return conj(xp, xp.matmul(xp.matmul(v, inner), vh))


def _eigh_jvp(xp: Any, t: Array, values: Array, vectors: Array) -> tuple[Array, Array]:
    v = vectors
    moved = hermitian_part(xp, xp.matmul(xp.matmul(adjoint(xp, v), t), v))
    rotation = quotient(xp, without_diagonal(xp, moved), _gaps(xp, values))
    return real(xp, diagonal(xp, moved)), xp.matmul(v, rotation)


eigh = general(
    "eigh",
    _eigh,
    vjp=(_eigh_vjp,),
    jvp=(_eigh_jvp,),
    label="LinalgEighBackward0",
    outputs=("values", "vectors"),
)


def _eig(xp: Any, x: Array) -> tuple[Array, Array]:
    # NumPy returns real arrays where all eigenvalues are real.
    dtype = xp.complex64 if name_of(x.dtype).endswith(("float32", "complex64")) else xp.complex128
    values, vectors = xp.linalg.eig(x)
    return xp.astype(values, dtype), xp.astype(vectors, dtype)


def _eig_vjp(xp: Any, g: Parts, x_dtype: Any, values: Array, vectors: Array) -> Array:
    v, vh = vectors, adjoint(xp, vectors)
    if 1 in g:
        gv = conj(xp, g[1])
        inner = xp.matmul(vh, gv)
        _check_phases(xp, inner, "eig")
        # The vectors are normalised: their change has no component along themselves.
        lengths = xp.real(diagonal(xp, inner))
        inner = without_diagonal(xp, inner - xp.matmul(vh, v * rows(xp, lengths)))
        inner = quotient(xp, inner, conj(xp, _gaps(xp, values)))
        if 0 in g:
            inner = inner + diagonal_matrix(xp, conj(xp, g[0]))
        moved = xp.matmul(inner, vh)
    else:
        moved = columns(xp, conj(xp, g[0])) * vh
    result = conj(xp, applied(solve, xp)(vh, moved))
    return result if "complex" in name_of(x_dtype) else xp.real(result)


def _eig_jvp(xp: Any, t: Array, values: Array, vectors: Array) -> tuple[Array, Array]:
    v = vectors
    moved = applied(solve, xp)(v, xp.matmul(xp.astype(t, v.dtype), v))
    dv = xp.matmul(v, quotient(xp, without_diagonal(xp, moved), _gaps(xp, values)))
    lengths = xp.real(xp.sum(conj(xp, v) * dv, axis=-2))
    return diagonal(xp, moved), dv - v * rows(xp, lengths)


eig = general(
    "eig",
    _eig,
    vjp=(_eig_vjp,),
    jvp=(_eig_jvp,),
    label="LinalgEigBackward0",
    outputs=("values", "vectors"),
)

# --- singular values: J. Townsend, "Differentiating the singular value decomposition", 2016; with
# complex numbers, Z.-Q. Wan, S.-X. Zhang, "Automatic differentiation for complex valued SVD", 2019


def _svd(xp: Any, x: Array, *, full: bool) -> tuple[Array, Array, Array]:
    u, s, vh = xp.linalg.svd(x, full_matrices=full)
    return u, s, vh


def _rotation(xp: Any, left: Array, right: Array, s: Array, both_zero: Array) -> Array:
    """Return (left s_j + s_i right) / (s_j² - s_i²), off the diagonal."""
    across, down = rows(xp, s), columns(xp, s)
    squares = (across - down) * (across + down)
    off = without_diagonal(xp, left * across + down * right)
    return quotient(xp, off, squares, xp.logical_or(both_zero, on_diagonal(xp, squares)))


def _svd_vjp(xp: Any, g: Parts, u: Array, s: Array, vh: Array) -> Array:
    k = s.shape[-1]
    v = adjoint(xp, vh)
    thin_u, thin_v = first(u, k), first(v, k)
    uh, thin_vh = adjoint(xp, thin_u), adjoint(xp, thin_v)
    if 0 not in g and 2 not in g:
        return conj(xp, xp.matmul(thin_u * rows(xp, g[1]), thin_vh))
    gu = _thin_gradient(xp, u, conj(xp, g[0]), k) if 0 in g else xp.zeros_like(thin_u)
    gv = _thin_gradient(xp, v, transpose(xp, g[2]), k) if 2 in g else xp.zeros_like(thin_v)
    by_u, by_v = xp.matmul(uh, gu), xp.matmul(thin_vh, gv)
    _check_phases(xp, by_u + by_v, "svd")
    rotation_u, rotation_v = by_u - adjoint(xp, by_u), by_v - adjoint(xp, by_v)
    inner = _rotation(
        xp, rotation_u, rotation_v, s, xp.logical_and(rotation_u == 0, rotation_v == 0)
    )
    if is_complex(u):  # the phase that u and v share is free: its gradient is given to u
        inner = inner + diagonal_matrix(xp, quotient(xp, diagonal(xp, rotation_u), s + s))
    if 1 in g:
        inner = inner + diagonal_matrix(xp, g[1])
    total = xp.matmul(xp.matmul(thin_u, inner), thin_vh)
    if u.shape[-2] > k:
        outside = quotient(xp, gu - xp.matmul(thin_u, by_u), rows(xp, s))
        total = total + xp.matmul(outside, thin_vh)
    if vh.shape[-1] > k:
        outside = quotient(xp, gv - xp.matmul(thin_v, by_v), rows(xp, s))
        total = total + xp.matmul(thin_u, adjoint(xp, outside))
    return conj(xp, total)


def _svd_jvp(xp: Any, t: Array, u: Array, s: Array, vh: Array) -> tuple[Array, Array, Array]:
    k = s.shape[-1]
    v = adjoint(xp, vh)
    thin_u, thin_v = first(u, k), first(v, k)
    tv = xp.matmul(t, thin_v)
    moved = xp.matmul(adjoint(xp, thin_u), tv)
    moved_h = adjoint(xp, moved)
    both_zero = xp.logical_and(moved == 0, moved_h == 0)
    rotation_u = _rotation(xp, moved, moved_h, s, both_zero)
    rotation_v = _rotation(xp, moved_h, moved, s, both_zero)
    if is_complex(u):
        phases = quotient(xp, diagonal(xp, moved - moved_h), s + s)
        rotation_u = rotation_u + diagonal_matrix(xp, phases)
    du, dv = xp.matmul(thin_u, rotation_u), xp.matmul(thin_v, rotation_v)
    if u.shape[-2] > k:
        du = du + quotient(xp, tv - xp.matmul(thin_u, moved), rows(xp, s))
    if vh.shape[-1] > k:
        back = xp.matmul(adjoint(xp, t), thin_u) - xp.matmul(thin_v, moved_h)
        dv = dv + quotient(xp, back, rows(xp, s))
    return (
        _complete_tangent(xp, u, du),
        real(xp, diagonal(xp, moved)),
        adjoint(xp, _complete_tangent(xp, v, dv)),
    )


svd = general(
    "svd",
    _svd,
    vjp=(_svd_vjp,),
    jvp=(_svd_jvp,),
    label="LinalgSvdBackward0",
    outputs=("u", "s", "vh"),
)
