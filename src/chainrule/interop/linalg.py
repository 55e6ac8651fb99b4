"""Linear algebra and Fourier transforms, with the arguments of NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule import fft, linalg, ops
from chainrule.arguments import floating
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.errors import AutogradError, LinAlgError, MissingRuleError
from chainrule.interop.operands import may_hold
from chainrule.linalg.arguments import square
from chainrule.primitives import solve


class EigResult(NamedTuple):
    """Eigenvalues and, in columns, eigenvectors."""

    eigenvalues: Tensor
    eigenvectors: Tensor


_EIG_IS_COMPLEX = np.lib.NumpyVersion(np.__version__) >= "2.5.0"
"""Whether NumPy returns complex eigenvalues even if all of a real matrix are real."""


def _has_real_eigenvalues(a: Tensor, values: Tensor) -> bool:
    if _EIG_IS_COMPLEX or a.is_complex():
        return False
    if not is_known(values._array):
        raise AutogradError(
            "numpy.linalg.eig, eigvals: whether a real matrix has real eigenvalues depends on "
            "values, which a compiled function doesn't know, nor does vmap: take "
            "chainrule.linalg.eig, whose results are complex, or eigh of a symmetric matrix"
        )
    return not bool((values.imag != 0).any())


def eigvals(a: Tensor) -> Tensor:
    """Return the eigenvalues; before NumPy 2.5, as real numbers if all of a real matrix are."""
    values = linalg.eigvals(a)
    return ops.real(values) if _has_real_eigenvalues(a, values) else values


def eig(a: Tensor) -> EigResult:
    """Return eigenvalues and eigenvectors; before NumPy 2.5, as real numbers as in `eigvals`."""
    values, vectors = linalg.eig(a)
    if _has_real_eigenvalues(a, values):
        return EigResult(ops.real(values), ops.real(vectors))
    return EigResult(values, vectors)


def lstsq(
    a: Tensor, b: Tensor, rcond: float | None = None
) -> tuple[Tensor, Tensor, np.int32, Tensor]:
    """Return the least-squares solution, the residuals, the rank and the singular values."""
    columns = b if b.ndim == 2 else b[:, None]
    solution, residuals, rank, singular = linalg.lstsq(a, columns, rcond, driver="gelsd")
    solution = solution if b.ndim == 2 else solution[:, 0]
    return solution, residuals, np.int32(int(rank)), singular


def svd(
    a: Tensor, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Return the singular value decomposition, or the singular values alone."""
    if hermitian:
        a = solve.hermitian.apply(square(a, "svd"))
    return linalg.svd(a, full_matrices) if compute_uv else linalg.svdvals(a)


def pinv(a: Tensor, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """Return the pseudo-inverse."""
    cut = rcond if rtol is None else rtol
    # NumPy's default for rcond differs from that for rtol, which is the array API's.
    if cut is None:
        cut = 1e-15 if rtol is None else np.finfo(floating(a).dtype).eps * max(a.shape[-2:])
    return linalg.pinv(a, rtol=cut, hermitian=hermitian)


def qr(a: Tensor, mode: str = "reduced") -> Any:
    """Return the factors Q and R, or R alone."""
    if mode not in ("reduced", "complete", "r"):
        raise MissingRuleError(
            f"numpy.linalg.qr of a Tensor with mode {mode!r} has no rule in chainrule: the modes "
            "are reduced, complete and r"
        )
    result = linalg.qr(a, mode)
    return result.R if mode == "r" else result


def cond(x: Tensor, p: Any = None) -> Tensor:
    """Return the condition number: inf for singular matrices, those of zeros among them."""
    if 0 in x.shape[-2:]:
        raise LinAlgError(f"cond is not defined on empty arrays: the shape is {list(x.shape)}")
    with np.errstate(invalid="ignore"):
        found = linalg.cond(x, p)
    missing = ops.isnan(found)
    if not may_hold(missing):
        return found
    has_nan = ops.any(ops.isnan(x), axis=(-2, -1))
    return ops.where(ops.logical_and(missing, ops.logical_not(has_nan)), np.inf, found)


def tensorsolve(a: Tensor, b: Tensor, axes: Any = None) -> Tensor:
    """Return the solution of a tensor equation."""
    return linalg.tensorsolve(a, b, dims=axes)


# --- Fourier transforms ---------------------------------------------------------------------------


def of_planes(name: str) -> Callable[..., Tensor]:
    """Return NumPy's transform along two axes, which takes None for all axes."""
    along_two: Callable[..., Tensor] = getattr(fft, name)
    along_all: Callable[..., Tensor] = getattr(fft, name[:-1] + "n")

    def transform(a: Tensor, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Tensor:
        return (along_all if axes is None else along_two)(a, s=s, axes=axes, norm=norm)

    return transform
