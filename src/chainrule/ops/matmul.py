"""Products that sum over a shared dimension."""

from __future__ import annotations

from chainrule.arguments import RECORDERS, Operand, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.errors import DTypeError, ShapeError
from chainrule.ops.wrappers import binary

__all__ = ["matmul", "mm", "mv", "dot", "bmm", "outer", "ger", "linear"]

_matmul = binary("matmul")


def matmul(input: Operand, other: Operand) -> Tensor:
    """Return the matrix product x @ y.

    Parameters
    ----------
    input : Tensor, shape (..., m, k) or (k,)
        x: a matrix, a stack of them, or a row vector.
    other : Tensor, shape (..., k, n) or (k,)
        y: a matrix, a stack of them, or a column vector.

    Returns
    -------
    Tensor, shape (..., m, n), without the dimension of a vector
        Stacks broadcast.

    Raises
    ------
    ShapeError
        If the shapes don't fit, or one operand is a scalar.

    Notes
    -----
    Derivatives: g yᵀ for x and xᵀ g for y, where g is the gradient of the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.matmul(cr.tensor([[1.0, 2.0]]), cr.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """
    return _matmul(input, other)


def _of_dims(name: str, x: Operand, y: Operand, x_ndim: int, y_ndim: int) -> Tensor:
    """Return x @ y, of operands that must have these numbers of dimensions and one dtype."""
    left, right = tensor_of(x), tensor_of(y)
    if left._array.ndim != x_ndim or right._array.ndim != y_ndim:
        raise ShapeError(
            f"{name}: expected tensors of {x_ndim} and {y_ndim} dimensions, but got {left.ndim}D "
            f"and {right.ndim}D (shapes {list(left.shape)} and {list(right.shape)})"
        )
    if left._array.dtype != right._array.dtype:
        raise DTypeError(
            f"{name}: expected both tensors to have the same dtype, but got {left.dtype} and "
            f"{right.dtype}: matmul promotes"
        )
    return RECORDERS["matmul"](left, right)


def mm(input: Operand, mat2: Operand) -> Tensor:
    """Return the product of two matrices.

    Parameters
    ----------
    input : Tensor, shape (m, k)
    mat2 : Tensor, shape (k, n)
        Of the dtype of `input`.

    Returns
    -------
    Tensor, shape (m, n)

    Raises
    ------
    ShapeError
        If they are no matrices, or their shapes don't fit.
    DTypeError
        If their dtypes differ.

    Notes
    -----
    Derivatives: as for `matmul`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.mm(cr.eye(2), cr.tensor([[1.0], [2.0]]))
    tensor([[1.],
            [2.]])
    """
    return _of_dims("mm", input, mat2, 2, 2)


def mv(input: Operand, vec: Operand) -> Tensor:
    """Return the product of a matrix, shape (m, k), and a vector, shape (k,).

    Notes
    -----
    Derivatives: as for `matmul`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.mv(cr.eye(2), cr.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return _of_dims("mv", input, vec, 2, 1)


def dot(input: Operand, tensor: Operand) -> Tensor:
    """Return the inner product of two vectors, without conjugation.

    Notes
    -----
    Derivatives: y for x, x for y.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.dot(cr.tensor([1.0, 2.0]), cr.tensor([3.0, 4.0]))
    tensor(11.)
    """
    return _of_dims("dot", input, tensor, 1, 1)


def bmm(input: Operand, mat2: Operand) -> Tensor:
    """Return the products of two stacks of matrices, shapes (b, m, k) and (b, k, n), one by one.

    Raises
    ------
    ShapeError
        If the stacks differ in length: they don't broadcast here.

    Notes
    -----
    Derivatives: as for `matmul`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bmm(cr.ones(5, 2, 3), cr.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    left, right = tensor_of(input), tensor_of(mat2)
    if left.ndim == 3 == right.ndim and left.shape[0] != right.shape[0]:
        raise ShapeError(
            "bmm: Expected size for first two dimensions of batch2 tensor to be: "
            f"[{left.shape[0]}, {left.shape[2]}] but got: {list(right.shape[:2])}."
        )
    return _of_dims("bmm", left, right, 3, 3)


def outer(input: Operand, vec2: Operand) -> Tensor:
    """Return the matrix of all products of an element of one vector and one of the other.

    Parameters
    ----------
    input : Tensor, shape (m,)
    vec2 : Tensor, shape (n,)

    Returns
    -------
    Tensor, shape (m, n)

    Raises
    ------
    ShapeError
        If one is no vector.

    Notes
    -----
    Derivatives: g vec2 for `input` and gᵀ input for `vec2`, where g is the gradient of the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.outer(cr.tensor([1.0, 2.0]), cr.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    left, right = tensor_of(input), tensor_of(vec2)
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(f"outer: Expected 1-D arguments, but got {left.ndim}-D and {right.ndim}-D")
    column = RECORDERS["reshape"](left, shape=(left.shape[0], 1))
    return RECORDERS["multiply"](column, right)


ger = outer


def linear(input: Operand, weight: Operand, bias: Operand | None = None) -> Tensor:
    """Return x @ weightᵀ + bias, a fully connected layer.

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
    Derivatives: g weight for x, gᵀ x for weight, and g summed over the batch for bias, where g is
    the gradient of the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linear(cr.tensor([[1.0, 2.0]]), cr.tensor([[3.0, 4.0]]), cr.tensor([10.0]))
    tensor([[21.]])
    """
    matrix = tensor_of(weight)
    if matrix.ndim == 2:
        matrix = RECORDERS["transpose"](matrix, axes=(1, 0))
    product = _matmul(input, matrix)
    return product if bias is None else RECORDERS["add"](product, bias)
