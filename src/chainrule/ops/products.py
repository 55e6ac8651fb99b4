"""Tensor, inner, cross and Kronecker products, and distances of points."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from chainrule.arguments import Operand, cast, one_dim, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import dtype_title, promoted
from chainrule.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from chainrule.interrupts import errstate
from chainrule.operation import operation
from chainrule.ops.complex import conj
from chainrule.ops.einsum import contract_pair, einsum
from chainrule.ops.where import where
from chainrule.ops.wrappers import reshape_result
from chainrule.primitives import contraction, distances, elementwise, indexing, reductions, shaping

__all__ = [
    "tensordot",
    "inner",
    "vecdot",
    "vdot",
    "cross",
    "kron",
    "bilinear",
    "cdist",
    "pdist",
]

Axes = Any  # an int, two of them, or two sequences of ints


def _promoted_pair(x: Operand, y: Operand) -> tuple[Tensor, Tensor]:
    """Return two operands as tensors of their promoted dtype."""
    left, right = tensor_of(x), tensor_of(y)
    if left.dtype == right.dtype:
        return left, right
    dtype = promoted(left.dtype, right.dtype)
    return cast(left, dtype), cast(right, dtype)


@operation(
    method=False, numpy=("tensordot a b axes=", "linalg.tensordot x1 x2 axes="), array_api=True
)
def tensordot(a: Operand, b: Operand, dims: Axes = None, *, axes: Axes = None) -> Tensor:
    """Return the product of two tensors, summed over pairs of their dimensions.

    Parameters
    ----------
    a, b : Tensor
        Their dtypes are promoted.
    dims : int, or two sequences of ints, default 2
        The number of dimensions to sum over, the last ones of `a` and the first ones of `b`; or
        those of `a` and those of `b`, in pairs. Also spelled `axes`.

    Returns
    -------
    Tensor
        The remaining dimensions of `a`, then those of `b`.

    Raises
    ------
    ShapeError
        If the sizes in a pair differ and neither is 1, or a tensor has fewer dimensions.

    Notes
    -----
    Derivatives: products of the gradient and the other tensor, summed over the dimensions of the
    other tensor that were not summed over before.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tensordot(cr.ones(2, 3, 4), cr.ones(3, 4, 5)).shape
    (2, 5)
    >>> cr.tensordot(cr.ones(2, 3), cr.ones(4, 2), dims=([0], [1])).shape
    (3, 4)
    """
    if axes is not None and dims is not None:
        raise ArgumentTypeError("dims and axes are two names of one argument: give one of them")
    left, right = _promoted_pair(a, b)
    wanted = axes if dims is None else dims
    x_dims, y_dims = _contracted_dims(left, right, 2 if wanted is None else wanted)
    labels = list(range(left.ndim + right.ndim))
    for i, j in zip(x_dims, y_dims, strict=True):
        n, m = left.shape[i], right.shape[j]
        if n != m:
            if 1 not in (n, m):
                raise ShapeError(
                    "tensordot: contracted dimensions need to match, but first has size "
                    f"{n} in dim {i} and second has size {m} in dim {j}"
                )
            # A dimension of size 1 broadcasts: the other tensor's elements are summed first.
            left = left if n == 1 else _sum_axis(left, i, True)
            right = right if m == 1 else _sum_axis(right, j, True)
        labels[left.ndim + j] = labels[i]
    x_labels, y_labels = tuple(labels[: left.ndim]), tuple(labels[left.ndim :])
    out = [label for i, label in enumerate(x_labels) if i not in x_dims]
    out += [label for j, label in enumerate(y_labels) if j not in y_dims]
    return contract_pair(left, right, x_labels, y_labels, tuple(out))


def _contracted_dims(x: Tensor, y: Tensor, dims: Axes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dimensions of both tensors to sum over, counted from the front."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if not isinstance(dims, Sequence):
        count = index(dims)
        if count < 0:
            raise ArgumentError(f"tensordot expects dims >= 0, but got dims={count}")
        if count > min(x.ndim, y.ndim):
            raise ShapeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={count} for tensors of "
                f"{x.ndim} and {y.ndim} dimensions"
            )
        return tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    if len(dims) != 2:
        raise ArgumentError(f"tensordot: dims must be an int or a pair of sequences, got {dims!r}")
    first, second = [tuple(d) if isinstance(d, Sequence) else (d,) for d in dims]
    if len(first) != len(second):
        raise ArgumentError(
            "tensordot: both dimension lists should have same length, but got "
            f"{len(first)} and {len(second)}"
        )
    x_dims = tuple([one_dim(d, x.ndim) for d in first])
    y_dims = tuple([one_dim(d, y.ndim) for d in second])
    if len(set(x_dims)) < len(x_dims) or len(set(y_dims)) < len(y_dims):
        raise ArgumentError(f"tensordot: dims {dims!r} repeats a dimension: each can appear once")
    return x_dims, y_dims


@operation()
def inner(input: Operand, other: Operand) -> Tensor:
    """Return the products of two tensors, summed over the last dimension of both.

    Parameters
    ----------
    input : Tensor, shape (..., k)
    other : Tensor, shape (..., k)
        y: a 0-d tensor multiplies all elements of the other.

    Returns
    -------
    Tensor
        The remaining dimensions of `input`, then those of `other`. Nothing is conjugated.

    Raises
    ------
    ShapeError
        If the last dimensions differ.

    Notes
    -----
    Derivatives: as for `tensordot`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.inner(cr.tensor([1.0, 2.0]), cr.tensor([[3.0, 4.0], [5.0, 6.0]]))
    tensor([11., 17.])
    """
    left, right = _promoted_pair(input, other)
    if left.ndim == 0 or right.ndim == 0:
        return elementwise.multiply.apply(left, right)
    if left.shape[-1] != right.shape[-1]:
        raise ShapeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(left.shape)} and {list(right.shape)}"
        )
    return tensordot(left, right, ([-1], [-1]))


@operation(method=False, ufunc="vecdot")
def vecdot(x: Operand, y: Operand, /, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Return the inner products of the vectors along a dimension.

    Parameters
    ----------
    x, y : Tensor, shapes (..., k, ...) that broadcast
    dim : int, default -1
        The dimension of the vectors, counted after broadcasting. Also spelled `axis`.

    Returns
    -------
    Tensor, shape (...)
        Σ conj(x) y.

    Raises
    ------
    ShapeError
        If the shapes don't broadcast.

    Notes
    -----
    Derivatives: y for conj(x), conj(x) for y.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.vecdot(cr.tensor([[1.0, 2.0], [3.0, 4.0]]), cr.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    left, right = _promoted_pair(x, y)
    left, right = _same_ndim(conj(left), right)
    number = one_dim(_dim_or_axis(dim, axis, -1), left.ndim) if left.ndim else 0
    if left.shape != right.shape or not left.ndim:
        product = elementwise.multiply.apply(left, right)
        return _sum_axis(product, number, False) if left.ndim else product
    labels = tuple(range(left.ndim))
    return contract_pair(left, right, labels, labels, (*labels[:number], *labels[number + 1 :]))


def _sum_axis(x: Tensor, axis: int, keepdims: bool) -> Tensor:
    """Return the sum along an axis in the dtype of `x`, integers included, as `matmul` does."""
    return cast(reductions.sum.apply(x, axis=(axis,), keepdims=keepdims), x.dtype)


def _dim_or_axis(dim: int | None, axis: int | None, default: int) -> int:
    """Return the dimension that was given by one of its two names, or the default."""
    if dim is not None and axis is not None:
        raise ArgumentTypeError("dim and axis are two names of one argument: give one of them")
    return next((d for d in (dim, axis) if d is not None), default)


def _same_ndim(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return both with the same number of dimensions, new ones of size 1 in front."""
    ndim = max(x.ndim, y.ndim)
    return _with_ndim(x, ndim), _with_ndim(y, ndim)


def _with_ndim(x: Tensor, ndim: int) -> Tensor:
    if x.ndim == ndim:
        return x
    return shaping.reshape.apply(x, shape=(1,) * (ndim - x.ndim) + x.shape)


@operation()
def vdot(input: Operand, other: Operand) -> Tensor:
    """Return the inner product Σ conj(x) y of two vectors.

    Parameters
    ----------
    input : Tensor, shape (n,)
    other : Tensor, shape (n,)
        y: of the dtype of `input`.

    Returns
    -------
    Tensor, shape ()

    Raises
    ------
    ShapeError
        If they are not vectors, or of different lengths.
    DTypeError
        If their dtypes differ.

    Notes
    -----
    Derivatives: y for conj(x), conj(x) for y.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.vdot(cr.tensor([1j, 2.0]), cr.tensor([1j, 3.0]))
    tensor(7.+0.j)
    """
    left, right = tensor_of(input), tensor_of(other)
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(
            f"vdot: 1D tensors expected, but got {left.ndim}D and {right.ndim}D tensors"
        )
    if left.dtype != right.dtype:
        raise DTypeError(
            f"vdot: expected both vectors to have same dtype, but found {left.dtype} and "
            f"{right.dtype}: vecdot promotes"
        )
    return contraction.matmul.apply(conj(left), right)


@operation()
def cross(
    input: Operand, other: Operand, dim: int | None = None, *, axis: int | None = None
) -> Tensor:
    """Return the cross products of vectors of three elements.

    Parameters
    ----------
    input, other : Tensor, shapes (..., 3, ...) that broadcast
    dim : int, optional
        The dimension of the vectors, counted after broadcasting. Also spelled `axis`. As in
        PyTorch, the first one of size 3 if left out.

    Returns
    -------
    Tensor, shape (..., 3, ...)
        Nothing is conjugated.

    Raises
    ------
    ShapeError
        If the size of that dimension is not 3, or the shapes don't broadcast.

    Notes
    -----
    Derivatives: y × g for x and g × x for y, where g is the gradient of the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cross(cr.tensor([1.0, 0.0, 0.0]), cr.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    left, right = _same_ndim(*_promoted_pair(input, other))
    sizes = [max(n, m) for n, m in zip(left.shape, right.shape, strict=True)]
    number = _dim_or_axis(dim, axis, sizes.index(3) if 3 in sizes else left.ndim)
    if number == left.ndim:
        raise ShapeError(
            f"cross: no dimension of size 3 in input: got shapes {list(left.shape)} and "
            f"{list(right.shape)}"
        )
    number = one_dim(number, left.ndim)
    if left.shape[number] != 3 or right.shape[number] != 3:
        raise ShapeError(
            f"cross: inputs dimension {number} must have length 3. Got {left.shape[number]} and "
            f"{right.shape[number]}"
        )
    return contraction.cross.apply(left, right, axis=number - left.ndim)


@operation(numpy="kron a b")
def kron(input: Operand, other: Operand) -> Tensor:
    """Return the Kronecker product: the blocks ``input[i, j, ...] * other``.

    Parameters
    ----------
    input, other : Tensor
        x and y: their dtypes are promoted; the one of fewer dimensions gets new ones in front.

    Returns
    -------
    Tensor
        Its sizes are the products of those of `input` and `other`, dimension by dimension.

    Notes
    -----
    Derivatives: the gradient times the other tensor, summed over the other's elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.kron(cr.tensor([[1.0, 2.0]]), cr.ones(2, 2))
    tensor([[1., 1., 2., 2.],
            [1., 1., 2., 2.]])
    """
    left, right = _same_ndim(*_promoted_pair(input, other))
    pairs = list(zip(left.shape, right.shape, strict=True))
    rows = shaping.reshape.apply(left, shape=tuple([size for n, _ in pairs for size in (n, 1)]))
    blocks = shaping.reshape.apply(right, shape=tuple([size for _, m in pairs for size in (1, m)]))
    product = elementwise.multiply.apply(rows, blocks)
    return reshape_result(product, tuple([n * m for n, m in pairs]))


def bilinear(x: Operand, y: Operand, /, weight: Operand, bias: Operand | None = None) -> Tensor:
    """Return xᵀ A y + bias for each of several matrices A.

    Parameters
    ----------
    x : Tensor, shape (..., m)
    y : Tensor, shape (..., n)
        Of the same shape except for its last dimension.
    weight : Tensor, shape (k, m, n)
        The matrices.
    bias : Tensor, shape (k,), optional

    Returns
    -------
    Tensor, shape (..., k)

    Raises
    ------
    ShapeError
        If the shapes don't match.

    Notes
    -----
    Derivatives: those of `einsum`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bilinear(cr.tensor([1.0, 2.0]), cr.tensor([3.0, 4.0]), cr.ones(1, 2, 2))
    tensor([21.])
    """
    left, right, matrices = tensor_of(x), tensor_of(y), tensor_of(weight)
    for position, (tensor, size) in enumerate(zip((left, right), matrices.shape[1:], strict=False)):
        if tensor.shape[-1:] != (size,):
            raise ShapeError(
                f"bilinear(): input{position + 1} size does not match weight size: got "
                f"{list(tensor.shape[-1:])} but expected {size}"
            )
    if matrices.ndim != 3 or left.shape[:-1] != right.shape[:-1]:
        raise ShapeError(
            "bilinear(): input batch dimensions do not match, or the weight is not of shape "
            f"(k, m, n): got {list(left.shape)}, {list(right.shape)} and {list(matrices.shape)}"
        )
    product = einsum("...m,kmn,...n->...k", left, matrices, right)
    return product if bias is None else elementwise.add.apply(product, bias)


# --- distances of pairs of points -----------------------------------------------------------------

_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def cdist(
    x1: Operand,
    x2: Operand,
    p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Return the distances of all pairs of points of two sets.

    Parameters
    ----------
    x1 : Tensor, shape (..., m, k), real
        Points are rows.
    x2 : Tensor, shape (..., n, k), real
    p : float, default 2.0
        The distance is the p-norm of the difference: 2 for the Euclidean distance, 1 for the sum
        of magnitudes, inf for the largest, 0 for the number of coordinates that differ.
    compute_mode : str, optional
        As in PyTorch: "donot_use_mm_for_euclid_dist" avoids matrix products, which is slower.
        Pairs that nearly coincide are computed from their differences in any mode.

    Returns
    -------
    Tensor, shape (..., m, n)
        Stacks of sets broadcast.

    Raises
    ------
    ShapeError
        If the points have different dimensions, or the stacks don't broadcast.
    DTypeError
        If the dtype is not real floating.
    ArgumentError
        If p is negative, or `compute_mode` is unknown.

    Notes
    -----
    Derivative for p = 2: the unit vector from y to x, and 0 where both coincide. For other p the
    differences of all pairs are held in memory; the derivative where coordinates coincide is 0, and
    for p = inf it is divided evenly among equal largest differences, as by `amax` (PyTorch gives
    each of them the full derivative).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cdist(cr.tensor([[0.0, 0.0]]), cr.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[5., 0.]])
    """
    left, right = _points("cdist", x1, "X1"), _points("cdist", x2, "X2")
    if left.shape[-1] != right.shape[-1]:
        raise ShapeError(
            "cdist: X1 and X2 must have the same number of columns. X1: "
            f"{left.shape[-1]} X2: {right.shape[-1]}"
        )
    _check_exponent("cdist", p)
    if compute_mode is not None and compute_mode not in _MODES:
        raise ArgumentError(
            f"cdist: {compute_mode!r} is not a valid value for compute_mode: {', '.join(_MODES)}"
        )
    dtype = promoted(left.dtype, right.dtype)
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype
    left, right = cast(left, wide), cast(right, wide)
    if p == 2:
        left, right = _broadcast_stacks(left, right)
        apply = errstate(invalid="ignore")(distances.cdist.apply)  # infinite ones are recomputed
        d = apply(left, right, direct=compute_mode == _MODES[2])
        return cast(d, dtype)
    return cast(_pnorm_distances(left, right, p), dtype)


def _points(name: str, x: Operand, argument: str) -> Tensor:
    """Return points as a tensor, which must be real floating and have two dimensions or more."""
    points = tensor_of(x)
    if points.dtype.kind != "f":
        raise DTypeError(
            f"{name} only supports floating-point dtypes, {argument} got: "
            f"{dtype_title(points.dtype)}"
        )
    if points.ndim < 2:
        raise ShapeError(
            f"{name} only supports at least 2D tensors, {argument} got: {points.ndim}D"
        )
    return points


def _check_exponent(name: str, p: float) -> None:
    if not p >= 0:
        raise ArgumentError(f"{name} only supports non-negative p values, got {p}")


def _broadcast_stacks(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return two stacks of sets of points, broadcast to each other."""
    if x.shape[:-2] == y.shape[:-2]:
        return x, y
    try:
        stacks = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise ShapeError(
            f"cdist: stacks of shapes {list(x.shape[:-2])} and {list(y.shape[:-2])} don't "
            "broadcast: their sizes must be equal or 1"
        ) from None
    left, right = [shaping.broadcast_to.apply(t, shape=(*stacks, *t.shape[-2:])) for t in (x, y)]
    return left, right


_MIN_PAIRS = 2**14
"""Number of pairs from which p-norms are summed one coordinate after the other."""
_MAX_DIMENSIONS = 4
"""Largest number of coordinates for which that is faster."""


def _pnorm_distances(x: Tensor, y: Tensor, p: float) -> Tensor:
    """Return the p-norms of all differences, for p other than 2, with derivative 0 at zeros."""
    (m, k), n = x.shape[-2:], y.shape[-2]
    if 0 < k <= _MAX_DIMENSIONS and p != math.inf and m * n >= _MIN_PAIRS:
        pairs = zip(_coordinates(x, (m, 1)), _coordinates(y, (1, n)), strict=True)
        parts = [_pnorm_terms(elementwise.subtract.apply(a, b), p) for a, b in pairs]
        total: Tensor = functools.reduce(elementwise.add.apply, parts)
        return total if p in (0, 1) else _power(total, 1 / p)
    rows = shaping.reshape.apply(x, shape=(*x.shape[:-1], 1, k))
    columns = shaping.reshape.apply(y, shape=(*y.shape[:-2], 1, n, k))
    d = elementwise.subtract.apply(rows, columns)
    last = (d.ndim - 1,)
    if p == math.inf and k:
        return reductions.max.apply(elementwise.abs.apply(d), axis=last, keepdims=False)
    total = reductions.sum.apply(_pnorm_terms(d, p), axis=last, keepdims=False)
    return total if p in (0, 1) else _power(total, 1 / p)


def _coordinates(x: Tensor, shape: tuple[int, int]) -> list[Tensor]:
    """Return the coordinates of all points, one tensor for each dimension."""
    parts = shaping.unbind.apply(x, axis=x.ndim - 1)
    return [shaping.reshape.apply(part, shape=(*x.shape[:-2], *shape)) for part in parts]


def _pnorm_terms(d: Tensor, p: float) -> Tensor:
    """Return the terms whose sum is the p-th power of the p-norm."""
    sizes = elementwise.abs.apply(d)
    if p == 1:
        return sizes
    return elementwise.sign.apply(sizes) if p == 0 else _power(sizes, p)


def _power(x: Tensor, p: float) -> Tensor:
    """Return powers of non-negative numbers; at 0 the value and the derivative are 0."""
    zero = elementwise.equal.apply(x, 0)
    powers = elementwise.pow.apply(where(zero, 1.0, x), p)
    return elementwise.masked.apply(powers, elementwise.logical_not.apply(zero))


def pdist(input: Operand, p: float = 2.0) -> Tensor:
    """Return the distances of all pairs of points of one set.

    Parameters
    ----------
    input : Tensor, shape (n, k), real
        Points are rows.
    p : float, default 2.0
        As for `cdist`.

    Returns
    -------
    Tensor, shape (n (n - 1) / 2,)
        In the order (0, 1), (0, 2), …, (1, 2), ….

    Raises
    ------
    ShapeError
        If `input` is not a matrix.
    DTypeError
        If the dtype is not real floating.
    ArgumentError
        If p is negative.

    Notes
    -----
    Derivatives: as for `cdist`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.pdist(cr.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
    tensor([5., 3., 4.])
    """
    points = _points("pdist", input, "x")
    if points.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {points.ndim}D")
    _check_exponent("pdist", p)
    n = points.shape[0]
    rows, columns = np.triu_indices(n, 1)
    square = reshape_result(cdist(points, points, p), (n * n,))
    return indexing.index.apply(square, key=rows * n + columns)
