"""Products added to something: beta · x + alpha · (a product)."""

from __future__ import annotations

from typing import Any

from chainrule.arguments import RECORDERS, Operand, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ShapeError
from chainrule.ops.matmul import bmm, mm, mv, outer
from chainrule.ops.products import tensordot

__all__ = ["addmm", "addmv", "addr", "addbmm", "baddbmm"]

Number = Any


def _added(name: str, x: Operand, product: Tensor, beta: Number, alpha: Number) -> Tensor:
    """Return beta · x + alpha · product; `x` is not looked at where beta is 0."""
    x = tensor_of(x)
    fits = x.ndim <= product.ndim and all(
        n in (1, m) for n, m in zip(reversed(x.shape), reversed(product.shape), strict=False)
    )
    if not fits:
        raise ShapeError(
            f"{name}: The expanded size of the tensor must match the existing size: the input of "
            f"shape {list(x.shape)} doesn't broadcast to that of the product, {list(product.shape)}"
        )
    if alpha != 1:
        product = RECORDERS["multiply"](product, alpha)
    if beta == 0:
        if not x.requires_grad:
            return product
        nowhere = namespace(x._array).zeros(x.shape, dtype=bool)
        x = RECORDERS["masked"](x, make(nowhere, None))  # zeros, and so is the gradient
    elif beta != 1:
        x = RECORDERS["multiply"](x, beta)
    return RECORDERS["add"](x, product)


def addmm(
    input: Operand, mat1: Operand, mat2: Operand, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return beta · x + alpha · (mat1 @ mat2).

    Parameters
    ----------
    input : Tensor, of a shape that broadcasts to (m, n)
        What is added.
    mat1 : Tensor, shape (m, k)
    mat2 : Tensor, shape (k, n)
        Of the dtype of `mat1`.
    beta : number, default 1
        The factor of `input`; where it is 0, nan and inf in `input` make no difference.
    alpha : number, default 1
        The factor of the product.

    Returns
    -------
    Tensor, shape (m, n)

    Raises
    ------
    ShapeError
        If the shapes don't fit.
    DTypeError
        If the dtypes of the matrices differ.

    Notes
    -----
    Derivatives: beta g for x (zeros where beta is 0), alpha g mat2ᵀ for mat1, alpha mat1ᵀ g for
    mat2, where g is the gradient of the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.addmm(cr.ones(2), cr.eye(2), cr.eye(2), beta=10)
    tensor([[11., 10.],
            [10., 11.]])
    """
    return _added("addmm", input, mm(mat1, mat2), beta, alpha)


def addmv(
    input: Operand, mat: Operand, vec: Operand, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return beta · x + alpha · (mat @ vec), for a matrix and a vector.

    The arguments are those of `addmm`, of shapes (n,), (n, m) and (m,), and so are the derivatives.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.addmv(cr.ones(2), cr.eye(2), cr.tensor([2.0, 3.0]))
    tensor([3., 4.])
    """
    return _added("addmv", input, mv(mat, vec), beta, alpha)


def addr(
    input: Operand, vec1: Operand, vec2: Operand, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return beta · x + alpha · (the outer product of two vectors).

    The arguments are those of `addmm`, of shapes (n, m), (n,) and (m,), and so are the derivatives.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.addr(cr.zeros(2, 2), cr.tensor([1.0, 2.0]), cr.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return _added("addr", input, outer(vec1, vec2), beta, alpha)


def addbmm(
    input: Operand, batch1: Operand, batch2: Operand, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return beta · x + alpha · Σ (batch1[i] @ batch2[i]), the sum over two stacks of matrices.

    The arguments are those of `addmm`, of shapes (n, m), (b, n, k) and (b, k, m), and so are the
    derivatives.

    Raises
    ------
    ShapeError
        If the shapes don't fit.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.addbmm(cr.zeros(1, 1), cr.ones(5, 1, 2), cr.ones(5, 2, 1))
    tensor([[10.]])
    """
    left, right = tensor_of(batch1), tensor_of(batch2)
    if left.ndim != 3 or right.ndim != 3 or left.shape[::2] != right.shape[:2]:
        raise ShapeError(
            "addbmm: expected stacks of matrices, of shapes [b, n, k] and [b, k, m], but got "
            f"{list(left.shape)} and {list(right.shape)}"
        )
    return _added("addbmm", input, tensordot(left, right, ([0, 2], [0, 1])), beta, alpha)


def baddbmm(
    input: Operand, batch1: Operand, batch2: Operand, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return beta · x + alpha · (batch1[i] @ batch2[i]), matrix by matrix of two stacks.

    The arguments are those of `addmm`, of shapes (b, n, m), (b, n, k) and (b, k, m), and so are
    the derivatives.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.baddbmm(cr.zeros(1, 1), cr.ones(2, 1, 3), cr.ones(2, 3, 1))
    tensor([[[3.]],
    <BLANKLINE>
            [[3.]]])
    """
    return _added("baddbmm", input, bmm(batch1, batch2), beta, alpha)
