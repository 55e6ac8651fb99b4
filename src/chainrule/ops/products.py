"""Products of tensors of any number of dimensions, and of vectors along one."""

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
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.operation import operation
from chainrule.ops.complex import conj
from chainrule.ops.einsum import einsum, pair
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


def _both(x: Operand, y: Operand) -> tuple[Tensor, Tensor]:
    """Return two operands as tensors of one dtype."""
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
        Of dtypes that promote.
    dims : int, or two sequences of ints, default 2
        The number of dimensions to sum over, the last ones of `a` and the first ones of `b`; or
        those of `a` and those of `b`, in pairs. Also spelled `axes`.

    Returns
    -------
    Tensor
        The other dimensions of `a`, then those of `b`.

    Raises
    ------
    ShapeError
        If the sizes in a pair differ, neither being 1, or there are not so many dimensions.

    Notes
    -----
    Derivatives: products of the gradient and the other tensor, over the other's own dimensions.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tensordot(cr.ones(2, 3, 4), cr.ones(3, 4, 5)).shape
    (2, 5)
    >>> cr.tensordot(cr.ones(2, 3), cr.ones(4, 2), dims=([0], [1])).shape
    (3, 4)
    """
    if axes is not None and dims is not None:
        raise TypeError("dims and axes are two names of one argument: give one of them")
    left, right = _both(a, b)
    wanted = axes if dims is None else dims
    x_dims, y_dims = _dims_of(left, right, 2 if wanted is None else wanted)
    labels = list(range(left.ndim + right.ndim))
    for i, j in zip(x_dims, y_dims, strict=True):
        n, m = left.shape[i], right.shape[j]
        if n != m:
            if 1 not in (n, m):
                raise ShapeError(
                    "tensordot: contracted dimensions need to match, but first has size "
                    f"{n} in dim {i} and second has size {m} in dim {j}"
                )
            # A dimension of size 1 stands for any: the other tensor's elements are summed first.
            left = left if n == 1 else _summed(left, i, True)
            right = right if m == 1 else _summed(right, j, True)
        labels[left.ndim + j] = labels[i]
    x_labels, y_labels = tuple(labels[: left.ndim]), tuple(labels[left.ndim :])
    out = [label for i, label in enumerate(x_labels) if i not in x_dims]
    out += [label for j, label in enumerate(y_labels) if j not in y_dims]
    return pair(left, right, x_labels, y_labels, tuple(out))


def _dims_of(x: Tensor, y: Tensor, dims: Axes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dimensions of both to sum over, counted from the front."""
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
        raise ArgumentError(
            f"tensordot: dims {dims!r} names a dimension twice: each can appear once"
        )
    return x_dims, y_dims


@operation()
def inner(input: Operand, other: Operand) -> Tensor:
    """Return the products of two tensors, summed over the last dimension of both.

    Parameters
    ----------
    input : Tensor, shape (..., k)
    other : Tensor, shape (..., k)
        y: a single number multiplies all elements of the other.

    Returns
    -------
    Tensor
        The other dimensions of `input`, then those of `other`. Nothing is conjugated.

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
    left, right = _both(input, other)
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
    """Return the inner products of vectors that lie along a dimension.

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
    left, right = _both(x, y)
    left, right = _same_ndim(conj(left), right)
    number = one_dim(_chosen(dim, axis, -1), left.ndim) if left.ndim else 0
    if left.shape != right.shape or not left.ndim:
        product = elementwise.multiply.apply(left, right)
        return _summed(product, number, False) if left.ndim else product
    labels = tuple(range(left.ndim))
    return pair(left, right, labels, labels, (*labels[:number], *labels[number + 1 :]))


def _summed(x: Tensor, axis: int, keepdims: bool) -> Tensor:
    """Return the sum along an axis in the dtype of `x`: integers stay narrow, as in `matmul`."""
    return cast(reductions.sum.apply(x, axis=(axis,), keepdims=keepdims), x.dtype)


def _chosen(dim: int | None, axis: int | None, default: int) -> int:
    if dim is not None and axis is not None:
        raise TypeError("dim and axis are two names of one argument: give one of them")
    return next((d for d in (dim, axis) if d is not None), default)


def _same_ndim(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return both with as many dimensions, new ones of size 1 in front."""
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
        If they are no vectors, or of different lengths.
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
        PyTorch, the first one of size 3 if left out: name it.

    Returns
    -------
    Tensor, shape (..., 3, ...)
        Nothing is conjugated.

    Raises
    ------
    ShapeError
        If that dimension has another size in one of them, or the shapes don't broadcast.

    Notes
    -----
    Derivatives: y × g for x and g × x for y, where g is the gradient of the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cross(cr.tensor([1.0, 0.0, 0.0]), cr.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    left, right = _same_ndim(*_both(input, other))
    sizes = [max(n, m) for n, m in zip(left.shape, right.shape, strict=True)]
    number = _chosen(dim, axis, sizes.index(3) if 3 in sizes else left.ndim)
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
    """Return the Kronecker product: each element of `input` times the whole of `other`.

    Parameters
    ----------
    input, other : Tensor
        x and y: of dtypes that promote; the one of fewer dimensions gets new ones in front.

    Returns
    -------
    Tensor
        The products of the sizes of `input` and `other`, dimension by dimension.

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
    left, right = _same_ndim(*_both(input, other))
    pairs = list(zip(left.shape, right.shape, strict=True))
    rows = shaping.reshape.apply(left, shape=tuple([size for n, _ in pairs for size in (n, 1)]))
    whole = shaping.reshape.apply(right, shape=tuple([size for _, m in pairs for size in (1, m)]))
    product = elementwise.multiply.apply(rows, whole)
    return reshape_result(product, tuple([n * m for n, m in pairs]))


def bilinear(x: Operand, y: Operand, /, weight: Operand, bias: Operand | None = None) -> Tensor:
    """Return xᵀ A y + bias for each of several matrices A.

    Parameters
    ----------
    x : Tensor, shape (..., m)
    y : Tensor, shape (..., n)
        Of the same shape but for its last dimension.
    weight : Tensor, shape (k, m, n)
        The matrices.
    bias : Tensor, shape (k,), optional

    Returns
    -------
    Tensor, shape (..., k)

    Raises
    ------
    ShapeError
        If the shapes don't fit.

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


# --- distances ------------------------------------------------------------------------------------
#
# Distances of all points from each other.

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
    """Return the distance of each point of one set from each of another.

    Parameters
    ----------
    x1 : Tensor, shape (..., m, k), real
        Points are rows.
    x2 : Tensor, shape (..., n, k), real
    p : float, default 2.0
        The distance is the p-norm of the difference: 2 for Euclid's, 1 for the sum of magnitudes,
        inf for the largest, 0 for the number of coordinates that differ.
    compute_mode : str, optional
        PyTorch's: "donot_use_mm_for_euclid_dist" takes no matrix products, which is slower.
        Pairs that nearly coincide are computed by their differences in any mode.

    Returns
    -------
    Tensor, shape (..., m, n)
        Stacks of sets broadcast.

    Raises
    ------
    ShapeError
        If the points have different dimensions, or the stacks don't broadcast.
    DTypeError
        If the numbers are complex, or no floats.
    ArgumentError
        If p is negative, or there is no such `compute_mode`.

    Notes
    -----
    Derivative for p = 2: the unit vector from y to x, and 0 where both coincide. For other p the
    differences of all pairs are held in memory; their derivative where coordinates coincide is 0,
    and for p = inf that of several largest ones is shared out evenly, as by `amax` (PyTorch gives
    each of them all of it).

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
        left, right = _same_stacks(left, right)
        with np.errstate(invalid="ignore"):  # products of infinite points are computed again
            d = distances.cdist.apply(left, right, direct=compute_mode == _MODES[2])
        return cast(d, dtype)
    return cast(_of_norm(left, right, p), dtype)


def _points(name: str, x: Operand, which: str) -> Tensor:
    points = tensor_of(x)
    if points.dtype.kind != "f":
        raise DTypeError(
            f"{name} only supports floating-point dtypes, {which} got: {dtype_title(points.dtype)}"
        )
    if points.ndim < 2:
        raise ShapeError(f"{name} only supports at least 2D tensors, {which} got: {points.ndim}D")
    return points


def _check_exponent(name: str, p: float) -> None:
    if not p >= 0:
        raise ArgumentError(f"{name} only supports non-negative p values, got {p}")


def _same_stacks(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return stacks of sets broadcast to as many of them."""
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


_MANY, _FLAT = 2**14, 4
"""Of so many pairs in so few dimensions, sums are quicker over one dimension after the other."""


def _of_norm(x: Tensor, y: Tensor, p: float) -> Tensor:
    """Return the p-norms of all differences, of any p but 2, with derivative 0 at zeros."""
    (m, k), n = x.shape[-2:], y.shape[-2]
    if 0 < k <= _FLAT and p != math.inf and m * n >= _MANY:
        pairs = zip(_columns(x, (m, 1)), _columns(y, (1, n)), strict=True)
        parts = [_raised(elementwise.subtract.apply(a, b), p) for a, b in pairs]
        total: Tensor = functools.reduce(elementwise.add.apply, parts)
        return total if p in (0, 1) else _power(total, 1 / p)
    rows = shaping.reshape.apply(x, shape=(*x.shape[:-1], 1, k))
    columns = shaping.reshape.apply(y, shape=(*y.shape[:-2], 1, n, k))
    d = elementwise.subtract.apply(rows, columns)
    last = (d.ndim - 1,)
    if p == math.inf and k:
        return reductions.max.apply(elementwise.abs.apply(d), axis=last, keepdims=False)
    total = reductions.sum.apply(_raised(d, p), axis=last, keepdims=False)
    return total if p in (0, 1) else _power(total, 1 / p)


def _columns(x: Tensor, shape: tuple[int, int]) -> list[Tensor]:
    """Return the coordinates of all points, one dimension after the other."""
    parts = shaping.unbind.apply(x, axis=x.ndim - 1)
    return [shaping.reshape.apply(part, shape=(*x.shape[:-2], *shape)) for part in parts]


def _raised(d: Tensor, p: float) -> Tensor:
    """Return what the p-norm adds up."""
    sizes = elementwise.abs.apply(d)
    if p == 1:
        return sizes
    return elementwise.sign.apply(sizes) if p == 0 else _power(sizes, p)


def _power(x: Tensor, p: float) -> Tensor:
    """Return powers of non-negative numbers: at 0, 0 with the derivative 0."""
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
        Of the first point and each later one, then of the second and each later one, and so on.

    Raises
    ------
    ShapeError
        If `input` is no matrix.
    DTypeError
        If the numbers are complex, or no floats.
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
