"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import array_api as xp
from chainrule import creation, linalg, ops
from chainrule.arguments import cast, floating
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.interop.calculus import convolve
from chainrule.interop.linalg import lstsq
from chainrule.interop.operands import array_of, constant, in_double, tensor_of


def _row(p: Tensor) -> Tensor:
    row: Tensor = ops.atleast_1d(p)
    return row


def polyval(p: Tensor, x: Tensor) -> Tensor:
    """Return the values of a polynomial, by Horner's scheme."""
    result = creation.zeros_like(x)
    for coefficient in p:
        result = result * x + coefficient
    return result


def _ascending(c: Tensor, x: Tensor) -> Tensor:
    """Return the values of polynomials with coefficients along axis 0, the lowest power first."""
    result = c[-1]
    for number in range(len(c) - 2, -1, -1):
        result = result * x + c[number]
    return result


def polyvalnd(pts: Sequence[Tensor], c: Tensor) -> Tensor:
    """Return the values of polynomials in several variables, at points."""
    if len({point.shape for point in pts}) > 1:
        raise ArgumentError("pts are incompatible: the coordinates of points have one shape")
    result = c[(..., *(None,) * (len(pts) - c.ndim))]
    result = result[(..., *(None,) * pts[0].ndim)]
    for point in pts:
        result = _ascending(result, point)
    return result


def polyval2d(x: Tensor, y: Tensor, c: Tensor) -> Tensor:
    """Return the values of polynomials in two variables, at pairs of points."""
    return polyvalnd([x, y], c)


def polygrid2d(x: Tensor, y: Tensor, c: Tensor) -> Tensor:
    """Return the values of polynomials in two variables, at each x with each y."""
    rows = _ascending(c[(..., *(None,) * x.ndim)], x)
    return _ascending(rows[(..., *(None,) * y.ndim)], y)


def _add(a1: Tensor, a2: Tensor, sign: int) -> Tensor:
    a1, a2 = _row(a1), _row(a2)
    length = max(len(a1), len(a2))
    first, second = [ops.cat([constant(np.zeros(length - len(a), a.dtype)), a]) for a in (a1, a2)]
    return first + second if sign > 0 else first - second


def polyadd(a1: Tensor, a2: Tensor) -> Tensor:
    """Return the sum of polynomials."""
    return _add(a1, a2, 1)


def polysub(a1: Tensor, a2: Tensor) -> Tensor:
    """Return the difference of polynomials."""
    return _add(a1, a2, -1)


def polymul(a1: Tensor, a2: Tensor) -> Tensor:
    """Return the product of polynomials."""
    return convolve(_row(a1), _row(a2))


def polydiv(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return the quotient and the remainder of polynomials, by long division."""
    u, v = floating(_row(u)), floating(_row(v))
    rest = cast(u, ops.promote_types(u.dtype, v.dtype))
    steps = len(u) - len(v) + 1
    quotient = []
    for _ in range(steps):
        factor = rest[0] / v[0]
        quotient.append(factor)
        rest = ops.cat([rest[1 : len(v)] - factor * v[1:], rest[len(v) :]])
    if not quotient:
        quotient.append(constant(np.zeros((), rest.dtype)))
    small = np.isclose(array_of(rest), 0, rtol=1e-14)
    first = min(int(np.argmin(small)) if not small.all() else len(rest) - 1, len(rest) - 1)
    rest = rest[max(first, 0) :] if len(rest) else constant(np.zeros(1, rest.dtype))
    return ops.stack(quotient), rest


def polyder(p: Tensor, m: int = 1) -> Tensor:
    """Return the m-th derivative of a polynomial."""
    if m < 0:
        raise ArgumentError(f"Order of derivative must be positive (see polyint), got {m}")
    for _ in range(m):
        p = in_double(p)[:-1] * constant(np.arange(len(p) - 1, 0, -1))
    return p


def polyint(p: Tensor, m: int = 1, k: Any = None) -> Tensor:
    """Return the m-th antiderivative of a polynomial, with constants of integration."""
    if m < 0:
        raise ArgumentError(f"Order of integral must be positive (see polyder), got {m}")
    constants = _row(tensor_of(0.0 if k is None else k))
    constants = ops.broadcast_to(constants, (m,)) if len(constants) == 1 else constants
    if len(constants) < m:
        raise ArgumentError("k must be a scalar or a rank-1 array of length 1 or >m.")
    p = floating(p)
    for step in range(m):
        divided = p / constant(np.arange(len(p), 0, -1))
        p = ops.cat([divided, constants[step : step + 1]])
    return p


def poly(seq_of_zeros: Tensor) -> Tensor:
    """Return the polynomial with these zeros, or the characteristic polynomial of a matrix."""
    zeros = _row(seq_of_zeros)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and len(zeros):
        zeros = linalg.eigvals(zeros)
    elif zeros.ndim != 1:
        raise ArgumentError("input must be 1d or non-empty square 2d array.")
    zeros = floating(zeros)
    result = constant(np.ones(1, zeros.dtype))
    for zero in zeros:
        result = ops.cat([result, constant(np.zeros(1, zeros.dtype))]) - zero * ops.cat(
            [constant(np.zeros(1, zeros.dtype)), result]
        )
    if not zeros.is_complex():
        return result
    values = array_of(zeros)
    paired = np.all(np.sort(values) == np.sort(np.conj(values)))
    return ops.real(result) if paired else result


def roots(p: Tensor) -> Tensor:
    """Return the zeros of a polynomial, as eigenvalues of its companion matrix."""
    p = floating(_row(p))
    if p.ndim != 1:
        raise ArgumentError("Input must be a rank-1 array.")
    nonzero = np.flatnonzero(array_of(p))
    if not len(nonzero):
        return constant(np.zeros(0))
    zeros = len(p) - nonzero[-1] - 1
    p = p[int(nonzero[0]) : int(nonzero[-1]) + 1]
    n = len(p) - 1
    if not n:
        return constant(np.zeros(zeros, p.dtype))
    below = constant(np.eye(n, k=-1, dtype=p.dtype)[1:])
    found = linalg.eigvals(ops.cat([(-p[1:] / p[0])[None], below]))
    if not array_of(found).imag.any() and not p.is_complex():
        found = ops.real(found)
    return ops.cat([found, constant(np.zeros(zeros, found.dtype))])


def polyfit(
    x: Tensor,
    y: Tensor,
    deg: Any,
    rcond: float | None = None,
    full: bool = False,
    w: Tensor | None = None,
    cov: bool | str = False,
) -> Any:
    """Return the least-squares polynomial of a degree; with `full` or `cov`, how well it fits."""
    if not isinstance(deg, int | np.integer):
        raise ArgumentTypeError(
            f"polyfit on a Tensor: deg must be an int, got {type(deg).__name__}"
        )
    x, y = floating(x), floating(y)
    matrix = creation.vander(x, int(deg) + 1)
    if w is not None:
        matrix, y = matrix * w[:, None], y * (w[:, None] if y.ndim == 2 else w)
    scale = ops.sqrt(xp.sum(matrix * matrix, axis=0))
    matrix = matrix / scale
    rcond = len(x) * np.finfo(matrix.dtype).eps if rcond is None else rcond
    found, residuals, rank, singular = lstsq(matrix, y, rcond)
    found = found / (scale[:, None] if y.ndim == 2 else scale)
    if full:
        return found, residuals, rank, singular, rcond
    return (found, _covariance(matrix, scale, residuals, cov, y.ndim)) if cov else found


def _covariance(
    matrix: Tensor, scale: Tensor, residuals: Tensor, kind: bool | str, ndim: int
) -> Tensor:
    """Return the covariance of the coefficients of a fit."""
    points, order = matrix.shape
    base = linalg.inv(matrix.mT @ matrix) / (scale[:, None] * scale)
    base = base if ndim == 1 else base[:, :, None]
    if kind == "unscaled":
        return base
    if points <= order:
        raise ArgumentError(
            f"polyfit: the number of data points, {points}, must exceed the number of "
            f"coefficients, {order}, to scale the covariance matrix: or take cov='unscaled'"
        )
    return base * (residuals / (points - order))
