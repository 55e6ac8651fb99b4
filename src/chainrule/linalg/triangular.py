"""Solutions of triangular systems, and of those whose Cholesky factor is known."""

from __future__ import annotations

from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.linalg.arguments import adjoint, computed, matrices, of_one_dtype, square, transposed
from chainrule.linalg.solve import UNSOLVED, check_rows

__all__ = ["cholesky_inverse", "cholesky_solve", "solve_triangular"]


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
        Which triangle it is.
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
    Derivative: as for `solve` [1]_, in the triangle. Solved by halves: matrix products, and LAPACK
    for small triangles.

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
    a, b = of_one_dtype(square(A, "solve_triangular"), matrices(B, "solve_triangular"))
    check_rows("solve_triangular", a, b, left)
    if left:
        return _under_triangle(a, b, upper, unitriangular)
    return transposed(_under_triangle(transposed(a), transposed(b), not upper, unitriangular))


def _under_triangle(a: Tensor, b: Tensor, upper: bool, unit: bool = False) -> Tensor:
    result: Tensor = computed(
        "solve_triangular",
        "solve_triangular",
        UNSOLVED,
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
    Derivative: that of the two triangular systems it solves.

    Examples
    --------
    >>> import chainrule as cr
    >>> L = cr.linalg.cholesky(cr.tensor([[4.0, 0.0], [0.0, 1.0]]))
    >>> cr.cholesky_solve(cr.tensor([[4.0], [3.0]]), L)
    tensor([[1.],
            [3.]])
    """
    b, factor = of_one_dtype(matrices(B, "cholesky_solve"), square(L, "cholesky_solve"))
    check_rows("cholesky_solve", factor, b, True)
    lower, raised = (adjoint(factor), factor) if upper else (factor, adjoint(factor))
    return _under_triangle(raised, _under_triangle(lower, b, False), True)


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
