"""The functions of `numpy.linalg` as NumPy calls them, for tensors: `np.linalg.inv(tensor)`.

Most are those of `chainrule.linalg`; below are the ones whose arguments or results NumPy has
otherwise.
"""

from __future__ import annotations

from typing import Any

from chainrule import linalg, ops
from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor

_SAME = """
    cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power
    matrix_rank matrix_transpose multi_dot norm outer pinv slogdet svdvals tensordot tensorinv trace
    vecdot vector_norm
"""

globals().update({name: getattr(linalg, name) for name in _SAME.split()})


def solve(a: Operand, b: Operand) -> Tensor:
    """Return the solution of a x = b, where `b` is a vector only if it is 1-d."""
    right, ndim = tensor_of(b), tensor_of(a).ndim
    if right.ndim == 1 or right.ndim >= ndim:
        return linalg.solve(a, right)
    return linalg.solve(a, ops.reshape(right, (1,) * (ndim - right.ndim) + right.shape))


def tensorsolve(a: Operand, b: Operand, axes: Any = None) -> Tensor:
    """Return x such that tensordot(a, x, x.ndim) = b."""
    return linalg.tensorsolve(a, b, axes)


def qr(a: Operand, mode: str = "reduced") -> Any:
    """Return Q and R; for mode "r", R alone."""
    result = linalg.qr(a, mode)
    return result.R if mode == "r" else result


def svd(
    a: Operand, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Return U, S and Vh, or S alone. A Hermitian matrix is factored like any other."""
    return linalg.svd(a, full_matrices) if compute_uv else linalg.svdvals(a)


def lstsq(a: Operand, b: Operand, rcond: float | None = None) -> Any:
    """Return the solution, residuals, rank and singular values of least squares."""
    return linalg.lstsq(a, b, rcond, driver="gelsd")
