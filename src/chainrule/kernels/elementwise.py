"""Elementwise functions that the array API lacks, and kernels for derivative formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from chainrule.interrupts import errstate
from chainrule.kernels.fast_numpy import BIT_PATTERNS
from chainrule.kernels.parallel import parallelized

Array = Any

UPDATES: list[Callable[..., bool]] = []
"""Machine code for the formulas of optimisers, while `set_kernels` selects it."""


@parallelized(by_rows=False)
def sigmoid(xp: Any, out: Array, x: Array) -> None:
    """Fill in 1 / (1 + exp(-x)) of real numbers."""
    # Limited so that exp does not overflow; from 37 on the result is 1.
    limit = 11.0 if x.dtype.itemsize == 2 else 60.0
    if x.size and xp.maximum.reduce(x, axis=None) <= limit:  # cheaper than clipping
        xp.exp(x, out=out)
    elif x.size < 4096:
        xp.exp(xp.minimum(x, limit), out=out)
    else:
        xp.exp(xp.clip(x, -xp.inf, limit, out=out), out=out)  # only two bounds are vectorised
    xp.divide(out, out + 1, out=out)


@parallelized(by_rows=False)
def tanh_rule(xp: Any, product: Array, v: Array, out: Array) -> None:
    """Fill in v (1 - out²)."""
    xp.multiply(out, out, out=product)
    xp.subtract(1, product, out=product)
    xp.multiply(v, product, out=product)


@parallelized(by_rows=False)
def sigmoid_rule(xp: Any, product: Array, v: Array, out: Array) -> None:
    """Fill in v (out - out²)."""
    xp.multiply(out, out, out=product)
    xp.subtract(out, product, out=product)
    xp.multiply(v, product, out=product)


@parallelized(by_rows=False)
def relu_rule(xp: Any, product: Array, v: Array, out: Array) -> None:
    """Fill in v where not out ≤ 0, else 0, by bit patterns (see `masked`)."""
    mask = out <= 0
    xp.logical_not(mask, out=mask)
    integer = BIT_PATTERNS[v.dtype.char]
    xp.multiply(v.view(integer), mask, out=product.view(integer))


def complex(xp: Any, x: Array, y: Array) -> Array:
    """Return x + iy."""
    # x + 1j * y would turn x into nan where y is infinite.
    shape = xp.broadcast_shapes(x.shape, y.shape)
    out = xp.empty(shape, xp.result_type(x.dtype, y.dtype, xp.complex64))
    out.real, out.imag = x, y
    return out


def real_pairs(xp: Any, x: Array) -> Array:
    """Return a view of complex numbers as real and imaginary parts, in a last axis of length 2."""
    return x[..., None].view(x.real.dtype)


def complex_pairs(xp: Any, x: Array) -> Array:
    """Return a view of pairs of real numbers, in a last axis, as complex numbers."""
    return x.view("c8" if x.itemsize == 4 else "c16")[..., 0]


def complex_expm1(xp: Any, x: Array) -> Array:
    """Return exp(x) - 1, as C99 has it at infinities."""
    return xp.where(xp.isfinite(x), xp.expm1(x), xp.exp(x) - 1)


def complex_log1p(xp: Any, x: Array) -> Array:
    """Return log(1 + x), accurate for small x, too."""
    a, b = x.real, x.imag
    near = xp.maximum(abs(a), abs(b)) < 0.5
    a, b = xp.where(near, a, 0), xp.where(near, b, 0)
    out = xp.log1p(x)
    return complex(xp, xp.where(near, 0.5 * xp.log1p(a * (2 + a) + b * b), out.real), out.imag)


def modulus(xp: Any, x: Array, y: Array) -> Array:
    """Return |x + iy|, where no complex array is made."""
    return xp.hypot(x, y)


def hypot(xp: Any, x: Array, y: Array) -> Array:
    """Return √(x² + y²), by squares unless one of them over- or underflows."""
    if (
        xp.__name__ != "numpy"
        or x.size < _SQUARES_MIN_ELEMENTS
        or y.size < _SQUARES_MIN_ELEMENTS
        or x.dtype.itemsize == 2
    ):
        return xp.hypot(x, y)
    square = _sum_of_squares(x, y)
    info = xp.finfo(square.dtype)
    if square.min() < info.tiny / info.eps or not square.max() < info.max:  # maybe nan
        return xp.hypot(x, y)  # a scalar loop: 2.6 ms for a million float32, the squares take 0.8
    return xp.sqrt(square, out=square)


@errstate(over="ignore", under="ignore", invalid="ignore")
def _sum_of_squares(x: Array, y: Array) -> Array:
    square = x * x
    return square + y * y


_SQUARES_MIN_ELEMENTS = 1 << 14
"""Number of elements from which summing squares is faster than `numpy.hypot`."""


def logaddexp(xp: Any, x: Array, y: Array) -> Array:
    """Return log(exp(x) + exp(y)); NumPy's own function is a scalar loop."""
    if x.size < _LOGADDEXP_MIN_ELEMENTS > y.size:
        return xp.logaddexp(x, y)
    return logaddexp_of_many(xp, x, y)


def logaddexp_of_many(xp: Any, x: Array, y: Array) -> Array:
    """Return log(exp(x) + exp(y)) by vectorised functions."""
    high, low = xp.maximum(x, y), xp.minimum(x, y)
    same = high == low  # maybe infinities, whose difference is nan
    gap = xp.where(same, 0.0, low) - xp.where(same, 0.0, high)
    return high + xp.log1p(xp.exp(gap))


_LOGADDEXP_MIN_ELEMENTS = 128
"""Number of elements from which seven vectorised calls take less time than the scalar loop."""


def exponent(xp: Any, x: Array) -> Array:
    """Return the binary exponent of `frexp`."""
    return xp.frexp(x)[1]


def spherical_bessel_j(xp: Any, x: Array, *, order: int) -> Array:
    """Return sin(x)/x or a higher spherical Bessel function of the first kind.

    Uses the power series (DLMF 10.53.1) where |x| ≤ order + 1, elsewhere the recurrence from the
    first two (10.51.1), which is stable there. No precision is lost near 0.
    """
    if order == 0:
        zero, infinite = x == 0, xp.isinf(x)
        safe = xp.where(zero | infinite, 1.0, x)
        return xp.where(zero, 1.0, xp.where(infinite, 0.0, xp.sin(safe) / safe))
    near = xp.abs(x) <= order + 1
    small = xp.where(near, x, 0.0)
    half = small * small / -2
    series = term = small**order / math.prod(range(1, 2 * order + 2, 2))
    for k in range(1, 12 + 3 * order):
        term = term * half / (k * (2 * order + 2 * k + 1))
        series = series + term
    infinite = xp.isinf(x)
    large = xp.where(near | infinite, 1.0, x)
    previous, current = xp.cos(large) / large, xp.sin(large) / large
    for n in range(order):
        previous, current = current, (2 * n + 1) / large * current - previous
    current = xp.where(infinite, 0.0, current)
    return xp.where(near, series, current).astype(x.dtype, copy=False)


def xlogy(xp: Any, x: Array, y: Array) -> Array:
    """Return x log y, and 0 where x is 0 (nan where y is)."""
    absent = (x == 0) & (y == y)
    return x * xp.log(xp.where(absent, 1.0, y))


def xlog1py(xp: Any, x: Array, y: Array) -> Array:
    """Return x log(1 + y), and 0 where x is 0 (nan where y is)."""
    absent = (x == 0) & (y == y)
    return x * xp.log1p(xp.where(absent, 0.0, y))


def cross(xp: Any, x: Array, y: Array, *, axis: int) -> Array:
    """Return cross products without the overhead of NumPy's function."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return xp.linalg.cross(x, y, axis=axis)
    previous = (slice(None),) * (axis % x.ndim)
    out = xp.empty(x.shape, x.dtype)
    for i in range(3):
        after, current = (*previous, (i + 1) % 3), (*previous, (i + 2) % 3)
        part = out[(*previous, i, ...)]
        xp.multiply(x[after], y[current], out=part)
        part -= x[current] * y[after]
    return out
