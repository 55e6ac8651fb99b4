"""Linear and bilinear layers, distances, similarities, and normalisation of vectors."""

from __future__ import annotations

import math

from chainrule import ops
from chainrule.arguments import Operand, floating, written
from chainrule.autograd.tensor import Tensor
from chainrule.nn.functional.losses import pair
from chainrule.ops import pdist
from chainrule.primitives import elementwise

__all__ = [
    "linear",
    "bilinear",
    "pdist",
    "cosine_similarity",
    "pairwise_distance",
    "normalize",
]


def linear(input: Operand, weight: Operand, bias: Operand | None = None) -> Tensor:
    """Return input @ weightᵀ + bias, a fully connected layer.

    Parameters
    ----------
    input : Tensor, shape (..., k)
        Inputs.
    weight : Tensor, shape (n, k)
        One row for each output.
    bias : Tensor, shape (n,), optional
        Added to each output.

    Returns
    -------
    Tensor, shape (..., n)

    Raises
    ------
    ShapeError
        If the shapes don't fit.

    Notes
    -----
    Derivatives: g weight for `input`, gᵀ input for `weight`, and g summed over the batch for
    `bias`, where g is the gradient of the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> x, weight = cr.tensor([[1.0, 2.0]]), cr.tensor([[3.0, 4.0]])
    >>> cr.nn.functional.linear(x, weight, bias=cr.tensor([10.0]))
    tensor([[21.]])
    """
    return ops.linear(input, weight, bias)


def bilinear(
    input1: Operand, input2: Operand, weight: Operand, bias: Operand | None = None
) -> Tensor:
    """Return input1ᵀ weight[k] input2 + bias[k] for each output k.

    Parameters
    ----------
    input1 : Tensor, shape (..., m)
    input2 : Tensor, shape (..., n)
    weight : Tensor, shape (outputs, m, n)
        One matrix for each output.
    bias : Tensor, shape (outputs,), optional
        Added to each output.

    Returns
    -------
    Tensor, shape (..., outputs)

    Raises
    ------
    ShapeError
        If the shapes don't fit.

    Examples
    --------
    >>> import chainrule as cr
    >>> x, y = cr.tensor([[1.0, 2.0]]), cr.tensor([[3.0, 4.0]])
    >>> cr.nn.functional.bilinear(x, y, cr.ones(1, 2, 2))
    tensor([[21.]])
    """
    return ops.bilinear(input1, input2, weight, bias)


# --- similarity and distance ----------------------------------------------------------------------


def _vector_norm(x: Tensor, p: float, dim: int | tuple[int, ...], keepdim: bool) -> Tensor:
    """Return the p-norm along dimensions, with derivative 0 at 0."""
    if p in (1, 2, math.inf):
        return ops.norm(x, p, dim, keepdim)
    sizes = ops.abs(x)
    if p == -math.inf:
        return ops.amin(sizes, dim, keepdim)
    if p == 0:
        return ops.sum(ops.sign(sizes), dim, keepdim=keepdim)
    is_zero = elementwise.equal.apply(
        sizes.detach(), 0.0
    )  # elements with slope 0, not that of a power
    powers = ops.pow(ops.where(is_zero, 1.0, sizes), p)
    powers = elementwise.masked.apply(powers, elementwise.logical_not.apply(is_zero))
    total = ops.sum(powers, dim, keepdim=keepdim)
    nonzero = elementwise.greater.apply(total.detach(), 0.0)
    root = ops.pow(ops.where(nonzero, total, 1.0), 1.0 / p)
    return elementwise.masked.apply(root, nonzero)


def normalize(
    input: Operand, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Return the vectors along a dimension, divided by their length.

    Parameters
    ----------
    input : Tensor
        Real numbers.
    p : number, default 2
        The order of the norm that is the length; inf too.
    dim : int, default 1
        The dimension of the vectors.
    eps : number, default 1e-12
        The divisor for vectors shorter than this.
    out : Tensor, optional
        Where to write the result.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative for p = 2: (I - out outᵀ) / length, and I / eps for shorter vectors.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.normalize(cr.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    x = floating(input)
    unit = ops.divide(x, ops.clamp(_vector_norm(x, p, dim, True), min=eps))
    return unit if out is None else written(unit, out)


def cosine_similarity(x1: Operand, x2: Operand, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along a dimension.

    Parameters
    ----------
    x1, x2 : Tensor
        Real vectors: the shapes broadcast.
    dim : int, default 1
        The dimension of the vectors in the broadcast shape.
    eps : number, default 1e-8
        Lower bound of the lengths.

    Returns
    -------
    Tensor, of the broadcast shape without `dim`

    Notes
    -----
    Derivative for x1: (u2 - out u1) / |x1|, where u are the unit vectors; u2 / eps for a vector
    shorter than eps.

    Examples
    --------
    >>> import chainrule as cr
    >>> x, y = cr.tensor([[1.0, 0.0]]), cr.tensor([[1.0, 1.0]])
    >>> cr.nn.functional.cosine_similarity(x, y)
    tensor([0.7071])
    """
    x, y = pair(x1, x2)
    if x.shape != y.shape:
        x, y = ops.broadcast_tensors(x, y)
    x, y = normalize(x, 2, dim, eps), normalize(y, 2, dim, eps)
    return ops.sum(ops.multiply(x, y), dim)


def pairwise_distance(
    x1: Operand, x2: Operand, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the distance between vectors along the last dimension.

    Parameters
    ----------
    x1, x2 : Tensor, shape (..., d)
        Real vectors: the shapes broadcast.
    p : number, default 2
        The order of the norm of the difference; inf too.
    eps : number, default 1e-6
        Added to the differences.
    keepdim : bool, default False
        Keep the last dimension, with length 1.

    Returns
    -------
    Tensor, of the broadcast shape without the last dimension

    Notes
    -----
    Derivative for x1 and p = 2: (x1 - x2 + eps) / distance.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.pairwise_distance(cr.tensor([[1.0, 2.0]]), cr.tensor([[4.0, 6.0]]))
    tensor([5.0000])
    """
    x, y = pair(x1, x2)
    return _vector_norm(ops.add(ops.subtract(x, y), eps), p, -1, keepdim)
