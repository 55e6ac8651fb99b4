"""Matrix products: matmul, dot, outer, linear, and their sums with another tensor."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, cast

import numpy as np

from chainrule.arguments import Operand, tensor_of, written
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.record import add_to_new
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ArgumentTypeError, DTypeError, ShapeError
from chainrule.operation import inplace_form, operation, reflected
from chainrule.ops.products import tensordot
from chainrule.ops.sparse_products import is_sparse_matrix, sparse_product
from chainrule.ops.wrappers import binary_function
from chainrule.primitives import contraction, elementwise, shaping

__all__ = [
    "matmul",
    "mm",
    "mv",
    "spmm",
    "dot",
    "bmm",
    "outer",
    "ger",
    "linear",
    "addmm",
    "addmv",
    "addr",
    "addbmm",
    "baddbmm",
    "addmv_",
]


class MatrixLike(ABC):
    """A matrix that is no tensor, but multiplies tensors: the base class of sparse tensors."""

    @abstractmethod
    def __matmul__(self, dense: Any) -> Tensor:
        """Return the product with a dense matrix or vector."""


_matmul = binary_function(contraction.matmul)
_of_tensors = reflected(contraction.matmul.apply)


def _reflected(x: Tensor, other: Any) -> Any:
    return sparse_product(other, x) if is_sparse_matrix(other) else _of_tensors(x, other)


@operation(
    operators={
        "__matmul__": contraction.matmul.apply,
        "__rmatmul__": _reflected,
    },
    ufunc="matmul",
    numpy="linalg.matmul x1 x2",
    array_api=True,
)
def matmul(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the matrix product x @ y.

    Parameters
    ----------
    input : Tensor, shape (..., m, k) or (k,)
        x: a matrix, a stack of them, or a row vector.
    other : Tensor, shape (..., k, n) or (k,)
        y: a matrix, a stack of them, or a column vector.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape (..., m, n), without the dimension of a vector
        Stacks broadcast.

    Raises
    ------
    ShapeError
        If the shapes don't match, or one operand is a scalar.

    Notes
    -----
    Derivatives: g yᵀ for x and xᵀ g for y, where g is the gradient of the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.matmul(cr.tensor([[1.0, 2.0]]), cr.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """
    if input.__class__ is not Tensor and isinstance(input, MatrixLike):
        return cast(MatrixLike, input) @ other
    found: Tensor = _matmul(input, other)
    return found if out is None else written(found, out)


def _matmul_exact(name: str, x: Operand, y: Operand, x_ndim: int, y_ndim: int) -> Tensor:
    """Return x @ y; raise unless the numbers of dimensions are these and the dtypes are equal."""
    left, right = tensor_of(x), tensor_of(y)
    if left._array.ndim != x_ndim or right._array.ndim != y_ndim:
        raise ShapeError(
            f"{name}: expected tensors of {x_ndim} and {y_ndim} dimensions, but got {left.ndim}D "
            f"and {right.ndim}D (shapes {list(left.shape)} and {list(right.shape)})"
        )
    if left._array.dtype != right._array.dtype:
        raise DTypeError(
            f"{name}: expected both tensors to have the same dtype, but got {left.dtype} and "
            f"{right.dtype}: write x @ y, which promotes, or convert one, as in y.to(x.dtype)"
        )
    return contraction.matmul.apply(left, right)


@operation()
def mm(input: Operand, mat2: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the product of two matrices.

    Parameters
    ----------
    input : Tensor, shape (m, k)
    mat2 : Tensor, shape (k, n)
        Of the dtype of `input`.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape (m, n)

    Raises
    ------
    ShapeError
        If they are not matrices, or their shapes don't match.
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
    if input.__class__ is not Tensor and isinstance(input, MatrixLike):
        return cast(MatrixLike, input) @ mat2
    found = _matmul_exact("mm", input, mat2, 2, 2)
    return found if out is None else written(found, out)


spmm = mm  # PyTorch's former name, for sparse matrices


@operation()
def mv(input: Operand, vec: Operand, *, out: Tensor | None = None) -> Tensor:
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
    found = _matmul_exact("mv", input, vec, 2, 1)
    return found if out is None else written(found, out)


@operation()
def dot(input: Operand, tensor: Operand, *, out: Tensor | None = None) -> Tensor:
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
    found = _matmul_exact("dot", input, tensor, 1, 1)
    return found if out is None else written(found, out)


@operation()
def bmm(input: Operand, mat2: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the matrix products of two stacks, of shapes (b, m, k) and (b, k, n).

    Raises
    ------
    ShapeError
        If the stacks differ in length: `bmm` does not broadcast.

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
    found = _matmul_exact("bmm", left, right, 3, 3)
    return found if out is None else written(found, out)


@operation(aliases="ger", numpy="linalg.outer x1 x2")
def outer(input: Operand, vec2: Operand) -> Tensor:
    """Return the outer product of two vectors: the products of all pairs of their elements.

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
        If one is not a vector.

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
    column = shaping.reshape.apply(left, shape=(left.shape[0], 1))
    return elementwise.multiply.apply(column, right)


ger = outer


def linear(input: Operand, weight: Operand, bias: Operand | None = None) -> Tensor:
    """Return x @ weightᵀ + bias, the function of a fully connected layer.

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
        If the shapes don't match.

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
        matrix = shaping.transpose.apply(matrix, axes=(1, 0))
    product = _matmul(input, matrix)
    return product if bias is None else add_to_new(product, bias)


# --- sums with a product: beta · x + alpha · (a product) ------------------------------------------

Number = Any


def _add_product(name: str, x: Operand, product: Tensor, beta: Number, alpha: Number) -> Tensor:
    """Return beta · x + alpha · product; if beta is 0, the values of `x` are not used."""
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
        product = elementwise.multiply.apply(product, alpha)
    if beta == 0:
        if not x.requires_grad:
            return product
        no_elements = namespace(x._array).zeros(x.shape, dtype=bool)
        x = elementwise.masked.apply(x, make(no_elements, None))  # zeros with zero gradient
    elif beta != 1:
        x = elementwise.multiply.apply(x, beta)
    return elementwise.add.apply(x, product)


def _in_former_order(name: str, factors: str, *given: Any) -> tuple[Any, ...]:
    """Return the input, both factors, beta and alpha of a call in PyTorch's order until 2019."""
    beta, input, *others = (
        given if isinstance(given[0], _NUMBERS) else (given[1], given[0], *given[2:])
    )
    alpha = others.pop(0) if len(others) == 3 else 1
    if len(others) != 2 or not (isinstance(beta, _NUMBERS) and isinstance(alpha, _NUMBERS)):
        raise ArgumentTypeError(
            f"{name}: expected input, {factors}, and beta= and alpha= by name, got {len(given)} "
            "arguments without names"
        )
    warnings.warn(
        f"{name}(beta, input, alpha, {factors}) is deprecated, as in PyTorch: say "
        f"{name}(input, {factors}, beta={beta}, alpha={alpha})",
        DeprecationWarning,
        stacklevel=user_stack_level(),
    )
    return input, *others, beta, alpha


_NUMBERS = (int, float, complex, np.number)


@operation(inplace=True)
def addmm(
    input: Operand,
    mat1: Operand,
    mat2: Operand,
    *former: Operand,
    beta: Number = 1,
    alpha: Number = 1,
) -> Tensor:
    """Return beta · x + alpha · (mat1 @ mat2).

    Parameters
    ----------
    input : Tensor, of a shape that broadcasts to (m, n)
        The tensor to add to.
    mat1 : Tensor, shape (m, k)
    mat2 : Tensor, shape (k, n)
        Of the dtype of `mat1`.
    former
        PyTorch's order until 2019, with a warning: ``addmm(beta, input, alpha, mat1, mat2)``, as a
        method ``input.addmm(beta, alpha, mat1, mat2)``, both also without alpha.
    beta : number, default 1
        The factor of `input`; if it is 0, nan and inf in `input` are ignored.
    alpha : number, default 1
        The factor of the product.

    Returns
    -------
    Tensor, shape (m, n)

    Raises
    ------
    ShapeError
        If the shapes don't match.
    DTypeError
        If the dtypes of the matrices differ.

    Notes
    -----
    Derivatives: beta g for x (zeros if beta is 0), alpha g mat2ᵀ for mat1, alpha mat1ᵀ g for
    mat2, where g is the gradient of the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.addmm(cr.ones(2), cr.eye(2), cr.eye(2), beta=10)
    tensor([[11., 10.],
            [10., 11.]])
    """
    if former:
        given = input, mat1, mat2, *former
        input, mat1, mat2, beta, alpha = _in_former_order("addmm", "mat1, mat2", *given)
    return _add_product("addmm", input, mm(mat1, mat2), beta, alpha)


@operation(inplace=True)
def addmv(
    input: Operand,
    mat: Operand,
    vec: Operand,
    *former: Operand,
    beta: Number = 1,
    alpha: Number = 1,
) -> Tensor:
    """Return beta · x + alpha · (mat @ vec), for a matrix and a vector.

    The arguments are those of `addmm`, of shapes (n,), (n, m) and (m,), and so are the derivatives.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.addmv(cr.ones(2), cr.eye(2), cr.tensor([2.0, 3.0]))
    tensor([3., 4.])
    """
    if former:
        given = input, mat, vec, *former
        input, mat, vec, beta, alpha = _in_former_order("addmv", "mat, vec", *given)
    return _add_product("addmv", input, mv(mat, vec), beta, alpha)


addmv_ = inplace_form(addmv)


@operation(inplace=True)
def addr(
    input: Operand,
    vec1: Operand,
    vec2: Operand,
    *former: Operand,
    beta: Number = 1,
    alpha: Number = 1,
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
    if former:
        given = input, vec1, vec2, *former
        input, vec1, vec2, beta, alpha = _in_former_order("addr", "vec1, vec2", *given)
    return _add_product("addr", input, outer(vec1, vec2), beta, alpha)


@operation(inplace=True)
def addbmm(
    input: Operand,
    batch1: Operand,
    batch2: Operand,
    *former: Operand,
    beta: Number = 1,
    alpha: Number = 1,
) -> Tensor:
    """Return beta · x + alpha · Σ (batch1[i] @ batch2[i]), the sum over two stacks of matrices.

    The arguments are those of `addmm`, of shapes (n, m), (b, n, k) and (b, k, m), and so are the
    derivatives.

    Raises
    ------
    ShapeError
        If the shapes don't match.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.addbmm(cr.zeros(1, 1), cr.ones(5, 1, 2), cr.ones(5, 2, 1))
    tensor([[10.]])
    """
    if former:
        given = input, batch1, batch2, *former
        input, batch1, batch2, beta, alpha = _in_former_order("addbmm", "batch1, batch2", *given)
    left, right = tensor_of(batch1), tensor_of(batch2)
    if left.ndim != 3 or right.ndim != 3 or left.shape[::2] != right.shape[:2]:
        raise ShapeError(
            "addbmm: expected stacks of matrices, of shapes [b, n, k] and [b, k, m], but got "
            f"{list(left.shape)} and {list(right.shape)}"
        )
    return _add_product("addbmm", input, tensordot(left, right, ([0, 2], [0, 1])), beta, alpha)


@operation(inplace=True)
def baddbmm(
    input: Operand,
    batch1: Operand,
    batch2: Operand,
    *former: Operand,
    beta: Number = 1,
    alpha: Number = 1,
) -> Tensor:
    """Return beta · x[i] + alpha · (batch1[i] @ batch2[i]) for all matrices of two stacks.

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
    if former:
        given = input, batch1, batch2, *former
        input, batch1, batch2, beta, alpha = _in_former_order("baddbmm", "batch1, batch2", *given)
    return _add_product("baddbmm", input, bmm(batch1, batch2), beta, alpha)
