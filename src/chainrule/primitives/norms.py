"""Norms of vectors."""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import general, is_complex
from chainrule.primitives.reductions import kept

Array = Any
Axes = tuple[int, ...] | None


def _norm_derivative(xp: Any, x: Array, out: Array, p: float, axis: Axes) -> Array:
    """Return the conjugate of sign(x) (|x| / norm)^(p-1): 0 where an element or the norm is 0."""
    norm = xp.reshape(out, kept(x.shape, axis))
    phase = xp.conj(x) if is_complex(x) else x
    if p == 2:
        zero = norm == 0
        return xp.masked(phase / xp.where(zero, xp.ones_like(norm), norm), xp.logical_not(zero))
    sizes = xp.abs(x)
    zero = xp.logical_or(sizes == 0, norm == 0)
    sizes = xp.where(zero, xp.ones_like(sizes), sizes)
    ratio = sizes / xp.where(zero, xp.ones_like(sizes), norm)
    return xp.masked(phase / sizes * ratio ** (p - 1), xp.logical_not(zero))


def _p_norm_vjp(xp: Any, g: Array, x: Array, out: Array, *, p: float, axis: Axes) -> Array:
    return xp.reshape(g, kept(x.shape, axis)) * _norm_derivative(xp, x, out, p, axis)


def _p_norm_jvp(
    xp: Any, t: Array, x: Array, out: Array, *, p: float, axis: Axes, keepdims: bool
) -> Array:
    moves = _norm_derivative(xp, x, out, p, axis) * t
    return xp.sum(xp.real(moves) if is_complex(moves) else moves, axis=axis, keepdims=keepdims)


p_norm = general(
    "p_norm",
    lambda xp, x, *, p, axis, keepdims: xp.p_norm(x, p=p, axis=axis, keepdims=keepdims),
    vjp=(_p_norm_vjp,),
    jvp=(_p_norm_jvp,),
    label="LinalgVectorNormBackward0",
)
