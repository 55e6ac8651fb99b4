"""Inverses and solutions of linear systems."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from chainrule.arguments import Operand, floating
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace, numpy_xp
from chainrule.errors import ShapeError
from chainrule.linalg.arguments import (
    adjoint,
    apply_lapack,
    column,
    matrices,
    square,
    transposed,
    with_common_dtype,
    without_column,
)
from chainrule.linalg.rank import tolerances
from chainrule.primitives import shaping
from chainrule.primitives import solve as solve_primitives

__all__ = [
    "inv",
    "inverse",
    "pinv",
    "pinverse",
    "solve",
    "tensorinv",
    "tensorsolve",
    "cholesky_inverse",
    "cholesky_solve",
    "solve_triangular",
]

_SINGULAR_INVERSE = (
    "The inversion could not be completed because the input matrix is singular. "
    "pinv() gives its pseudo-inverse"
)
_NOT_CONVERGED = "The algorithm failed to converge because the input matrix is ill-conditioned."

SINGULAR_SYSTEM = "The solver failed because the input matrix is singular."
"""Error message for systems with a singular matrix."""


def inv(A: Operand) -> Tensor:
    """Return the inverse of square matrices.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Real or complex matrices; integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape and dtype of `A`

    Raises
    ------
    LinAlgError
        If a matrix is singular; in a batch, the message says which one.
    ShapeError
        If the matrices aren't square.

    See Also
    --------
    solve : ``solve(A, B)`` is faster and more precise than ``inv(A) @ B``.

    Notes
    -----
    Derivative: -A⁻¹ dA A⁻¹ [1]_.

    References
    ----------
    .. [1] M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
       differentiation", Advances in Automatic Differentiation, 2008, 2.2.3.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.inv(cr.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    result: Tensor = apply_lapack(
        "inv", solve_primitives.inv, _SINGULAR_INVERSE, square(A, "inv"), lenient=False
    )
    return result


inverse = inv


def pinv(
    A: Operand,
    rcond: Operand | None = None,
    hermitian: bool = False,
    *,
    atol: Operand | None = None,
    rtol: Operand | None = None,
) -> Tensor:
    """Return the Moore-Penrose pseudoinverse of matrices.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Real or complex matrices.
    rcond : number or Tensor, optional
        An older name of `rtol`.
    hermitian : bool, default False
        Take `A` as Hermitian: only its lower triangle is read, and eigenvalues are used.
    atol : number or Tensor of shape (...), default 0
        Singular values up to here count as zero.
    rtol : number or Tensor of shape (...), optional
        So do those up to this fraction of the largest one: by default max(m, n) times the precision
        of the dtype, or 0 where `atol` is given.

    Returns
    -------
    Tensor, shape (..., n, m)

    Notes
    -----
    Differentiable where the rank is locally constant, by the formula of Golub and Pereyra [1]_. The
    formula assumes that the tolerances cut off only rounding errors of zeros. Where they cut off
    more, differentiate through `svd` instead. The tolerances themselves have no derivative. For
    ``hermitian=True`` the gradient is Hermitian, whichever triangle is read.

    References
    ----------
    .. [1] G. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
       problems whose variables separate", SIAM J. Numer. Anal. 10(2), 1973.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.pinv(cr.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    x = square(A, "pinv") if hermitian else matrices(A, "pinv")
    if hermitian:
        x = solve_primitives.hermitian.apply(x)
    low, part = tolerances(x, atol, rcond if rtol is None else rtol)
    *batch, _ = np.broadcast_shapes((*x.shape[:-2], 1), *map(_shape, (low, part)))
    if tuple(batch) != x.shape[:-2]:  # a matrix for each tolerance
        x = shaping.broadcast_to.apply(x, shape=(*batch, *x.shape[-2:]))
    settings = {"atol": low, "rtol": part, "hermitian": bool(hermitian)}
    result: Tensor = apply_lapack(
        "pinv", solve_primitives.pinv, _NOT_CONVERGED, x, trial="svd", **settings
    )
    return result


def _shape(value: Any) -> tuple[int, ...]:
    return getattr(value, "shape", ())


def pinverse(A: Operand, rcond: Operand = 1e-15) -> Tensor:
    """Return the pseudoinverse, as `pinv` does, with PyTorch's default tolerance of this name.

    Notes
    -----
    Derivative: as for `pinv`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.pinverse(cr.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return pinv(A, rtol=rcond)


def solve(A: Operand, B: Operand, *, left: bool = True) -> Tensor:
    """Return X, the solution of A X = B.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Square matrices.
    B : Tensor, shape (..., n, k), or (n,), or (..., n)
        Right sides: matrices, or one vector, or one vector for each matrix of `A`.
    left : bool, default True
        If False, solve X A = B.

    Returns
    -------
    Tensor, shape of `B`; batches broadcast

    Raises
    ------
    LinAlgError
        If a matrix is singular; in a batch, the message says which one.
    ShapeError
        If the shapes don't fit.

    Notes
    -----
    Derivative: A⁻¹ (dB - dA X) [1]_. A `B` of shape (..., n) is vectors only if ``A.shape[:-1]`` is
    its shape, as in PyTorch; else it is one stack of matrices.

    References
    ----------
    .. [1] M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
       differentiation", Advances in Automatic Differentiation, 2008, 2.3.1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.solve(cr.tensor([[2.0, 0.0], [0.0, 4.0]]), cr.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    a, b = with_common_dtype(square(A, "solve"), floating(B))
    is_vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    if is_vector and not left:
        raise ShapeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for "
            "left=False: give B as matrices of one row"
        )
    b = column(b) if is_vector else b
    check_rows("solve", a, b, left)
    if left:
        result = _solve(a, b)
        return without_column(result) if is_vector else result
    return transposed(_solve(transposed(a), transposed(b)))


def _solve(a: Tensor, b: Tensor) -> Tensor:
    """Return the solution; its derivatives use the factors of a large matrix, too."""
    array = a._array
    primitive, factors, settings = solve_primitives.solve, list[Tensor](), dict[str, Any]()
    if array.__class__ is np.ndarray and numpy_xp.has_lu_factors(array.shape, array.dtype):
        primitive, settings = solve_primitives.solve_factored, {"transposed": False}
        factors = [make(part, None) for part in numpy_xp.lu_factor(array)]
    result: Tensor = apply_lapack(
        "solve", primitive, SINGULAR_SYSTEM, a, b, *factors, trial="inv", **settings
    )
    return result


def check_rows(name: str, a: Tensor, b: Tensor, left: bool) -> None:
    """Raise if the number of rows (or columns) of right sides is not that of the equations."""
    n = a.shape[-1]
    if b.ndim < 2 or b.shape[-2 if left else -1] != n:
        raise ShapeError(
            f"linalg.{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({_sizes(a)} and {_sizes(b)})"
        )


def _sizes(x: Tensor) -> str:
    return "x".join(map(str, x.shape))


# --- tensors as linear maps -----------------------------------------------------------------------


def tensorinv(A: Operand, ind: int = 2) -> Tensor:
    """Return the inverse of a tensor, taken as a linear map onto its first `ind` dimensions.

    Parameters
    ----------
    A : Tensor
        The product of its first `ind` dimensions is that of the others.
    ind : int, default 2
        Number of leading dimensions that are the rows.

    Returns
    -------
    Tensor, shape ``A.shape[ind:] + A.shape[:ind]``

    Raises
    ------
    ShapeError
        If those products differ, or `ind` is not positive.
    LinAlgError
        If the map is singular.

    Notes
    -----
    Derivative: as for `inv`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.tensorinv(cr.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    x = floating(A)
    rows, others = x.shape[: max(ind, 0)], x.shape[max(ind, 0) :]
    count = prod(rows)
    if ind <= 0 or count != prod(others):
        raise ShapeError(
            "linalg.tensorinv: Expected ind to be positive and prod(A.shape[:ind]) to equal "
            f"prod(A.shape[ind:]), got A of shape {list(x.shape)} and ind={ind}"
        )
    matrix = shaping.reshape.apply(x, shape=(count, count))
    return shaping.reshape.apply(inv(matrix), shape=(*others, *rows))


def tensorsolve(A: Operand, B: Operand, dims: Any = None) -> Tensor:
    """Return X such that tensordot(A, X, X.ndim) = B.

    Parameters
    ----------
    A : Tensor, shape ``B.shape + X.shape``
        A square linear map.
    B : Tensor
        The right side.
    dims : sequence of ints, optional
        Dimensions of `A` to move to its end first.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If the map isn't square.
    LinAlgError
        If it is singular.

    Notes
    -----
    Derivative: as for `solve`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.tensorsolve(cr.eye(6).reshape(2, 3, 6), cr.ones(2, 3)).shape
    (6,)
    """
    a, b = with_common_dtype(floating(A), floating(B))
    if dims is not None:
        a = a.movedim(tuple(dims), tuple(range(a.ndim - len(dims), a.ndim)))
    shape, count = a.shape[b.ndim :], b.numel()
    if prod(shape) != count or prod(a.shape) != count * count:
        raise ShapeError(
            "linalg.tensorsolve: Expected self to satisfy the requirement prod(self.shape[other"
            f".ndim:]) == prod(self.shape[:other.ndim]), but got shapes {list(a.shape)} and "
            f"{list(b.shape)}"
        )
    matrix = shaping.reshape.apply(a, shape=(count, count))
    vector = shaping.reshape.apply(b, shape=(count,))
    return shaping.reshape.apply(solve(matrix, vector), shape=shape)


# --- triangular systems ---------------------------------------------------------------------------


def solve_triangular(
    A: Operand, B: Operand, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Return X, the solution of A X = B with triangular matrices A.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Matrices of which one triangle is read.
    B : Tensor, shape (..., n, k)
        Right sides.
    upper : bool
        Read the upper triangle, else the lower one.
    left : bool, default True
        If False, solve X A = B.
    unitriangular : bool, default False
        Take the diagonal as ones, without reading it.

    Returns
    -------
    Tensor, shape of `B`; batches broadcast

    Raises
    ------
    LinAlgError
        If there is a zero on a diagonal.
    ShapeError
        If the shapes don't fit.

    Notes
    -----
    Derivative: as for `solve` [1]_, in the triangle. Solved by LAPACK, of NumPy's OpenBLAS or of
    SciPy; without either recursively by halves, in products of matrices.

    References
    ----------
    .. [1] M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
       differentiation", Advances in Automatic Differentiation, 2008, 2.3.1.

    Examples
    --------
    >>> import chainrule as cr
    >>> A = cr.tensor([[2.0, 0.0], [1.0, 4.0]])
    >>> cr.linalg.solve_triangular(A, cr.tensor([[2.0], [5.0]]), upper=False)
    tensor([[1.],
            [1.]])
    """
    a, b = with_common_dtype(square(A, "solve_triangular"), matrices(B, "solve_triangular"))
    check_rows("solve_triangular", a, b, left)
    if left:
        return _solve_triangular(a, b, upper, unitriangular)
    return transposed(_solve_triangular(transposed(a), transposed(b), not upper, unitriangular))


def _solve_triangular(a: Tensor, b: Tensor, upper: bool, unit: bool = False) -> Tensor:
    result: Tensor = apply_lapack(
        "solve_triangular",
        solve_primitives.solve_triangular,
        SINGULAR_SYSTEM,
        a,
        b,
        trial="inv",
        upper=bool(upper),
        unit=bool(unit),
    )
    return result


def cholesky_solve(B: Operand, L: Operand, upper: bool = False) -> Tensor:
    """Return X, the solution of A X = B, from the Cholesky factor of A.

    Parameters
    ----------
    B : Tensor, shape (..., n, k)
        Right sides.
    L : Tensor, shape (..., n, n)
        The factor, as `cholesky` gives it.
    upper : bool, default False
        Whether the factor is the upper one.

    Returns
    -------
    Tensor, shape of `B`; batches broadcast

    Notes
    -----
    Derivative: through the two triangular systems that it solves.

    Examples
    --------
    >>> import chainrule as cr
    >>> L = cr.linalg.cholesky(cr.tensor([[4.0, 0.0], [0.0, 1.0]]))
    >>> cr.cholesky_solve(cr.tensor([[4.0], [3.0]]), L)
    tensor([[1.],
            [3.]])
    """
    b, factor = with_common_dtype(matrices(B, "cholesky_solve"), square(L, "cholesky_solve"))
    check_rows("cholesky_solve", factor, b, True)
    lower, upper_factor = (adjoint(factor), factor) if upper else (factor, adjoint(factor))
    return _solve_triangular(upper_factor, _solve_triangular(lower, b, False), True)


def cholesky_inverse(L: Operand, upper: bool = False) -> Tensor:
    """Return A⁻¹ from the Cholesky factor of A: `cholesky_solve` of the identity.

    Notes
    -----
    Derivative: as for `cholesky_solve`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cholesky_inverse(cr.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    factor = square(L, "cholesky_inverse")
    eye = namespace(factor._array).eye(factor.shape[-1], dtype=factor.dtype)
    return cholesky_solve(make(eye, None), factor, upper)
