"""Matrix functions for the rules of linear algebra.

Papers state gradients for the pairing Re tr(gᴴ t); cotangents in a backward pass are their
conjugates. So a rule that is not holomorphic conjugates the cotangent and the result, and follows
its paper in between.
"""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import is_complex, use_kernel

Array = Any


def conj(xp: Any, x: Array) -> Array:
    """Return the conjugate; a real array is returned as it is."""
    return xp.conj(x) if is_complex(x) else x


def real(xp: Any, x: Array) -> Array:
    return xp.real(x) if is_complex(x) else x


def transpose(xp: Any, x: Array) -> Array:
    return xp.matrix_transpose(x)


def adjoint(xp: Any, x: Array) -> Array:
    """Return the conjugate transpose."""
    return conj(xp, xp.matrix_transpose(x))


def hermitian_part(xp: Any, x: Array) -> Array:
    """Return the Hermitian part (x + xᴴ) / 2: the projection on Hermitian matrices."""
    return (x + adjoint(xp, x)) * 0.5


def rows(xp: Any, v: Array) -> Array:
    """Return vectors as matrices of one row; a product with it scales columns."""
    return xp.expand_dims(v, axis=-2)


def columns(xp: Any, v: Array) -> Array:
    """Return vectors as matrices of one column; a product with it scales rows."""
    return xp.expand_dims(v, axis=-1)


@use_kernel
def on_diagonal(xp: Any, x: Array) -> Array:
    """Return the mask of the diagonal, for the last two axes of a stack of square matrices."""
    number = xp.arange(x.shape[-1])
    return xp.expand_dims(number, axis=1) == number


@use_kernel
def below_diagonal(xp: Any, x: Array) -> Array:
    """Return the mask of the elements below the diagonal."""
    return xp.expand_dims(xp.arange(x.shape[-2]), axis=1) > xp.arange(x.shape[-1])


def diagonal(xp: Any, x: Array) -> Array:
    return xp.sum(xp.masked(x, on_diagonal(xp, x)), axis=-1)


def diagonal_matrix(xp: Any, v: Array) -> Array:
    return xp.masked(columns(xp, v), on_diagonal(xp, v))


def without_diagonal(xp: Any, x: Array) -> Array:
    return xp.masked(x, xp.logical_not(on_diagonal(xp, x)))


def quotient(xp: Any, x: Array, y: Array, negligible: Array | None = None) -> Array:
    """Return x / y, and 0 where `y` is 0 and x is `negligible`, by default 0.

    So components that a function does not depend on don't contribute to its gradient, even where
    they are not defined; those that it depends on are inf or nan there.
    """
    empty = xp.logical_and(y == 0, x == 0 if negligible is None else negligible)
    return xp.masked(x / xp.where(empty, xp.ones_like(y), y), xp.logical_not(empty))


def first(x: Array, n: int) -> Array:
    """Return the first `n` columns."""
    return x if x.shape[-1] == n else x[..., :n]
