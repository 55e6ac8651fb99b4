"""Determinants, powers and the exponential of square matrices."""

from __future__ import annotations

from operator import index
from typing import NamedTuple

from chainrule import ops
from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ShapeError
from chainrule.linalg.arguments import matmul, square
from chainrule.linalg.solve import inv
from chainrule.ops.wrappers import zeros_depending_on
from chainrule.primitives import elementwise, matrix_functions

__all__ = ["det", "logdet", "matrix_exp", "matrix_power", "slogdet"]


def det(A: Operand) -> Tensor:
    """Return the determinant of square matrices.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Real or complex matrices; integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape (...)

    Raises
    ------
    ShapeError
        If the matrices aren't square.

    See Also
    --------
    slogdet : does not overflow.

    Notes
    -----
    Derivative: the cofactors, det(A) A⁻ᵀ [1]_. Those of singular matrices are computed from the
    singular value decomposition without a division, so first and second derivatives are exact at
    every matrix; for n ≤ 3, where cofactors are polynomials, derivatives of all orders are.

    References
    ----------
    .. [1] M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
       differentiation", Advances in Automatic Differentiation, 2008, 2.2.4.

    Examples
    --------
    >>> import chainrule as cr
    >>> A = cr.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    >>> cr.linalg.det(A).backward()
    >>> A.grad
    tensor([[ 4., -2.],
            [-2.,  1.]])
    """
    return matrix_functions.det.apply(square(A, "det"))


class SlogdetResult(NamedTuple):
    """Result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


def slogdet(A: Operand) -> SlogdetResult:
    """Return the sign of the determinant of square matrices, and the logarithm of its magnitude.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Real or complex matrices.

    Returns
    -------
    sign : Tensor, shape (...)
        -1, 0 or 1; for complex matrices, a number of magnitude 1, or 0.
    logabsdet : Tensor, shape (...); real
        -inf for a singular matrix.

    Raises
    ------
    ShapeError
        If the matrices aren't square.

    Notes
    -----
    Derivative: A⁻ᵀ for the logarithm, which is inf or nan for a singular matrix; 0 for the sign of
    real matrices, and i sign Im tr(A⁻¹ dA) for that of complex ones [1]_.

    References
    ----------
    .. [1] M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
       differentiation", Advances in Automatic Differentiation, 2008, 2.2.4.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.slogdet(cr.tensor([[0.0, 1.0], [1.0, 0.0]]))
    SlogdetResult(sign=tensor(-1.), logabsdet=tensor(0.))
    """
    parts = matrix_functions.slogdet.apply(square(A, "slogdet"))
    return SlogdetResult(*parts)


def logdet(A: Operand) -> Tensor:
    """Return the logarithm of the determinant of square matrices.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Real or complex matrices.

    Returns
    -------
    Tensor, shape (...)
        nan where a real determinant is negative, -inf where it is zero.

    Notes
    -----
    Derivative: A⁻ᵀ.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.logdet(cr.eye(3))
    tensor(0.)
    """
    sign, logabsdet = slogdet(A)
    if sign.is_complex():
        return ops.log(sign) + logabsdet
    return ops.where(sign < 0, float("nan"), logabsdet)


def matrix_exp(A: Operand) -> Tensor:
    """Return the exponential of square matrices, I + A + A²/2 + ….

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Real or complex matrices.

    Returns
    -------
    Tensor, shape of `A`

    Raises
    ------
    ShapeError
        If the matrices aren't square.

    Notes
    -----
    Padé approximants with scaling and squaring [1]_. Derivative along t: the upper right block of
    exp([[A, t], [0, A]]) [2]_; differentiable to every order, also where eigenvalues coincide.

    References
    ----------
    .. [1] N. Higham, "The scaling and squaring method for the matrix exponential revisited", SIAM
       J. Matrix Anal. Appl. 26(4), 2005.
    .. [2] N. Higham, "Functions of Matrices: Theory and Computation", SIAM, 2008, (3.16).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.matrix_exp(cr.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return matrix_functions.matrix_exp.apply(square(A, "matrix_exp"))


def matrix_power(A: Operand, n: int) -> Tensor:
    """Return the n-th power of square matrices.

    Parameters
    ----------
    A : Tensor, shape (..., m, m)
        Matrices; integers stay integers where n ≥ 0.
    n : int
        The exponent; negative ones are powers of the inverse.

    Returns
    -------
    Tensor, shape of `A`
        The identity for n = 0.

    Raises
    ------
    ShapeError
        If the matrices aren't square.
    LinAlgError
        If n < 0 and a matrix is singular.

    Notes
    -----
    Computed by repeated squaring, with about log₂ n products, and differentiated through these.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.matrix_power(cr.tensor([[1.0, 1.0], [0.0, 1.0]]), 10)
    tensor([[ 1., 10.],
            [ 0.,  1.]])
    """
    power, x = index(n), tensor_of(A)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            "linalg.matrix_power: A must be batches of square matrices, but its shape is "
            f"{list(x.shape)}"
        )
    if power < 0:
        x, power = inv(x), -power
    if power == 0:
        xp = namespace(x._array)
        eye = make(xp.zeros(x.shape, x.dtype) + xp.eye(x.shape[-1], dtype=x.dtype), None)
        return zeros_depending_on(x) + eye if x.requires_grad else eye
    if power == 1:
        return elementwise.clone.apply(x)
    while not power & 1:
        x, power = matmul(x, x), power >> 1
    result = x
    while power := power >> 1:
        x = matmul(x, x)
        result = matmul(result, x) if power & 1 else result
    return result
