"""Layers whose weights are arguments: `cr`'s own functions, with PyTorch's names of arguments."""

from __future__ import annotations

from chainrule import ops
from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor
from chainrule.ops import pdist

__all__ = ["linear", "bilinear", "pdist"]


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
