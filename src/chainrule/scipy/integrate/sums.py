"""Integrals of samples: the trapezoidal rule, Simpson's and Romberg's (DLMF 3.5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.scipy.operands import floats

# --- samples, with their axis last ----------------------------------------------------------------


def _samples(name: str, y: Any, x: Any, dx: Any, axis: int) -> tuple[Tensor, Any, Any]:
    """Return samples and the steps between them with the axis last, and whether these are equal."""
    if x is None:
        y, step = floats(name, y, dx)
        y = ops.movedim(y, axis, -1)
        if step.ndim:
            step = ops.movedim(step, axis, -1) if step.ndim == y.ndim else step
        return y, step, True
    y, x = floats(name, y, x)
    y = ops.movedim(y, axis, -1)
    x = x if x.ndim == 1 else ops.movedim(x, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(
            f"{name}: shape of `x` must be the same as `y` or 1-D: got {list(x.shape)} and "
            f"{list(y.shape)} with the axis last"
        )
    return y, x[..., 1:] - x[..., :-1], False


def _check_count(name: str, y: Tensor) -> None:
    if y.shape[-1] == 0:
        raise ShapeError(f"{name}: At least one point is required along `axis`, got none")


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Return the integral along an axis by the trapezoidal rule.

    Derivatives: with respect to the samples, the points `x` and the step `dx`.
    """
    y, step, _ = _samples("trapezoid", y, x, dx, axis)
    return ops.sum(step * (y[..., 1:] + y[..., :-1]) / 2, dim=-1)


def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """Return the integrals up to each point by the trapezoidal rule."""
    y, step, _ = _samples("cumulative_trapezoid", y, x, dx, axis)
    _check_count("cumulative_trapezoid", y)
    if initial is not None and not isinstance(initial, Tensor) and np.any(np.asarray(initial) != 0):
        raise ArgumentError("cumulative_trapezoid: `initial` must be `None` or `0`.")
    found = ops.cumsum(step * (y[..., 1:] + y[..., :-1]) / 2, dim=-1)
    if initial is not None:
        found = ops.cat([0 * y[..., :1].detach(), found], dim=-1)
    return ops.movedim(found, -1, axis)


def _quotient(x: Any, y: Any) -> Any:
    """Return x/y, and 0 for an interval without length, as SciPy does."""
    zero = y == 0
    return ops.where(zero, 0.0, x / ops.where(zero, 1.0, y))


def _simpson_pairs(y: Tensor, step: Any, even: bool) -> Any:
    """Return the integral over an even number of intervals."""
    y0, y1, y2 = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if even:
        return ops.sum(y0 + 4 * y1 + y2, dim=-1) * (step / 3)
    h0, h1 = step[..., ::2], step[..., 1::2]
    total = h0 + h1
    middle = total * _quotient(total, h0 * h1)
    parts = y0 * (2 - _quotient(h1, h0)) + y1 * middle + y2 * (2 - _quotient(h0, h1))
    return ops.sum(total / 6 * parts, dim=-1)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Return the integral along an axis by Simpson's rule.

    For an even number of points, the last interval is integrated by the parabola through the last
    three points (K. V. Cartwright, J. Math. Sci. Math. Educ. 12(2), 2017).
    """
    y, step, even = _samples("simpson", y, x, dx, axis)
    _check_count("simpson", y)
    count = y.shape[-1]
    if count % 2:
        return _simpson_pairs(y, step, even)
    h1 = step if even else step[..., -1]
    if count == 2:
        return h1 * (y[..., 0] + y[..., 1]) / 2
    h0 = step if even else step[..., -2]
    inner = _simpson_pairs(y[..., :-1], step if even else step[..., :-1], even)
    alpha = _quotient(2 * h1 * h1 + 3 * h0 * h1, 6 * (h1 + h0))
    beta = _quotient(h1 * h1 + 3 * h0 * h1, 6 * h0)
    eta = _quotient(h1 * h1 * h1, 6 * h0 * (h0 + h1))
    return inner + alpha * y[..., -1] + beta * y[..., -2] - eta * y[..., -3]


def _left_intervals(y: Tensor, step: Any, even: bool) -> Any:
    """Return the integral over the first interval of each three points, by their parabola."""
    f1, f2, f3 = y[..., :-2], y[..., 1:-1], y[..., 2:]
    if even:
        return step / 3 * (5 * f1 / 4 + 2 * f2 - f3 / 4)
    h0, h1 = step[..., :-1], step[..., 1:]
    over_both, over_next = h0 / (h0 + h1), h0 / h1
    product = over_both * over_next
    return h0 / 6 * ((3 - over_both) * f1 + (3 + product + over_both) * f2 - product * f3)


def cumulative_simpson(
    y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """Return the integrals up to each point by Simpson's rule for single intervals."""
    y, step, even = _samples("cumulative_simpson", y, x, dx, axis)
    _check_count("cumulative_simpson", y)
    if not even and holds_somewhere((step <= 0)._array):
        raise ArgumentError("cumulative_simpson: Input x must be strictly increasing.")
    if y.shape[-1] < 3:
        found = ops.cumsum(step * (y[..., 1:] + y[..., :-1]) / 2, dim=-1)
    else:
        left = _left_intervals(y, step, even)
        flipped = step if even else ops.flip(step, -1)
        right = ops.flip(_left_intervals(ops.flip(y, -1), flipped, even), -1)
        of_even = ops.cat([left, right[..., -1:]], dim=-1)
        of_odd = ops.cat([right[..., :1], right], dim=-1)
        odd = np.arange(y.shape[-1] - 1) % 2 == 1
        found = ops.cumsum(ops.where(odd, of_odd, of_even), dim=-1)
    if initial is not None:
        start = floats("cumulative_simpson", found, initial)[1]
        start = start if start.ndim else start + 0 * ops.movedim(y[..., :1].detach(), -1, axis)
        start = ops.movedim(start, axis, -1)
        found = ops.cat([start, found + start], dim=-1)
    return ops.movedim(found, -1, axis)


def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Any:
    """Return the integral of 2ᵏ + 1 samples at equal steps, by Richardson extrapolation."""
    if show:
        raise ArgumentTypeError("romb of tensors takes no show: leave it out")
    y, dx = floats("romb", y, dx)
    y = ops.movedim(y, axis, -1)
    intervals = y.shape[-1] - 1
    k = max(intervals, 1).bit_length() - 1
    if intervals < 1 or 2**k != intervals:
        raise ShapeError(
            f"romb: Number of samples must be one plus a non-negative power of 2, got {y.shape[-1]}"
        )
    step = intervals * dx
    row = [step * (y[..., 0] + y[..., -1]) / 2]
    stride = intervals
    for _ in range(k):
        stride //= 2
        step = step / 2
        found = [row[0] / 2 + step * ops.sum(y[..., stride :: 2 * stride], dim=-1)]
        for j, below in enumerate(row):
            found.append(found[j] + (found[j] - below) / (4 ** (j + 1) - 1))
        row = found
    return row[-1]
