"""Euclidean distances of all points of one set from all of another, and what their rules need.

|x - y|² = |x|² + |y|² - 2 x·y is one matrix product, but rounds to noise where points nearly
coincide. So the pairs for which it does are computed once more, by their differences; their
derivatives too. Points are rows; stacks of sets come in equal shapes.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any

from chainrule.primitives.primitive import Primitive, applied, constant, general, name_of

Array = Any

_FEW = 2**12  # numbers for which the array of all differences is quicker than a matrix product
_FLAT = 4  # dimensions for which one pass each is as quick
_BLOCK = 2**20


def _is_few(x: Array, y: Array) -> bool:
    count: int = math.prod(x.shape) * y.shape[-2]
    return count <= _FEW


def _is_flat(x: Array) -> bool:
    dimensions: int = x.shape[-1]
    return dimensions <= _FLAT


def _differences(x: Array, y: Array) -> Array:
    return x[..., :, None, :] - y[..., None, :, :]


def _transposed(xp: Any, x: Array) -> Array:
    return xp.matrix_transpose(x)


def _squared(xp: Any, x: Array) -> Array:
    """Return the squared lengths of rows, as a column."""
    return xp.sum(x * x, axis=(x.ndim - 1,), keepdims=True)


def _centred(xp: Any, x: Array, y: Array) -> tuple[Array, Array]:
    """Return both sets around the mean of the second: a product of smaller numbers errs less."""
    mean = xp.mean(y, axis=-2, keepdims=True)
    mean = xp.where(xp.isfinite(mean), mean, xp.zeros_like(mean))
    return x - mean, y - mean


# --- pairs that nearly coincide -------------------------------------------------------------------


def _near_pairs(xp: Any, x: Array, y: Array, out: Array) -> Array:
    """Say which squared distances lost their last digits, where they came of a matrix product."""
    if _is_few(x, y) or _is_flat(x):
        return xp.zeros(out.shape, dtype=xp.bool)
    x, y = _centred(xp, x, y)
    share = _share(out)
    sizes = share * _squared(xp, x) + _transposed(xp, share * _squared(xp, y))
    return xp.logical_not(out * out >= sizes)  # nan, too


def _share(x: Array) -> float:
    """Return how small |x - y|² may be beside |x|² + |y|²."""
    return 2.0**-4 if "32" in name_of(x.dtype) else 2.0**-10


near_pairs = constant("near_pairs", forward=_near_pairs)


def _pairs(xp: Any, near: Array, size: int) -> Iterator[tuple[Array, Array, Array]]:
    """Yield places in `near`, in blocks, with the rows of both sets (of all stacks) they are of."""
    rows, columns = near.shape[-2:]
    (places,) = xp.nonzero(xp.reshape(near, (-1,)))
    count, step = places.shape[0], max(_BLOCK // max(size, 1), 1)
    for start in range(0, count, step):
        block = places[start : min(start + step, count)]
        yield block, block // columns, block // (rows * columns) * columns + block % columns


def _rows(xp: Any, x: Array) -> Array:
    return xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _corrected(xp: Any, out: Array, near: Array, x: Array, y: Array, u: Array | None) -> Array:
    """Return `out` with d·u in the place of near pairs, d their difference; d·d if u is None."""
    x, y = _rows(xp, x), _rows(xp, y)
    u = None if u is None else _rows(xp, u)
    places, values = [], []
    for block, i, j in _pairs(xp, near, x.shape[1]):
        d = xp.take(x, i, axis=0) - xp.take(y, j, axis=0)
        places.append(block)
        values.append(xp.sum(d * (d if u is None else xp.take(u, i, axis=0)), axis=(1,)))
    if not places:
        return out
    flat = xp.reshape(out, (-1,))
    flat = xp.assign_at(flat, xp.concat(values, axis=0), xp.concat(places, axis=0))
    return xp.reshape(flat, out.shape)


# --- distances ------------------------------------------------------------------------------------


def _cdist(xp: Any, x: Array, y: Array, *, direct: bool) -> Array:
    if _is_few(x, y):
        d = _differences(x, y)
        return xp.sqrt(xp.sum(d * d, axis=(d.ndim - 1,)))
    if direct or _is_flat(x):
        return xp.sqrt(_total(d * d for d in _by_dimension(x, y)))
    a, b = _centred(xp, x, y)
    sizes = _squared(xp, a) + _transposed(xp, _squared(xp, b))
    squares = sizes + xp.matmul(a, _transposed(xp, -2 * b))
    near = xp.logical_not(squares >= _share(sizes) * sizes)
    return xp.sqrt(_corrected(xp, squares, near, x, y, None))


def _by_dimension(x: Array, y: Array) -> Iterator[Array]:
    """Yield the differences of all pairs, one dimension after the other."""
    for m in range(x.shape[-1]):
        yield x[..., :, None, m] - y[..., None, :, m]


def _total(parts: Iterable[Array]) -> Array:
    return functools.reduce(operator.add, parts)


def _over(xp: Any, g: Array, out: Array) -> Array:
    """Return g / out, and 0 where points coincide."""
    zero = out == 0
    return xp.masked(g / (out + xp.astype(zero, out.dtype)), xp.logical_not(zero))


def _cdist_x(xp: Any, g: Array, x: Array, y: Array, out: Array) -> Array:
    near = applied(near_pairs, xp)(x, y, out)
    return applied(summed_differences, xp)(_over(xp, g, out), x, y, near)


def _cdist_y(xp: Any, g: Array, x: Array, y: Array, out: Array) -> Array:
    near = _transposed(xp, applied(near_pairs, xp)(x, y, out))
    return applied(summed_differences, xp)(_transposed(xp, _over(xp, g, out)), y, x, near)


def _cdist_jvp_x(xp: Any, t: Array, x: Array, y: Array, out: Array) -> Array:
    near = applied(near_pairs, xp)(x, y, out)
    return _over(xp, applied(projected_differences, xp)(t, x, y, near), out)


def _cdist_jvp_y(xp: Any, t: Array, x: Array, y: Array, out: Array) -> Array:
    near = _transposed(xp, applied(near_pairs, xp)(x, y, out))
    slopes = applied(projected_differences, xp)(t, y, x, near)
    return _over(xp, _transposed(xp, slopes), out)


cdist: Primitive = general(
    "cdist",
    _cdist,
    vjp=(_cdist_x, _cdist_y),
    jvp=(_cdist_jvp_x, _cdist_jvp_y),
    broadcasts=False,
)

# --- Σ_j w_ij (x_i - y_j) and u_i · (x_i - y_j), each the adjoint of the other --------------------


def _summed(xp: Any, w: Array, x: Array, y: Array, near: Array) -> Array:
    if _is_few(x, y):
        d = _differences(x, y)
        return xp.sum(w[..., None] * d, axis=(d.ndim - 2,))
    if _is_flat(x):
        columns = [xp.sum(w * d, axis=(w.ndim - 1,)) for d in _by_dimension(x, y)]
        return xp.stack(columns, axis=-1)
    far = xp.masked(w, xp.logical_not(near))
    a, b = _centred(xp, x, y)
    out = xp.sum(far, axis=(far.ndim - 1,), keepdims=True) * a - xp.matmul(far, b)
    weights, rows, others = xp.reshape(w, (-1,)), _rows(xp, x), _rows(xp, y)
    for block, i, j in _pairs(xp, near, x.shape[-1]):
        d = xp.take(rows, i, axis=0) - xp.take(others, j, axis=0)
        d = xp.take(weights, block, axis=0)[:, None] * d
        out = out + xp.reshape(xp.index_add(d, shape=rows.shape, key=i), x.shape)
    return out


def _projected(xp: Any, u: Array, x: Array, y: Array, near: Array) -> Array:
    if _is_few(x, y):
        d = _differences(x, y)
        return xp.sum(u[..., None, :] * d, axis=(d.ndim - 1,))
    if _is_flat(x):
        steps = enumerate(_by_dimension(x, y))
        return _total(u[..., m, None] * d for m, d in steps)
    a, b = _centred(xp, x, y)
    own = xp.sum(u * a, axis=(u.ndim - 1,), keepdims=True)
    return _corrected(xp, own - xp.matmul(u, _transposed(xp, b)), near, x, y, u)


def _weighted_rows(xp: Any, w: Array, u: Array) -> Array:
    return xp.sum(w, axis=(w.ndim - 1,), keepdims=True) * u


def _minus_columns(xp: Any, w: Array, u: Array) -> Array:
    return -xp.matmul(_transposed(xp, w), u)


def _minus_products(xp: Any, w: Array, t: Array) -> Array:
    return -xp.matmul(w, t)


def _minus_angles(xp: Any, u: Array, t: Array) -> Array:
    return -xp.matmul(u, _transposed(xp, t))


def _own_rows(xp: Any, g: Array, u: Array, near_shape: tuple[int, ...]) -> Array:
    # The shape is what forward mode needs, and it gets what this rule asks for.
    return _weighted_rows(xp, xp.broadcast_to(g, near_shape), u)


def _own_angles(xp: Any, t: Array, u: Array, near_shape: tuple[int, ...]) -> Array:
    return xp.broadcast_to(xp.sum(u * t, axis=(u.ndim - 1,), keepdims=True), near_shape)


summed_differences: Primitive = general(
    "summed_differences",
    _summed,
    vjp=(
        lambda xp, g, x, y, near: applied(projected_differences, xp)(g, x, y, near),
        lambda xp, g, w: _weighted_rows(xp, w, g),
        lambda xp, g, w: _minus_columns(xp, w, g),
        None,
    ),
    jvp=(
        lambda xp, t, x, y, near: applied(summed_differences, xp)(t, x, y, near),
        lambda xp, t, w: _weighted_rows(xp, w, t),
        lambda xp, t, w: _minus_products(xp, w, t),
        None,
    ),
    label="CdistBackwardBackward0",
    broadcasts=False,
)

projected_differences: Primitive = general(
    "projected_differences",
    _projected,
    vjp=(
        lambda xp, g, x, y, near: applied(summed_differences, xp)(g, x, y, near),
        _own_rows,
        lambda xp, g, u: _minus_columns(xp, g, u),
        None,
    ),
    jvp=(
        lambda xp, t, x, y, near: applied(projected_differences, xp)(t, x, y, near),
        _own_angles,
        lambda xp, t, u: _minus_angles(xp, u, t),
        None,
    ),
    broadcasts=False,
)
