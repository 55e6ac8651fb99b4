"""Pairwise Euclidean distances between two sets of points, and the operations of their rules.

|x - y|² = |x|² + |y|² - 2 x·y takes one matrix product, but cancels where points nearly coincide.
So distances and derivatives of such pairs are computed again from their differences. Points are
rows; stacks of sets have equal shapes.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any

from chainrule.primitives.primitive import Primitive, applied, constant, general, name_of

Array = Any

_MAX_DIRECT_SIZE = 2**12
"""Number of differences up to which their array is faster than a matrix product."""
_MAX_UNROLLED_DIMENSIONS = 4
"""Number of dimensions up to which one pass for each is as fast as a matrix product."""
_BLOCK_SIZE = 2**20
"""Number of elements of a block of differences of near pairs."""


def _is_direct(x: Array, y: Array) -> bool:
    count: int = math.prod(x.shape) * y.shape[-2]
    return count <= _MAX_DIRECT_SIZE


def _is_unrolled(x: Array) -> bool:
    dimensions: int = x.shape[-1]
    return dimensions <= _MAX_UNROLLED_DIMENSIONS


def _differences(x: Array, y: Array) -> Array:
    return x[..., :, None, :] - y[..., None, :, :]


def _transpose(xp: Any, x: Array) -> Array:
    return xp.matrix_transpose(x)


def _squared_norms(xp: Any, x: Array) -> Array:
    """Return the squared lengths of rows, as a column."""
    return xp.sum(x * x, axis=(x.ndim - 1,), keepdims=True)


def _centred(xp: Any, x: Array, y: Array) -> tuple[Array, Array]:
    """Return both sets minus the mean of the second, which reduces the rounding errors."""
    mean = xp.mean(y, axis=-2, keepdims=True)
    mean = xp.where(xp.isfinite(mean), mean, xp.zeros_like(mean))
    return x - mean, y - mean


# --- pairs that nearly coincide -------------------------------------------------------------------


def _near_pairs(xp: Any, x: Array, y: Array, out: Array) -> Array:
    """Return the mask of distances too inaccurate where they come from a matrix product."""
    if _is_direct(x, y) or _is_unrolled(x):
        return xp.zeros(out.shape, dtype=xp.bool)
    x, y = _centred(xp, x, y)
    share = _near_ratio(out)
    sizes = share * _squared_norms(xp, x) + _transpose(xp, share * _squared_norms(xp, y))
    return xp.logical_not(out * out >= sizes)  # nan, too


def _near_ratio(x: Array) -> float:
    """Return the ratio of |x - y|² to |x|² + |y|² below which a pair counts as near."""
    return 2.0**-4 if "32" in name_of(x.dtype) else 2.0**-10


near_pairs = constant("near_pairs", forward=_near_pairs)


def _near_pair_blocks(xp: Any, near: Array, size: int) -> Iterator[tuple[Array, Array, Array]]:
    """Yield blocks of flat positions of near pairs, with their rows in the flattened stacks."""
    rows, columns = near.shape[-2:]
    (positions,) = xp.nonzero(xp.reshape(near, (-1,)))
    count, step = positions.shape[0], max(_BLOCK_SIZE // max(size, 1), 1)
    for start in range(0, count, step):
        block = positions[start : min(start + step, count)]
        yield block, block // columns, block // (rows * columns) * columns + block % columns


def _rows(xp: Any, x: Array) -> Array:
    return xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _correct_near_pairs(
    xp: Any, out: Array, near: Array, x: Array, y: Array, u: Array | None
) -> Array:
    """Return `out` with near pairs set to d·u, d their difference, or to d·d if u is None."""
    x, y = _rows(xp, x), _rows(xp, y)
    u = None if u is None else _rows(xp, u)
    positions, values = [], []
    for block, i, j in _near_pair_blocks(xp, near, x.shape[1]):
        d = xp.take(x, i, axis=0) - xp.take(y, j, axis=0)
        positions.append(block)
        values.append(xp.sum(d * (d if u is None else xp.take(u, i, axis=0)), axis=(1,)))
    if not positions:
        return out
    flat = xp.reshape(out, (-1,))
    flat = xp.assign_at(flat, xp.concat(values, axis=0), xp.concat(positions, axis=0))
    return xp.reshape(flat, out.shape)


# --- distances ------------------------------------------------------------------------------------


def _cdist(xp: Any, x: Array, y: Array, *, direct: bool) -> Array:
    if _is_direct(x, y):
        d = _differences(x, y)
        return xp.sqrt(xp.sum(d * d, axis=(d.ndim - 1,)))
    if xp.rule_kernels is not None and x.dtype.char in "fd":
        ratio = None if direct or _is_unrolled(x) else _near_ratio(x)
        found: Array = xp.rule_kernels["pair_distances"](x, y, near_ratio=ratio)
        return found
    if direct or _is_unrolled(x):
        return xp.sqrt(_sum_all(d * d for d in _differences_by_dimension(x, y)))
    a, b = _centred(xp, x, y)
    sizes = _squared_norms(xp, a) + _transpose(xp, _squared_norms(xp, b))
    squares = sizes + xp.matmul(a, _transpose(xp, -2 * b))
    near = xp.logical_not(squares >= _near_ratio(sizes) * sizes)
    return xp.sqrt(_correct_near_pairs(xp, squares, near, x, y, None))


def _differences_by_dimension(x: Array, y: Array) -> Iterator[Array]:
    """Yield the differences of all pairs, for each dimension in turn."""
    for m in range(x.shape[-1]):
        yield x[..., :, None, m] - y[..., None, :, m]


def _sum_all(parts: Iterable[Array]) -> Array:
    return functools.reduce(operator.add, parts)


def _divide_nonzero(xp: Any, g: Array, out: Array) -> Array:
    """Return g / out, and 0 where points coincide."""
    zero = out == 0
    return xp.masked(g / (out + xp.astype(zero, out.dtype)), xp.logical_not(zero))


def _cdist_vjp(
    xp: Any, g: Array, x: Array, y: Array, out: Array, needs: tuple[bool, ...]
) -> tuple[Array | None, Array | None]:
    if xp.rule_kernels is not None and g.dtype.char in "fd" and not _is_direct(x, y):
        ratio = None if _is_unrolled(x) else _near_ratio(x)
        found: tuple[Array | None, Array | None] = xp.rule_kernels["pair_gradients"](
            g, x, y, out, needs, near_ratio=ratio
        )
        return found
    return (
        _cdist_x(xp, g, x, y, out) if needs[0] else None,
        _cdist_y(xp, g, x, y, out) if needs[1] else None,
    )


def _cdist_x(xp: Any, g: Array, x: Array, y: Array, out: Array) -> Array:
    near = applied(near_pairs, xp)(x, y, out)
    return applied(summed_differences, xp)(_divide_nonzero(xp, g, out), x, y, near)


def _cdist_y(xp: Any, g: Array, x: Array, y: Array, out: Array) -> Array:
    near = _transpose(xp, applied(near_pairs, xp)(x, y, out))
    return applied(summed_differences, xp)(_transpose(xp, _divide_nonzero(xp, g, out)), y, x, near)


def _cdist_jvp_x(xp: Any, t: Array, x: Array, y: Array, out: Array) -> Array:
    near = applied(near_pairs, xp)(x, y, out)
    return _divide_nonzero(xp, applied(projected_differences, xp)(t, x, y, near), out)


def _cdist_jvp_y(xp: Any, t: Array, x: Array, y: Array, out: Array) -> Array:
    near = _transpose(xp, applied(near_pairs, xp)(x, y, out))
    slopes = applied(projected_differences, xp)(t, y, x, near)
    return _divide_nonzero(xp, _transpose(xp, slopes), out)


cdist: Primitive = general(
    "cdist",
    _cdist,
    vjp=_cdist_vjp,
    jvp=(_cdist_jvp_x, _cdist_jvp_y),
    broadcasts=False,
)

# --- Σ_j w_ij (x_i - y_j) and u_i · (x_i - y_j), each the adjoint of the other --------------------


def _weighted_sum(xp: Any, w: Array, x: Array, y: Array, near: Array) -> Array:
    if _is_direct(x, y):
        d = _differences(x, y)
        return xp.sum(w[..., None] * d, axis=(d.ndim - 2,))
    if _is_unrolled(x):
        columns = [xp.sum(w * d, axis=(w.ndim - 1,)) for d in _differences_by_dimension(x, y)]
        return xp.stack(columns, axis=-1)
    far = xp.masked(w, xp.logical_not(near))
    a, b = _centred(xp, x, y)
    out = xp.sum(far, axis=(far.ndim - 1,), keepdims=True) * a - xp.matmul(far, b)
    weights, rows, others = xp.reshape(w, (-1,)), _rows(xp, x), _rows(xp, y)
    for block, i, j in _near_pair_blocks(xp, near, x.shape[-1]):
        d = xp.take(rows, i, axis=0) - xp.take(others, j, axis=0)
        d = xp.take(weights, block, axis=0)[:, None] * d
        out = out + xp.reshape(xp.index_add(d, shape=rows.shape, key=i), x.shape)
    return out


def _projection(xp: Any, u: Array, x: Array, y: Array, near: Array) -> Array:
    if _is_direct(x, y):
        d = _differences(x, y)
        return xp.sum(u[..., None, :] * d, axis=(d.ndim - 1,))
    if _is_unrolled(x):
        steps = enumerate(_differences_by_dimension(x, y))
        return _sum_all(u[..., m, None] * d for m, d in steps)
    a, b = _centred(xp, x, y)
    own = xp.sum(u * a, axis=(u.ndim - 1,), keepdims=True)
    return _correct_near_pairs(xp, own - xp.matmul(u, _transpose(xp, b)), near, x, y, u)


def _row_sums_times(xp: Any, w: Array, u: Array) -> Array:
    return xp.sum(w, axis=(w.ndim - 1,), keepdims=True) * u


def _minus_transposed_product(xp: Any, w: Array, u: Array) -> Array:
    return -xp.matmul(_transpose(xp, w), u)


def _minus_product(xp: Any, w: Array, t: Array) -> Array:
    return -xp.matmul(w, t)


def _minus_inner_products(xp: Any, u: Array, t: Array) -> Array:
    return -xp.matmul(u, _transpose(xp, t))


def _projected_vjp_u(xp: Any, g: Array, u: Array, near_shape: tuple[int, ...]) -> Array:
    # The shape is saved for forward mode, which gets the values that the vjp names.
    return _row_sums_times(xp, xp.broadcast_to(g, near_shape), u)


def _projected_jvp_u(xp: Any, t: Array, u: Array, near_shape: tuple[int, ...]) -> Array:
    return xp.broadcast_to(xp.sum(u * t, axis=(u.ndim - 1,), keepdims=True), near_shape)


summed_differences: Primitive = general(
    "summed_differences",
    _weighted_sum,
    vjp=(
        lambda xp, g, x, y, near: applied(projected_differences, xp)(g, x, y, near),
        lambda xp, g, w: _row_sums_times(xp, w, g),
        lambda xp, g, w: _minus_transposed_product(xp, w, g),
        None,
    ),
    jvp=(
        lambda xp, t, x, y, near: applied(summed_differences, xp)(t, x, y, near),
        lambda xp, t, w: _row_sums_times(xp, w, t),
        lambda xp, t, w: _minus_product(xp, w, t),
        None,
    ),
    label="CdistBackwardBackward0",
    broadcasts=False,
)

projected_differences: Primitive = general(
    "projected_differences",
    _projection,
    vjp=(
        lambda xp, g, x, y, near: applied(summed_differences, xp)(g, x, y, near),
        _projected_vjp_u,
        lambda xp, g, u: _minus_transposed_product(xp, g, u),
        None,
    ),
    jvp=(
        lambda xp, t, x, y, near: applied(projected_differences, xp)(t, x, y, near),
        _projected_jvp_u,
        lambda xp, t, u: _minus_inner_products(xp, u, t),
        None,
    ),
    broadcasts=False,
)
