"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

import math

from chainrule import ops
from chainrule.arguments import (
    Dims,
    DTypeLike,
    Operand,
    cast,
    either,
    floating,
    many_dims,
    over,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ArgumentError, LinAlgError, ShapeError
from chainrule.linalg.arguments import matrices, square
from chainrule.linalg.eigen_svd import svdvals
from chainrule.linalg.solve import inv
from chainrule.ops.wrappers import zeros_depending_on
from chainrule.primitives import elementwise, reductions
from chainrule.primitives import norms as norms_primitives

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]

Order = float | str | None


def vector_norm(
    x: Operand,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike = None,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the norm of the elements along dimensions, taken as one vector.

    Parameters
    ----------
    x : Tensor
        Real or complex numbers; integers are taken as numbers of the default dtype.
    ord : float, default 2
        p in (Σ |x|ᵖ)^(1/p); inf and -inf are the largest and the smallest magnitude, 0 the number
        of nonzero elements.
    dim : int or sequence of ints, optional
        Dimensions to reduce: all if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep those dimensions, with length 1. Also spelled `keepdims`.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape of `x` without `dim`; real

    Raises
    ------
    ShapeError
        If there is no element where the order is negative or inf.

    Notes
    -----
    Elements are scaled by the largest one, so that powers of huge and of tiny numbers neither
    overflow nor underflow. Derivative: sign(x) (|x| / norm)^(p-1); 0 for elements that are 0, and
    for all of them where the norm is 0; for inf and -inf shared evenly among ties; 0 for order 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.vector_norm(cr.tensor([3.0, 4.0]))
    tensor(5.)
    >>> cr.linalg.vector_norm(cr.tensor([[1.0, -7.0], [3.0, 4.0]]), ord=float("inf"), dim=1)
    tensor([7., 4.])
    """
    x = cast(floating(x), dtype)
    dims, keep = many_dims(over(dim, axis), x.ndim), keepdim or keepdims
    settings = {"axis": dims, "keepdims": keep}
    if ord == 2:
        return norms_primitives.p_norm.apply(x, p=2.0, **settings)
    sizes = elementwise.abs.apply(x)
    if ord == 1:
        return reductions.sum.apply(sizes, **settings)
    if ord == 0:
        count = reductions.sum.apply(
            cast(elementwise.not_equal.apply(x, 0), sizes.dtype), **settings
        )
        return count + reductions.sum.apply(ops.real(zeros_depending_on(x)), **settings)
    if ord < 0 or ord == math.inf:
        _check_not_empty(x, dims, ord)
    if abs(ord) == math.inf:
        extreme = reductions.max if ord > 0 else reductions.min
        return extreme.apply(sizes, **settings)
    return norms_primitives.p_norm.apply(x, p=float(ord), **settings)


def _check_not_empty(x: Tensor, dims: tuple[int, ...] | None, order: float) -> None:
    if 0 in (x.shape if dims is None else [x.shape[i] for i in dims]):
        raise ShapeError(
            f"linalg.vector_norm cannot compute the {order} norm on an empty dimension because the "
            f"operation does not have an identity: the shape is {list(x.shape)}"
        )


_OF_SINGULAR_VALUES = {"nuc": "sum", 2: "amax", -2: "amin"}


def matrix_norm(
    A: Operand,
    ord: float | str = "fro",
    dim: Dims = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DTypeLike = None,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Return a norm of matrices.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Real or complex matrices.
    ord : {"fro", "nuc", inf, -inf, 1, -1, 2, -2}, default "fro"
        The root of the sum of squares; the sum of singular values; the largest or smallest sum of
        magnitudes of a row (inf, -inf) or a column (1, -1); the largest or smallest singular value.
    dim : two ints, default (-2, -1)
        The dimensions of the rows and the columns. Also spelled `axis`.
    keepdim : bool, default False
        Keep those dimensions, with length 1. Also spelled `keepdims`.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape (...); real

    Raises
    ------
    ArgumentError
        If the order is none of these.
    ShapeError
        If `A` has fewer than two dimensions, or `dim` is not two of them.

    Notes
    -----
    Derivatives: A / norm for "fro", and 0 at 0; U Vᴴ for "nuc", and the outer product of the
    singular vectors for 2 and -2 [1]_; signs for the sums. Shared evenly among ties. Where a
    singular value is 0, forward mode over a gradient of the others may be nan; reverse mode over it
    is not.

    References
    ----------
    .. [1] G. A. Watson, "Characterization of the subdifferential of some matrix norms", Linear
       Algebra and its Applications 170, 1992.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.matrix_norm(cr.tensor([[3.0, 0.0], [0.0, -4.0]]), ord="nuc")
    tensor(7.)
    """
    x = floating(A)
    if x.ndim < 2:
        raise ShapeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions, but has shape "
            f"{list(x.shape)}."
        )
    given = dim if axis is None else axis
    dims = many_dims(given, x.ndim)
    if dims is None or len(dims) != 2:
        raise ShapeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {given}")
    x, keep = cast(x, dtype), keepdim or keepdims
    if ord == "fro":
        return ops.norm(x, 2, dims, keep)
    if ord in _OF_SINGULAR_VALUES:
        values = svdvals(ops.movedim(x, dims, (-2, -1)))
        reduction = _OF_SINGULAR_VALUES["nuc" if ord == 2 and values.shape[-1] == 0 else ord]
        result: Tensor = getattr(ops, reduction)(values, dim=-1)
        return ops.reshape(result, _kept(x.shape, dims)) if keep else result
    if ord not in (1, -1, math.inf, -math.inf):
        raise ArgumentError(f"linalg.matrix_norm: Order {ord!r} not supported.")
    added, compared = dims if abs(float(ord)) == 1 else dims[::-1]
    sums = reductions.sum.apply(elementwise.abs.apply(x), axis=(added,), keepdims=True)
    extreme = ops.amax if float(ord) > 0 else ops.amin
    if ord > 0 and not sums.shape[compared]:
        extreme = ops.sum  # the norm of an empty matrix is 0
    norms = extreme(sums, dim=compared, keepdim=True)
    return norms if keep else ops.squeeze(norms, dims)


def _kept(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([1 if i in dims else length for i, length in enumerate(shape)])


def norm(
    A: Operand,
    ord: Order = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike = None,
    axis: Dims = None,
    keepdims: bool = False,
) -> Tensor:
    """Return a norm of vectors or matrices.

    Parameters
    ----------
    A : Tensor
        Real or complex numbers.
    ord : float or str, optional
        That of `vector_norm` or of `matrix_norm`; if left out, the root of the sum of squares.
    dim : int or two ints, optional
        One dimension for norms of vectors, two for norms of matrices. Also spelled `axis`. If left
        out, `A` is one vector or one matrix (with any shape, where there is no `ord`).
    keepdim : bool, default False
        Keep those dimensions, with length 1. Also spelled `keepdims`.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor; real

    Raises
    ------
    ShapeError
        If there is an order but no `dim`, and `A` is neither a vector nor a matrix.

    Notes
    -----
    Derivative: as for `vector_norm` and `matrix_norm`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.norm(cr.tensor([[3.0, 4.0]]))
    tensor(5.)
    """
    x, where = floating(A), either(dim, axis)
    keep = keepdim or keepdims
    if ord is None:
        return vector_norm(x, 2, where, keep, dtype=dtype)
    if where is None and x.ndim not in (1, 2):
        raise ShapeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{x.ndim}D."
        )
    dims = many_dims(tuple(range(x.ndim)) if where is None else where, x.ndim)
    if dims is not None and len(dims) == 2:
        return matrix_norm(x, ord, dims, keep, dtype=dtype)
    if isinstance(ord, str):
        raise ArgumentError(
            f"linalg.norm: Order {ord!r} is of matrices: give two dimensions in dim"
        )
    return vector_norm(x, ord, dims, keep, dtype=dtype)


def cond(A: Operand, p: Order = None) -> Tensor:
    """Return the condition number of matrices, ‖A‖ ‖A⁻¹‖.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Matrices; square unless the norm is that of singular values.
    p : {None, 2, -2, "fro", "nuc", inf, -inf, 1, -1}
        An order of `matrix_norm`; None means 2. For 2 the result is the largest singular value by
        the smallest one, for -2 the reverse.

    Returns
    -------
    Tensor, shape (...); real
        inf for singular matrices.

    Raises
    ------
    ArgumentError, ShapeError
        If there is no such norm; if the matrices aren't square.

    Notes
    -----
    Derivative: that of the norms.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.cond(cr.tensor([[4.0, 0.0], [0.0, -2.0]]))
    tensor(2.)
    """
    if p is None or p == 2 or p == -2:
        values = svdvals(matrices(A, "cond"))
        if values.shape[-1] == 0:
            return ops.sum(values, dim=-1)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    x = square(A, "cond")
    try:
        return matrix_norm(x, p) * matrix_norm(inv(x), p)
    except LinAlgError:
        return _cond_of_singular(x, p)


def _cond_of_singular(x: Tensor, p: float | str) -> Tensor:
    """Return the condition numbers of a batch that contains singular matrices, one by one."""
    if x.ndim > 2:
        parts = [cond(part, p) for part in ops.unbind(ops.reshape(x, -1, *x.shape[-2:]), 0)]
        return ops.reshape(ops.stack(parts), x.shape[:-2])
    array = abs(x._array[..., 0, 0])
    return make(namespace(x._array).asarray(array * 0 + math.inf, dtype=array.dtype), None)
