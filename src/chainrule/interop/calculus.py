"""Differences, integrals, interpolation, convolution, complex parts, and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import array_api as xp
from chainrule import creation, linalg, ops
from chainrule.arguments import cast, floating, many_dims, one_dim
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known, promoted
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.interop.manipulation import flat
from chainrule.interop.operands import array_of, constant, in_double, may_hold, tensors_of
from chainrule.ops.cumulative import gradient_along_axis
from chainrule.primitives import convolution

# --- differences ----------------------------------------------------------------------------------


def _slice_axis(a: Tensor, axis: int, start: int | None, stop: int | None) -> Tensor:
    return a[(slice(None),) * axis + (slice(start, stop),)]


def diff(
    a: Tensor,
    n: int = 1,
    axis: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Return the n-th differences of neighbours along an axis; `a` itself for n = 0."""
    if n == 0:
        return a
    ends = [prepend, append]
    if a.ndim and (prepend is not None or append is not None):
        shape = list(a.shape)
        shape[one_dim(axis, a.ndim)] = 1
        ends = [end if end is None or end.ndim else ops.broadcast_to(end, shape) for end in ends]
    return ops.diff(a, n, axis, *ends)


def ediff1d(ary: Tensor, to_end: Tensor | None = None, to_begin: Tensor | None = None) -> Tensor:
    """Return the differences of neighbours of the flattened array, with optional ends."""
    parts = [to_begin, diff(flat(ary)), to_end]
    dtype = ary.dtype
    return ops.cat([cast(flat(part), dtype) for part in parts if part is not None])


def gradient(f: Tensor, *varargs: Tensor, axis: Any = None, edge_order: int = 1) -> Any:
    """Return the gradient along axes by finite differences: central, one-sided at the ends."""
    f = floating(f)
    axes = many_dims(axis, f.ndim)
    axes = tuple(range(f.ndim)) if axes is None else axes
    distances = [h if h.dtype.kind in "fc" else cast(h, np.float64) for h in varargs]
    distances = distances or [constant(np.ones((), f.dtype))]
    if len(distances) == 1 and not distances[0].ndim:
        distances *= len(axes)
    if len(distances) != len(axes):
        raise ArgumentTypeError(
            f"gradient: expected no distances, one, or one for each of the {len(axes)} axes, got "
            f"{len(distances)}"
        )
    if edge_order not in (1, 2):
        raise ArgumentError(
            f"gradient: 'edge_order' greater than 2 not supported, got {edge_order}"
        )
    pairs = zip(distances, axes, strict=True)
    along = [cast(gradient_along_axis(f, h, i, edge_order), f.dtype) for h, i in pairs]
    return along[0] if len(along) == 1 else tuple(along)


def trapezoid(
    y: Tensor, x: Tensor | None = None, dx: Tensor | float = 1.0, axis: int = -1
) -> Tensor:
    """Return the integral of samples by the trapezoidal rule."""
    integral = ops.trapezoid(y, x, dim=axis)
    return integral if x is not None else integral * dx


# --- interpolation --------------------------------------------------------------------------------


def interp(
    x: Tensor,
    xp: Tensor,
    fp: Tensor,
    left: Tensor | None = None,
    right: Tensor | None = None,
    period: float | None = None,
) -> Tensor:
    """Return the piecewise linear interpolant at `x`; the points are in order of `xp`."""
    if xp.ndim != 1 or xp.shape != fp.shape or not len(xp):
        raise ArgumentError(
            "interp: expected xp and fp to be 1-d, of one length and not empty, got the shapes "
            f"{list(fp.shape)} and {list(xp.shape)}"
        )
    x, xp, fp = in_double(x), in_double(xp), in_double(fp)
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, abs(period))
        left = right = None
    positions = interval_of(x, xp)
    below, above = ops.less(x, xp[0]), ops.greater(x, xp[-1])
    outside = ops.logical_or(below, above)
    if may_hold(outside):  # there an infinite x would give nan
        x = ops.where(outside, xp[positions], x)
    with np.errstate(invalid="ignore"):
        result = _between_points(x, xp, fp, positions)
    if may_hold(below):
        result = ops.where(below, fp[0] if left is None else left, result)
    if may_hold(above):
        result = ops.where(above, fp[-1] if right is None else right, result)
    return result


def _between_points(x: Tensor, xp: Tensor, fp: Tensor, positions: Any) -> Tensor:
    """Return the values on the lines between neighbours, as NumPy does where some are infinite.

    A point has its value, also beside an infinite one; the line may start from either point; and
    between points of one value there is that one.
    """
    start = fp[positions]
    if len(xp) == 1:
        return start
    widths = diff(xp)
    step = x - xp[positions]
    slope = (diff(fp) / ops.where(ops.eq(widths, 0), 1.0, widths))[positions]
    result = start + slope * step
    if is_known(result._array) and not np.isnan(result._array).any():
        return result
    missing = ops.isnan(result)
    if fp.is_complex():
        parts = [_between_points(x, xp, part, positions) for part in (ops.real(fp), ops.imag(fp))]
        return ops.complex(*parts)
    end = fp[positions + 1]
    known = ops.logical_or(ops.eq(start, end), ops.eq(step, 0))
    known = ops.logical_and(known, ops.logical_not(ops.isnan(x)))
    other = ops.logical_and(missing, ops.logical_not(known))
    result = start + ops.where(missing, 0.0, slope) * ops.where(missing, 0.0, step)
    back = ops.where(other, x - xp[positions + 1], 0.0)
    return ops.where(other, end + ops.where(ops.eq(back, 0), 0.0, slope) * back, result)


def interval_of(x: Tensor, xp: Tensor) -> Any:
    """Return for each element the index of the interval that contains it."""
    last = max(len(xp) - 2, 0)
    if is_known(x._array) and is_known(xp._array):
        return np.clip(np.searchsorted(array_of(xp), array_of(x), "right") - 1, 0, last)
    dtype = promoted(x.dtype, xp.dtype)
    grid, numbers = cast(xp.detach(), dtype), cast(x.detach(), dtype)
    return ops.clamp(ops.searchsorted(grid, numbers, right=True) - 1, 0, last)


def _periodic(x: Tensor, xp: Tensor, fp: Tensor, period: float) -> tuple[Tensor, Tensor, Tensor]:
    if period == 0:
        raise ArgumentError("interp: period must be a non-zero value")
    x, xp = ops.remainder(x, period), ops.remainder(xp, period)
    order = np.argsort(array_of(xp)) if is_known(xp._array) else ops.argsort(xp)
    xp, fp = xp[order], fp[order]
    xp = ops.cat([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, ops.cat([fp[-1:], fp, fp[:1]])


# --- convolution ----------------------------------------------------------------------------------


def convolve(a: Tensor, v: Tensor, mode: str = "full") -> Tensor:
    """Return the convolution of two vectors."""
    a, v = _rows("convolve", a, v)
    if len(v) > len(a):
        a, v = v, a
    return _correlate_rows(a, ops.flip(v), mode)


def correlate(a: Tensor, v: Tensor, mode: str = "valid") -> Tensor:
    """Return the correlation of two vectors, the second conjugated."""
    a, v = _rows("correlate", a, v)
    if len(v) > len(a):
        return ops.flip(ops.conj(_correlate_rows(v, ops.conj(a), mode)))
    return _correlate_rows(a, ops.conj(v), mode)


def _rows(name: str, a: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    a, v = ops.atleast_1d(a), ops.atleast_1d(v)
    if a.ndim != 1 or v.ndim != 1 or not len(a) or not len(v):
        raise ArgumentError(
            f"{name}: expected two vectors that are not empty, got the shapes {list(a.shape)} and "
            f"{list(v.shape)}"
        )
    joint = ops.promote_types(a.dtype, v.dtype)
    return cast(a, joint), cast(v, joint)


def _correlate_rows(a: Tensor, v: Tensor, mode: str) -> Tensor:
    """Return the inner products of `v` with the windows of `a`, padded with zeros by `mode`."""
    overlap = {"valid": 0, "same": len(v) // 2, "full": len(v) - 1}
    if mode not in overlap:
        raise ArgumentError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    before = overlap[mode]
    after = len(v) - 1 - before if mode == "same" else before
    window = ((1,), ((before, after),), (1,), 1)
    image, kernel = xp.reshape(a, (1, 1, -1)), xp.reshape(v, (1, 1, -1))
    return xp.reshape(convolution.convolve.apply(image, kernel, window=window), (-1,))


# --- angles and complex parts ---------------------------------------------------------------------


def unwrap(p: Tensor, discont: Any = None, axis: int = -1, *, period: float = 2 * np.pi) -> Tensor:
    """Return angles without jumps by multiples of the period between neighbours."""
    wrapped = array_of(p)
    shift = np.unwrap(wrapped, discont, axis, period=period) - wrapped
    shift = np.round(shift / period) * period  # exact multiples: a constant for the derivative
    return p + constant(
        shift.astype(np.result_type(wrapped, shift) if wrapped.dtype.kind == "i" else wrapped.dtype)
    )


def angle(z: Tensor, deg: bool = False) -> Tensor:
    """Return the argument of complex numbers, in radians or degrees."""
    return ops.rad2deg(ops.angle(z)) if deg else ops.angle(z)


def imag(val: Tensor) -> Tensor:
    """Return the imaginary part, which is 0 for real numbers."""
    return ops.imag(val) if val.is_complex() else creation.zeros_like(val)


def matrix_power(a: Tensor, n: int) -> Tensor:
    """Return the n-th power of matrices; `a` itself for n = 1."""
    return a if n == 1 else linalg.matrix_power(a, n)


def real_if_close(a: Tensor, tol: float = 100) -> Tensor:
    """Return the real part, if all imaginary parts are close to zero."""
    if not a.is_complex():
        return a
    bound = tol * np.finfo(a.dtype).eps if tol > 1 else tol
    return ops.real(a) if bool((np.abs(array_of(a).imag) < bound).all()) else a


def cross(
    a: Tensor, b: Tensor, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """Return the cross products of vectors of length 3, or the third components of planar ones."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = ops.moveaxis(a, axisa, -1), ops.moveaxis(b, axisb, -1)
    sizes = {a.shape[-1], b.shape[-1]}
    if sizes == {2}:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    if sizes == {2, 3}:
        a, b = [_in_space(part) for part in (a, b)]
    return ops.moveaxis(ops.cross(a, b, -1), -1, axisc)


def _in_space(vectors: Tensor) -> Tensor:
    if vectors.shape[-1] == 3:
        return vectors
    return ops.cat([vectors, creation.zeros_like(vectors[..., :1])], -1)


# --- products -------------------------------------------------------------------------------------


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Return the dot product; for stacks, the product of each matrix with each."""
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    a, b = _with_common_dtype(a, b)
    if b.ndim <= 2:
        return ops.matmul(a, b)
    return ops.tensordot(a, b, ([-1], [-2]))


def _with_common_dtype(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    if a._array.dtype is b._array.dtype:
        return a, b
    joint = ops.promote_types(a.dtype, b.dtype)
    return cast(a, joint), cast(b, joint)


def inner(a: Tensor, b: Tensor) -> Tensor:
    """Return the sums of products along the last axes."""
    return ops.inner(a, b)


def outer(a: Tensor, b: Tensor) -> Tensor:
    """Return the outer product of the flattened arrays."""
    return flat(a)[:, None] * flat(b)


def vdot(a: Tensor, b: Tensor) -> Tensor:
    """Return the inner product of all elements, those of `a` conjugated."""
    return ops.vdot(*_with_common_dtype(flat(a), flat(b)))


def einsum(*operands: Any, optimize: Any = False) -> Tensor:
    """Return sums of products by Einstein's notation, in both of NumPy's forms."""
    subscripts, arrays = list(operands), list(range(1, len(operands)))
    if not isinstance(operands[0], str):
        arrays = list(range(0, len(operands) - 1, 2))
    made = tensors_of([operands[i] for i in arrays])
    for i, tensor in zip(arrays, made, strict=True):
        subscripts[i] = tensor
    return ops.einsum(*subscripts)


def trace(a: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """Return the sum along a diagonal."""
    return xp.sum(ops.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)
