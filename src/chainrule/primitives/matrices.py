"""What the rules of linear algebra share.

Papers state gradients for the pairing Re tr(gᴴ t); inside a pass, cotangents are their conjugates.
So a rule here that is not holomorphic conjugates what comes in and what goes out, and reads as its
paper does in between.
"""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import is_complex, use_kernel

Array = Any


def conj(xp: Any, x: Array) -> Array:
    """Return the conjugate, of complex numbers; the others are their own."""
    return xp.conj(x) if is_complex(x) else x


def real(xp: Any, x: Array) -> Array:
    return xp.real(x) if is_complex(x) else x


def transpose(xp: Any, x: Array) -> Array:
    return xp.matrix_transpose(x)


def adjoint(xp: Any, x: Array) -> Array:
    """Return the conjugate transpose."""
    return conj(xp, xp.matrix_transpose(x))


def hermitian_part(xp: Any, x: Array) -> Array:
    """Return the Hermitian part: Hermitian matrices move no other way, and both triangles count."""
    return (x + adjoint(xp, x)) * 0.5


def rows(xp: Any, v: Array) -> Array:
    """Return vectors as matrices of one row: times one, they scale columns."""
    return xp.expand_dims(v, axis=-2)


def columns(xp: Any, v: Array) -> Array:
    """Return vectors as matrices of one column: times one, they scale rows."""
    return xp.expand_dims(v, axis=-1)


@use_kernel
def on_diagonal(xp: Any, x: Array) -> Array:
    """Return the mask of the diagonal, for the last two axes of a stack of square matrices."""
    return xp.eye(x.shape[-1], dtype=x.dtype) == 1


@use_kernel
def below_diagonal(xp: Any, x: Array) -> Array:
    """Return the mask of what lies below the diagonal."""
    return xp.triu(xp.ones(x.shape[-2:], dtype=x.dtype)) == 0


def diagonal(xp: Any, x: Array) -> Array:
    return xp.sum(xp.masked(x, on_diagonal(xp, x)), axis=-1)


def diagonal_matrix(xp: Any, v: Array) -> Array:
    return xp.masked(columns(xp, v), on_diagonal(xp, v))


def without_diagonal(xp: Any, x: Array) -> Array:
    return xp.masked(x, xp.logical_not(on_diagonal(xp, x)))


def quotient(xp: Any, x: Array, y: Array, nothing: Array | None = None) -> Array:
    """Return x / y, and 0 where `y` is 0 and there is `nothing` to divide: by default x = 0.

    So what a function does not depend on has no say in its gradient, even where it is not defined,
    and what it does depend on is inf or nan there.
    """
    empty = xp.logical_and(y == 0, x == 0 if nothing is None else nothing)
    return xp.masked(x / xp.where(empty, xp.ones_like(y), y), xp.logical_not(empty))


def first(x: Array, n: int) -> Array:
    """Return the first `n` columns."""
    return x if x.shape[-1] == n else x[..., :n]
