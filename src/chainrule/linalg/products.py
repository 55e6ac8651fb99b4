"""Products of several matrices, cross products, Vandermonde matrices, diagonals and traces."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

from chainrule import ops
from chainrule.arguments import DTypeLike, Operand, cast, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.creation import eye
from chainrule.errors import ArgumentError, ShapeError
from chainrule.linalg.arguments import adjoint, with_common_dtype
from chainrule.linalg.solve import solve_triangular
from chainrule.ops.reductions import accumulator_dtype
from chainrule.primitives import elementwise

__all__ = [
    "chain_matmul",
    "cross",
    "diagonal",
    "householder_product",
    "multi_dot",
    "ormqr",
    "trace",
    "vander",
]


def householder_product(A: Operand, tau: Operand) -> Tensor:
    """Return the first columns of a product of Householder reflections, Π (I - τᵢ vᵢ vᵢᴴ).

    Parameters
    ----------
    A : Tensor, shape (..., m, n), m ≥ n
        The vectors vᵢ in the columns, below the diagonal: their elements on it are 1, and those
        above 0, whatever stands there. `geqrf` returns it.
    tau : Tensor, shape (..., k), k ≤ n
        The scales τᵢ.

    Returns
    -------
    Tensor, shape (..., m, n)

    Raises
    ------
    ShapeError
        If the shapes don't fit.

    Notes
    -----
    With V the matrix of the vectors, the product is I - V T Vᴴ, where T⁻¹ has the 1/τᵢ on its
    diagonal and the elements of VᴴV above it [1]_. Derivatives: those of this form.

    References
    ----------
    .. [1] R. Schreiber, C. Van Loan, "A storage-efficient WY representation for products of
       Householder transformations", SIAM J. Sci. Stat. Comput. 10(1), 1989; C. Puglisi, same
       journal, 13(3), 1992.

    Examples
    --------
    >>> import chainrule as cr
    >>> a, tau = cr.geqrf(cr.tensor([[3.0, 1.0], [4.0, 2.0], [0.0, 2.0]]))
    >>> q = cr.linalg.householder_product(a, tau)
    >>> cr.allclose(q.T @ q, cr.eye(2), atol=1e-6)
    True
    """
    a, scales = with_common_dtype(tensor_of(A), tensor_of(tau))
    if a.ndim < 2 or a.shape[-2] < a.shape[-1] or scales.shape[:-1] != a.shape[:-2]:
        raise ShapeError(
            "householder_product: expected A of shape (..., m, n) with m ≥ n and tau of shape "
            f"(..., k), got {list(a.shape)} and {list(scales.shape)}"
        )
    (m, n), k = a.shape[-2:], scales.shape[-1]
    if k > n:
        raise ShapeError(f"householder_product: tau has {k} elements for {n} columns of A")
    v, rows = _reflections(a, scales, n)
    return eye(m, n, dtype=a.dtype, device=a.device) - v @ rows


def _reflections(a: Tensor, tau: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """Return V and columns of T Vᴴ, where the product of the reflections is I - V T Vᴴ."""
    k = tau.shape[-1]
    v = ops.tril(a[..., :k], -1) + eye(a.shape[-2], k, dtype=a.dtype, device=a.device)
    rows = tau[..., None] * adjoint(v)
    inner = ops.triu(rows @ v, 1)  # I + D striu(VᴴV), without its diagonal
    return v, solve_triangular(inner, rows[..., :columns], upper=True, unitriangular=True)


def ormqr(
    input: Operand, tau: Operand, other: Operand, left: bool = True, transpose: bool = False
) -> Tensor:
    """Multiply matrices by a product Q of Householder reflections, without making Q.

    Parameters
    ----------
    input : Tensor, shape (..., m, k)
        The vectors of the reflections, as `householder_product` takes them. `geqrf` returns it.
    tau : Tensor, shape (..., k) or shorter
        The scales.
    other : Tensor, shape (..., m, n) if `left`, else (..., n, m)
        The matrices C to multiply.
    left : bool, default True
        Q C; C Q if False.
    transpose : bool, default False
        Qᴴ, with m rows and columns as well, in the place of Q.

    Returns
    -------
    Tensor, shape of `other`

    Raises
    ------
    ShapeError
        If the shapes don't fit.

    Notes
    -----
    In O(mnk) multiplications. Derivatives: those of `householder_product`.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[3.0, 1.0], [4.0, 2.0], [0.0, 2.0]])
    >>> a, tau = cr.geqrf(x)
    >>> cr.allclose(cr.ormqr(a, tau, x, transpose=True), cr.triu(a), atol=1e-6)
    True
    """
    a, scales = with_common_dtype(tensor_of(input), tensor_of(tau))
    a, c = with_common_dtype(a, tensor_of(other))
    fits = a.ndim > 1 < c.ndim and scales.shape[:-1] == a.shape[:-2] == c.shape[:-2]
    if not (
        fits
        and c.shape[-2 if left else -1] == a.shape[-2]
        and scales.shape[-1] <= min(a.shape[-2:])
    ):
        raise ShapeError(
            "ormqr: expected input of shape (..., m, k), tau of shape (..., k) and other of shape "
            f"(..., {'m, n' if left else 'n, m'}), got {list(a.shape)}, {list(scales.shape)} and "
            f"{list(c.shape)}"
        )
    v, rows = _reflections(a, scales.to(a.dtype), a.shape[-2])
    if transpose:
        v, rows = adjoint(rows), adjoint(v)
    return c - (v @ (rows @ c) if left else (c @ v) @ rows)


def multi_dot(tensors: Sequence[Operand]) -> Tensor:
    """Return the product of several matrices, multiplied in the order that takes the least work.

    Parameters
    ----------
    tensors : sequence of two or more Tensors
        Matrices; the first may be a row vector and the last a column vector.

    Returns
    -------
    Tensor, shape (m, n), without the dimension of a vector

    Raises
    ------
    ShapeError
        If the shapes don't fit.
    ArgumentError
        If there are fewer than two.

    Notes
    -----
    The order is found by dynamic programming [1]_. Derivatives: those of the products.

    References
    ----------
    .. [1] T. Cormen, C. Leiserson, R. Rivest, C. Stein, "Introduction to Algorithms", 15.2.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.multi_dot([cr.ones(2, 3), cr.ones(3, 4), cr.ones(4)])
    tensor([12., 12.])
    """
    factors = [tensor_of(t) for t in tensors]
    if len(factors) < 2:
        raise ArgumentError(f"multi_dot(): expected at least 2 tensors but got {len(factors)}")
    row, column = factors[0].ndim == 1, factors[-1].ndim == 1
    if row:
        factors[0] = ops.unsqueeze(factors[0], 0)
    if column:
        factors[-1] = ops.unsqueeze(factors[-1], 1)
    for i, factor in enumerate(factors):
        if factor.ndim != 2:
            raise ShapeError(
                f"multi_dot(): tensor {i} must be 2D but got {factor.ndim}D (the first and the "
                "last one may be 1D)"
            )
    sizes = [factors[0].shape[0], *[factor.shape[1] for factor in factors]]
    for i, factor in enumerate(factors):
        if factor.shape[0] != sizes[i]:
            raise ShapeError(
                f"multi_dot(): tensors {i - 1} and {i} with shapes {list(factors[i - 1].shape)} "
                f"and {list(factor.shape)} cannot be multiplied"
            )
    result = _multiply_chain(factors, _best_splits(sizes), 0, len(factors) - 1)
    if row and column:
        return result[0, 0]
    return result[0] if row else result[:, 0] if column else result


def chain_matmul(*matrices: Operand) -> Tensor:
    """Return the product of one or more matrices: PyTorch's older name for `multi_dot`.

    Raises
    ------
    ShapeError
        If one is no matrix, or their shapes don't fit.
    ArgumentError
        If there is none.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.chain_matmul(cr.ones(2, 3), cr.ones(3, 4), cr.ones(4, 1))
    tensor([[12.],
            [12.]])
    """
    if not matrices:
        raise ArgumentError("chain_matmul(): Expected one or more matrices")
    factors = [tensor_of(matrix) for matrix in matrices]
    for i, factor in enumerate(factors):
        if factor.ndim != 2:
            raise ShapeError(
                f"chain_matmul(): Tensor dimension is {factor.ndim}, expected 2 instead, of "
                f"matrix {i}: multi_dot takes vectors at the ends"
            )
    if len(factors) > 1:
        return multi_dot(factors)
    alone: Tensor = elementwise.clone.apply(factors[0])
    return alone


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return for each range of factors (first, last) the index of the last factor on the left."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    splits = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [
                cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            cost[i, j] = min(costs)
            splits[i, j] = i + costs.index(cost[i, j])
    return splits


def _multiply_chain(
    factors: list[Tensor], splits: dict[tuple[int, int], int], i: int, j: int
) -> Tensor:
    if i == j:
        return factors[i]
    k = splits[i, j]
    return ops.matmul(
        _multiply_chain(factors, splits, i, k), _multiply_chain(factors, splits, k + 1, j)
    )


def cross(input: Operand, other: Operand, *, dim: int = -1, axis: int | None = None) -> Tensor:
    """Return the cross products of vectors of three elements, by default along the last dimension.

    Parameters
    ----------
    input, other : Tensor, shapes (..., 3, ...) that broadcast
    dim : int, default -1
        The dimension of the vectors, counted after broadcasting. Also spelled `axis`.

    Returns
    -------
    Tensor, shape (..., 3, ...)

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
    >>> cr.linalg.cross(cr.tensor([1.0, 0.0, 0.0]), cr.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return ops.cross(input, other, dim=dim if axis is None else axis)


def vander(x: Operand, N: int | None = None) -> Tensor:
    """Return Vandermonde matrices: the powers of each element, from 0 on.

    Parameters
    ----------
    x : Tensor, shape (..., n)
        Numbers.
    N : int, optional
        Number of powers: n if left out.

    Returns
    -------
    Tensor, shape (..., n, N)
        int64 for integers and bools.

    Raises
    ------
    ArgumentError
        If `N` is less than 1.
    ShapeError
        If `x` is 0-d.

    Notes
    -----
    Derivative: j xʲ⁻¹ for the j-th power; 0 for the power 0, everywhere.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.vander(cr.tensor([2.0, 3.0]), N=3)
    tensor([[1., 2., 4.],
            [1., 3., 9.]])
    """
    x = tensor_of(x)
    if x.ndim == 0:
        raise ShapeError("linalg.vander: x must have at least one dimension, but it is 0-d")
    count = x.shape[-1] if N is None else index(N)
    if count < 1 and N is not None:
        raise ArgumentError(f"linalg.vander: N must be at least 1, but got {count}")
    xp = namespace(x._array)
    dtype = "int64" if x.dtype.kind in "iub" else x.dtype
    powers = make(xp.arange(count).astype(dtype), None)
    return elementwise.pow.apply(ops.unsqueeze(cast(x, dtype), -1), powers)


def diagonal(A: Operand, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return the diagonals of matrices, as a view: `chainrule.diagonal` of the last two dimensions.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Matrices.
    offset : int, default 0
        Number of the diagonal: 0 is the main one, positive numbers are above it.
    dim1, dim2 : int
        The dimensions of the rows and the columns.

    Returns
    -------
    Tensor, shape (..., k)

    Notes
    -----
    Derivative: 1 on the diagonal.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.diagonal(cr.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return ops.diagonal(A, offset=offset, dim1=dim1, dim2=dim2)


def trace(A: Operand, *, offset: int = 0, dtype: DTypeLike = None) -> Tensor:
    """Return the sums of the diagonals of matrices.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Matrices.
    offset : int, default 0
        Number of the diagonal: 0 is the main one, positive numbers are above it.
    dtype : dtype, optional
        Convert to this first.

    Returns
    -------
    Tensor, shape (...)
        Sums of integers are int64, those of unsigned ones uint64.

    Notes
    -----
    Derivative: 1 on the diagonal.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.trace(cr.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    parts = diagonal(A, offset=offset)
    return ops.sum(parts, dim=-1, dtype=accumulator_dtype(parts) if dtype is None else dtype)
