"""Functions of square matrices: determinants and the matrix exponential.

The rules are those of M. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008 (its numbers are given), unless another source is named.
"""

from __future__ import annotations

from typing import Any

from chainrule.primitives.decompositions import svd
from chainrule.primitives.matrices import (
    adjoint,
    columns,
    conj,
    diagonal,
    diagonal_matrix,
    on_diagonal,
    real,
    rows,
    transpose,
)
from chainrule.primitives.primitive import applied, general, is_complex, symmetric
from chainrule.primitives.reductions import products_of_others
from chainrule.primitives.solve import inv

Array = Any

# --- determinants ---------------------------------------------------------------------------------


def _roll_back(xp: Any, x: Array, down: int, right: int) -> Array:
    return xp.roll(x, shift=(-down, -right), axis=(x.ndim - 2, x.ndim - 1))


def _minors(xp: Any, x: Array, y: Array) -> Array:
    """Return the bilinear form that gives the cofactors of a 3×3 matrix for y = x."""
    return _roll_back(xp, x, 1, 1) * _roll_back(xp, y, 2, 2) - _roll_back(xp, x, 1, 2) * _roll_back(
        xp, y, 2, 1
    )


def _cofactor(xp: Any, x: Array) -> Array:
    """Return the cofactors: polynomials of degree 2 at most for matrices up to 3×3."""
    n = x.shape[-1]
    if n == 3:
        return _minors(xp, x, x)
    if n == 2:
        signs = xp.eye(2, dtype=x.dtype) * 2 - 1
        return xp.flip(x, axis=(x.ndim - 2, x.ndim - 1)) * signs
    return xp.ones_like(x) if n < 2 else xp.cofactors(x)


def _cofactor_derivative(xp: Any, v: Array, x: Array) -> Array:
    """Return the derivative of the cofactors along `v`: symmetric, so it is vjp and jvp.

    It is the second derivative of det. In the basis of singular vectors, the derivative for a
    diagonal matrix is made of products of all its elements but two: without division.
    """
    n = x.shape[-1]
    if n <= 3:
        if n == 3:
            return _minors(xp, x, v) + _minors(xp, v, x)
        return _cofactor(xp, v) if n == 2 else xp.zeros_like(v)
    u, s, vh = applied(svd, xp)(x, full=False)
    # cof(U S Vᴴ) = cof(U) cof(S) cof(Vᴴ); those of a unitary matrix are its conjugate times det.
    phase = applied(det, xp)(u) * applied(det, xp)(vh)
    move = xp.matmul(xp.matmul(adjoint(xp, u), v), adjoint(xp, vh))
    ones = xp.ones_like(s)
    without_i = xp.where(on_diagonal(xp, s), columns(xp, ones), rows(xp, s))
    products_but_two = products_of_others(xp, without_i, (without_i.ndim - 1,))
    products_but_two = xp.masked(products_but_two, xp.logical_not(on_diagonal(xp, s)))
    along = xp.matmul(xp.astype(products_but_two, x.dtype), columns(xp, diagonal(xp, move)))[..., 0]
    derivative = diagonal_matrix(xp, along) - products_but_two * transpose(xp, move)
    frames = xp.matmul(xp.matmul(conj(xp, u), derivative), conj(xp, vh))
    return columns(xp, columns(xp, phase)) * frames


cofactor = symmetric("cofactor", lambda xp, g, x: _cofactor_derivative(xp, g, x), forward=_cofactor)


def _det_vjp(xp: Any, g: Array, x: Array) -> Array:  # 2.2.4, with cofactors for det(x) x⁻ᵀ
    return columns(xp, columns(xp, g)) * applied(cofactor, xp)(x)


def _det_jvp(xp: Any, t: Array, x: Array) -> Array:
    return xp.sum(applied(cofactor, xp)(x) * t, axis=(x.ndim - 2, x.ndim - 1))


det = general(
    "det",
    lambda xp, x: xp.linalg.det(x),
    vjp=(_det_vjp,),
    jvp=(_det_jvp,),
    label="LinalgDetBackward0",
)


def _slogdet_vjp(xp: Any, g: dict[int, Array], x: Array, sign: Array) -> Array:
    # With z = tr(x⁻¹ t), log|det| has the derivative Re z, and the sign, a phase, i sign Im z.
    weight = g.get(1)
    if 0 in g and is_complex(x):
        turn = xp.imag(g[0] * sign) * 1j
        weight = turn if weight is None else weight + turn
    if weight is None:
        return xp.zeros_like(x)
    back = transpose(xp, applied(inv, xp)(x, lenient=True))
    return columns(xp, columns(xp, weight)) * back


def _slogdet_jvp(xp: Any, t: Array, x: Array, sign: Array) -> tuple[Array, Array]:
    ratio = xp.sum(
        transpose(xp, applied(inv, xp)(x, lenient=True)) * t, axis=(x.ndim - 2, x.ndim - 1)
    )
    turn = sign * (xp.imag(ratio) * 1j) if is_complex(x) else xp.zeros_like(sign)
    return turn, real(xp, ratio)


slogdet = general(
    "slogdet",
    lambda xp, x: tuple(xp.linalg.slogdet(x)),
    vjp=(_slogdet_vjp,),
    jvp=(_slogdet_jvp,),
    label="LinalgSlogdetBackward0",
    outputs=("sign", "logabsdet"),
)

# --- the matrix exponential -----------------------------------------------------------------------


def _exp_derivative(xp: Any, x: Array, t: Array) -> Array:
    """Return the derivative of exp at `x` along `t`: the upper right of exp([[x, t], [0, x]]).

    N. Higham, "Functions of Matrices", SIAM 2008, eq. (3.16).
    """
    n = x.shape[-1]
    upper = xp.concat([x, t], axis=x.ndim - 1)
    lower = xp.concat([xp.zeros_like(x), x], axis=x.ndim - 1)
    whole = applied(matrix_exp, xp)(xp.concat([upper, lower], axis=x.ndim - 2))
    return whole[..., :n, n:]


matrix_exp = general(
    "matrix_exp",
    lambda xp, x: xp.matrix_exp(x),
    vjp=(lambda xp, g, x: _exp_derivative(xp, transpose(xp, x), g),),
    jvp=(lambda xp, t, x: _exp_derivative(xp, x, t),),
    label="LinalgMatrixExpBackward0",
)
