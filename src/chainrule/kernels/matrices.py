"""Matrix functions whose computation depends on values, and masks of triangles."""

from __future__ import annotations

from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np

from chainrule.errors import AutogradError
from chainrule.interrupts import errstate

Array = Any

# --- masks ----------------------------------------------------------------------------------------


def on_diagonal(xp: Any, x: Array) -> Array:
    """Return the mask of the diagonal of square matrices."""
    return _mask(xp.equal, x.shape[-1], x.shape[-1])


def below_diagonal(xp: Any, x: Array) -> Array:
    """Return the mask of the strictly lower triangle."""
    return _mask(xp.greater, *x.shape[-2:])


def _mask(relation: Any, m: int, n: int) -> Array:
    return (
        _cached_mask(relation, m, n) if m * n <= _CACHE_MAX_ELEMENTS else _new_mask(relation, m, n)
    )


_CACHE_MAX_ELEMENTS = 1 << 12
"""Number of elements up to which masks are cached: making one takes as long as a small solve."""


def _new_mask(relation: Any, m: int, n: int) -> Array:
    mask: Array = relation.outer(np.arange(m), np.arange(n))
    mask.flags.writeable = False  # it may be shared
    return mask


_cached_mask = lru_cache(maxsize=64)(_new_mask)

# --- inverses -------------------------------------------------------------------------------------


def inverses(xp: Any, x: Array) -> Array:
    """Return inverses; for singular matrices the transposed cofactors times inf."""
    try:
        return inverse(xp, x)
    except np.linalg.LinAlgError:
        return _inverses_by_svd(xp, x)


@errstate(all="ignore")
def _inverses_by_svd(xp: Any, x: Array) -> Array:
    return (_cofactors_by_svd(xp, x) / xp.linalg.det(x)[..., None, None]).swapaxes(-1, -2)


def inverse(xp: Any, x: Array) -> Array:
    """Return inverses; raise if a matrix is singular."""
    n = x.shape[-1] if x.ndim > 2 else 0
    if (
        1 < n <= _MAX_ELIMINATED
        and x.__class__ is np.ndarray
        and x.shape[-2] == n
        and x.size >= _MIN_ELIMINATED * n * n
        and x.dtype.char in "fdFD"
    ):
        return eliminated(x)
    found: Array = xp.linalg.inv(x)
    return found


_MAX_ELIMINATED, _MIN_ELIMINATED = 3, 256
"""Order of matrices up to which all of a stack are inverted at a time, and their number from which
that pays: LAPACK is called for each, and takes 0.35 ms for a thousand of order 3."""


def eliminated(x: Array) -> Array:
    """Return the inverses of a stack of small matrices, by Gauss–Jordan elimination of all at once.

    Pivots are those of the largest size in their column, as in LAPACK.
    """
    n = x.shape[-1]
    stack = x.reshape(-1, n, n)
    out = np.empty(stack.shape, x.dtype)
    for first in range(0, len(stack), _ELIMINATED_AT_A_TIME):
        block = slice(first, first + _ELIMINATED_AT_A_TIME)
        _eliminate_all(stack[block], out[block])
    return out.reshape(x.shape)


_ELIMINATED_AT_A_TIME = 1024
"""Number of matrices whose elements stay in the cache."""


@errstate(all="ignore")
def _eliminate_all(stack: Array, out: Array) -> None:
    n = stack.shape[-1]
    rows = np.zeros((n, 2 * n, len(stack)), stack.dtype)  # of the matrices, and beside them of ones
    rows[:, :n] = stack.transpose(1, 2, 0)
    for i in range(n):
        rows[i, n + i] = 1
    for k in range(n):
        chosen = k + np.abs(rows[k:, k]).argmax(0)
        for i in range(k + 1, n):
            exchanged = chosen == i
            if exchanged.any():
                first, other = rows[k].copy(), rows[i]
                np.copyto(rows[k], other, where=exchanged)
                np.copyto(other, first, where=exchanged)
        pivots = rows[k, k].copy()
        if not pivots.all():
            raise np.linalg.LinAlgError("Singular matrix")
        rows[k] /= pivots
        factors = rows[:, k].copy()
        factors[k] = 0
        rows -= factors[:, None] * rows[k]
    out[...] = rows[:, n:].transpose(2, 0, 1)


# --- cofactors ------------------------------------------------------------------------------------

MAX_CONDITION = 1e4
"""Condition number below which det(x) x⁻ᵀ is accurate; it takes a tenth of the time of an SVD."""


def cofactors(xp: Any, x: Array) -> Array:
    """Return the cofactors of square matrices, also singular ones: the derivative of det."""
    try:
        found = inverse(xp, x)
    except np.linalg.LinAlgError:
        return _cofactors_by_svd(xp, x)
    if not xp.all(_norm_1(xp, x) * _norm_1(xp, found) < MAX_CONDITION):  # nan is not
        return _cofactors_by_svd(xp, x)
    return xp.linalg.det(x)[..., None, None] * found.swapaxes(-1, -2)


def _norm_1(xp: Any, x: Array) -> Array:
    return xp.max(xp.abs(x).sum(axis=-2), axis=-1, initial=0)


def _cofactors_by_svd(xp: Any, x: Array) -> Array:
    """Return cofactors by a singular value decomposition; nan for matrices that are not finite.

    cof(U S Vᴴ) = cof(U) cof(S) cof(Vᴴ), and the cofactors of a unitary matrix are its conjugate
    times its determinant.
    """
    finite = xp.isfinite(x).all(axis=(-2, -1), keepdims=True)
    if not finite.all():
        return xp.where(finite, _cofactors_by_svd(xp, xp.where(finite, x, 0)), xp.nan).astype(
            x.dtype
        )
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    ones = xp.ones_like(s[..., :1])
    before = xp.cumprod(xp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = xp.cumprod(xp.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    phase = xp.linalg.det(u) * xp.linalg.det(vh)
    weights = phase[..., None] * before * after  # products of all other singular values
    return xp.matmul(u.conj() * weights[..., None, :], vh.conj())


# --- phase check ----------------------------------------------------------------------------------

_PHASE_TOLERANCE = 1e-2  # PyTorch's tolerance, relative to the gradient


def check_phases(xp: Any, phases: Array, gradient: Array, *, operation: str) -> Array:
    """Raise if a gradient depends on the phase of eigenvectors or singular vectors."""
    largest = xp.max(xp.abs(gradient), axis=(-2, -1), initial=1)[..., None]
    if (xp.abs(phases) > _PHASE_TOLERANCE * largest).any():
        raise AutogradError(
            f"linalg.{operation}: The vectors in the complex case are specified up to "
            "multiplication by e^{i phi}. The specified loss function depends on this quantity, so "
            "it is ill-defined: compute it from phase-invariant quantities, like abs(vectors)"
        )
    return xp.asarray(True)


# --- the matrix exponential -----------------------------------------------------------------------
# Padé approximants with scaling and squaring: N. Higham, "The scaling and squaring method for the
# matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26(4), 2005, with the bounds on the
# 1-norm from its table 2.3 (single precision: as in Higham, Functions of Matrices, 2008, ch. 10).

_PADE_BOUNDS = {
    4: ((3, 4.258730016922831e-1), (5, 1.880152677804762), (7, 3.925724783138660)),
    8: (
        (3, 1.495585217958292e-2),
        (5, 2.539398330063230e-1),
        (7, 9.504178996162932e-1),
        (9, 2.097847961257068),
        (13, 5.371920351148152),
    ),
}


def matrix_exp(xp: Any, x: Array) -> Array:
    """Return the exponential of square matrices."""
    n = x.shape[-1]
    if x.size == 0:
        return xp.zeros(x.shape, x.dtype)
    bounds = _PADE_BOUNDS[8 if x.dtype.name in ("float64", "complex128") else 4]
    stack = x.reshape(-1, n, n)
    norms = _norm_1(xp, stack)
    largest = float(xp.max(xp.where(xp.isfinite(norms), norms, 0)))
    degree, bound = next((pair for pair in bounds if largest <= pair[1]), bounds[-1])
    ratio = xp.where(xp.isfinite(norms) & (norms > bound), norms / bound, 1)
    halvings = xp.ceil(xp.log2(ratio)).astype("int64")
    result = _pade(xp, stack / (2.0**halvings).astype(norms.dtype)[:, None, None], degree)
    _square_repeatedly(xp, result, halvings)
    return result.reshape(x.shape)


@errstate(over="ignore", invalid="ignore")
def _square_repeatedly(xp: Any, matrices: Array, times: Array) -> None:
    """Square each matrix in place as often as `times` says."""
    for step in range(int(times.max())):
        growing = times > step
        part = matrices if growing.all() else matrices[growing]
        matrices[growing] = xp.matmul(part, part)


def _pade(xp: Any, x: Array, degree: int) -> Array:
    """Return the Padé approximant q(x)⁻¹ p(x) of exp, where q(x) = p(-x)."""
    coefficients = [
        factorial(2 * degree - j)
        * factorial(degree)
        / (factorial(2 * degree) * factorial(j) * factorial(degree - j))
        for j in range(degree + 1)
    ]
    eye = xp.eye(x.shape[-1], dtype=x.dtype)
    square = xp.matmul(x, x)
    power, even, odd = eye, coefficients[0] * eye, coefficients[1] * eye
    for j in range(2, degree, 2):
        power = xp.matmul(power, square) if j > 2 else square
        even = even + coefficients[j] * power
        odd = odd + coefficients[j + 1] * power
    odd = xp.matmul(x, odd)
    return xp.linalg.solve(even - odd, even + odd)
