"""Products that sum over shared axes."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from chainrule.primitives.primitive import Primitive, applied, general, is_complex, use_kernel

Array = Any
Labels = tuple[int, ...]


def _swap(xp: Any, x: Array) -> Array:
    return x.T if x.ndim == 2 else xp.matrix_transpose(x)


def _matmul_x(xp: Any, g: Array, y: Array, x_ndim: int) -> Array:
    # A vector is a row on the left and a column on the right of a product.
    if y.ndim == 1:
        return g * y if x_ndim == 1 else xp.expand_dims(g, axis=-1) * y
    if x_ndim == 1 and y.ndim > 2:
        return xp.squeeze(xp.matmul(xp.expand_dims(g, axis=-2), _swap(xp, y)), axis=-2)
    return xp.matmul(g, _swap(xp, y))


def _matmul_y(xp: Any, g: Array, x: Array, y_ndim: int, y_transposed: bool) -> Array:
    if x.ndim == 1:
        return g * x if y_ndim == 1 else xp.expand_dims(x, axis=-1) * xp.expand_dims(g, axis=-2)
    if y_ndim <= 2 < x.ndim:
        # The rows of all matrices of the stack: one product, which sums over the stack.
        rows = math.prod(x.shape[:-1])
        g = xp.reshape(g, (rows, *g.shape[x.ndim - 1 :]))
        x = xp.reshape(x, (rows, x.shape[-1]))
    if y_ndim == 1:
        return xp.matmul(_swap(xp, x), xp.expand_dims(g, axis=-1))[..., 0]
    if y_transposed:  # so that a weight that is used transposed gets a gradient in its own order
        return _swap(xp, xp.matmul(_swap(xp, g), x))
    return xp.matmul(_swap(xp, x), g)


matmul = general(
    "matmul",
    None,
    vjp=(_matmul_x, _matmul_y),
    jvp=(lambda xp, t, y: xp.matmul(t, y), lambda xp, t, x: xp.matmul(x, t)),
    label="MmBackward0",
    broadcasts=False,
    form="binary",
    series="product",
)


# --- general contraction of two arrays, by axis labels --------------------------------------------


class _Layout(NamedTuple):
    """Layout of a contraction as a matrix product: order of the axes, and the count of each kind.

    `present` tells which output axes each operand has.
    """

    x_axes: Labels
    y_axes: Labels
    batch: int
    rows: int
    summed: int
    out_axes: Labels
    present: tuple[tuple[bool, ...], tuple[bool, ...]]


@functools.lru_cache(maxsize=1024)
def _layout(x: Labels, y: Labels, out: Labels) -> _Layout:
    """Return the layout for axis labels, each in two or three of `x`, `y` and `out`."""
    batch = tuple([label for label in out if label in x and label in y])
    rows = tuple([label for label in x if label not in y])
    columns = tuple([label for label in y if label not in x])
    summed = tuple([label for label in x if label not in out])
    present = tuple([label in x for label in out]), tuple([label in y for label in out])
    if not summed:  # a broadcast product, whose axes are in the order of the output
        x_axes = tuple([x.index(label) for label in out if label in x])
        y_axes = tuple([y.index(label) for label in out if label in y])
        return _Layout(x_axes, y_axes, len(batch), len(rows), 0, tuple(range(len(out))), present)
    product = (*batch, *rows, *columns)
    return _Layout(
        tuple([x.index(label) for label in (*batch, *rows, *summed)]),
        tuple([y.index(label) for label in (*batch, *summed, *columns)]),
        len(batch),
        len(rows),
        len(summed),
        tuple([product.index(label) for label in out]),
        present,
    )


def _insert_axes(xp: Any, x: Array, present: tuple[bool, ...]) -> Array:
    """Return `x` with axes of length 1 for the output axes that it lacks."""
    sizes = iter(x.shape)
    return (
        x
        if all(present)
        else xp.reshape(x, tuple([next(sizes) if mine else 1 for mine in present]))
    )


def _permute(xp: Any, x: Array, axes: Labels) -> Array:
    return x if axes == tuple(range(x.ndim)) else xp.permute_dims(x, axes)


def _contract(
    xp: Any, x: Array, y: Array, *, x_labels: Labels, y_labels: Labels, out_labels: Labels
) -> Array:
    layout = _layout(x_labels, y_labels, out_labels)
    x, y = _permute(xp, x, layout.x_axes), _permute(xp, y, layout.y_axes)
    if layout.summed == 0:
        return _insert_axes(xp, x, layout.present[0]) * _insert_axes(xp, y, layout.present[1])
    middle, end = layout.batch + layout.rows, layout.batch + layout.summed
    batch, rows, columns = x.shape[: layout.batch], x.shape[layout.batch : middle], y.shape[end:]
    inner = math.prod(x.shape[middle:])
    if layout.summed > 1 or layout.rows != 1:
        x = xp.reshape(x, (*batch, math.prod(rows), inner) if rows else (*batch, inner))
    if layout.summed > 1 or len(columns) != 1:
        y = xp.reshape(y, (*batch, inner, math.prod(columns)) if columns else (*batch, inner))
    product = _batched_product(xp, x, y, bool(rows), bool(columns), layout.batch > 0)
    if len(rows) > 1 or len(columns) > 1:
        product = xp.reshape(product, (*batch, *rows, *columns))
    return _permute(xp, product, layout.out_axes)


def _batched_product(xp: Any, x: Array, y: Array, rows: bool, columns: bool, batch: bool) -> Array:
    """Return the product of stacks of matrices; without rows or columns, of vectors."""
    if not batch or (rows and columns):
        return xp.matmul(x, y)
    if rows:
        return xp.squeeze(xp.matmul(x, xp.expand_dims(y, axis=-1)), axis=-1)
    if columns:
        return xp.squeeze(xp.matmul(xp.expand_dims(x, axis=-2), y), axis=-2)
    return xp.vecdot(xp.conj(x) if is_complex(x) else x, y)


def _contract_x(
    xp: Any, g: Array, y: Array, *, x_labels: Labels, y_labels: Labels, out_labels: Labels
) -> Array:
    return applied(contract, xp)(g, y, x_labels=out_labels, y_labels=y_labels, out_labels=x_labels)


def _contract_y(
    xp: Any, g: Array, x: Array, *, x_labels: Labels, y_labels: Labels, out_labels: Labels
) -> Array:
    return applied(contract, xp)(x, g, x_labels=x_labels, y_labels=out_labels, out_labels=y_labels)


def _contract_jvp_x(
    xp: Any, t: Array, y: Array, *, x_labels: Labels, y_labels: Labels, out_labels: Labels
) -> Array:
    return applied(contract, xp)(t, y, x_labels=x_labels, y_labels=y_labels, out_labels=out_labels)


def _contract_jvp_y(
    xp: Any, t: Array, x: Array, *, x_labels: Labels, y_labels: Labels, out_labels: Labels
) -> Array:
    return applied(contract, xp)(x, t, x_labels=x_labels, y_labels=y_labels, out_labels=out_labels)


contract: Primitive = general(
    "contract",
    _contract,
    vjp=(_contract_x, _contract_y),
    jvp=(_contract_jvp_x, _contract_jvp_y),
    label="BmmBackward0",
    broadcasts=False,
    series="product",
)

# --- cross products: det(g, x, y) is invariant under cyclic permutation of its columns ------------


@use_kernel
def _cross(xp: Any, x: Array, y: Array, *, axis: int) -> Array:
    return xp.linalg.cross(x, y, axis=axis)


cross: Primitive = general(
    "cross",
    lambda xp, x, y, *, axis: _cross(xp, x, y, axis=axis),
    vjp=(
        lambda xp, g, y, *, axis: applied(cross, xp)(y, g, axis=axis),
        lambda xp, g, x, *, axis: applied(cross, xp)(g, x, axis=axis),
    ),
    jvp=(
        lambda xp, t, y, *, axis: applied(cross, xp)(t, y, axis=axis),
        lambda xp, t, x, *, axis: applied(cross, xp)(x, t, axis=axis),
    ),
    label="LinalgCrossBackward0",
    series="product",
)
