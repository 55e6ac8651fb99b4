"""Eigenvalue and singular value decompositions."""

from __future__ import annotations

from typing import Any, NamedTuple

from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ArgumentError
from chainrule.linalg.arguments import apply_lapack, is_tracked, matrices, square
from chainrule.primitives import decompositions

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "svd", "svdvals"]

Array = Any


_NOT_CONVERGED = (
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
    "repeated eigenvalues."
)


class EighResult(NamedTuple):
    """Result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eigh(A: Operand, UPLO: str = "L") -> EighResult:
    """Return the eigenvalues and eigenvectors of Hermitian matrices, A = V diag(L) Vᴴ.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Symmetric or Hermitian matrices, of which one triangle is read.
    UPLO : {"L", "U"}
        The triangle that is read: the lower or the upper.

    Returns
    -------
    eigenvalues : Tensor, shape (..., n); real
        In ascending order.
    eigenvectors : Tensor, shape (..., n, n)
        Orthonormal columns, each defined up to a factor of size 1.

    Raises
    ------
    ArgumentError
        If `UPLO` is another letter.
    LinAlgError
        If a matrix holds nan or inf.

    Notes
    -----
    Derivatives: dL = diag(Vᴴ dA V) and dV = V (E ∘ Vᴴ dA V), with Eᵢⱼ = 1 / (Lⱼ - Lᵢ) [1]_, for
    Hermitian dA; a gradient is Hermitian, too, whichever triangle is read. Where eigenvalues
    coincide, their vectors can be rotated: a gradient that depends on them is inf or nan; one that
    depends on eigenvalues or on other vectors alone is finite and right. Functions must not depend
    on the free factors of vectors either.

    References
    ----------
    .. [1] M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
       differentiation", Advances in Automatic Differentiation, 2008, 3.1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.eigh(cr.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    x = square(A, "eigh")
    return EighResult(
        *apply_lapack("eigh", decompositions.eigh, _NOT_CONVERGED, x, upper=_is_upper(UPLO, "eigh"))
    )


def _is_upper(uplo: str, name: str) -> bool:
    letter = str(uplo).upper()
    if letter not in ("L", "U"):
        raise ArgumentError(
            f"linalg.{name}: Expected UPLO argument to be 'L' or 'U', but got {uplo!r}"
        )
    return letter == "U"


def eigvalsh(A: Operand, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of Hermitian matrices; the arguments are those of `eigh`.

    Notes
    -----
    Derivative: diag(Vᴴ dA V) with the eigenvectors V [1]_, which are computed if `A` requires grad.

    References
    ----------
    .. [1] M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
       differentiation", Advances in Automatic Differentiation, 2008, 3.1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.eigvalsh(cr.tensor([[0.0, 1.0], [1.0, 0.0]]))
    tensor([-1.,  1.])
    """
    x = square(A, "eigvalsh")
    upper = _is_upper(UPLO, "eigvalsh")
    if is_tracked(x):
        values: Tensor = apply_lapack(
            "eigvalsh", decompositions.eigh, _NOT_CONVERGED, x, upper=upper
        )[0]
        return values

    def alone(x: Tensor) -> Tensor:
        return make(namespace(x._array).linalg.eigvalsh(x._array, "U" if upper else "L"), None)

    values = apply_lapack("eigvalsh", alone, _NOT_CONVERGED, x, trial="eigvalsh")
    return values


class EigResult(NamedTuple):
    """Result of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eig(A: Operand) -> EigResult:
    """Return the eigenvalues and eigenvectors of square matrices, A V = V diag(L).

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Real or complex matrices.

    Returns
    -------
    eigenvalues : Tensor, shape (..., n); complex
        In no particular order.
    eigenvectors : Tensor, shape (..., n, n); complex
        Columns of length 1, each defined up to a factor of size 1.

    Raises
    ------
    LinAlgError
        If a matrix holds nan or inf.

    Notes
    -----
    Derivatives: with P = V⁻¹ dA V, dL = diag(P) and dV = V (E ∘ P), minus the part that would
    change the lengths [1]_. Where eigenvalues coincide: as for `eigh`.

    References
    ----------
    .. [1] C. Boeddeker, P. Hanebrink, L. Drude, J. Heymann, R. Haeb-Umbach, "On the computation of
       complex-valued gradients with application to statistically optimum beamforming",
       arXiv:1701.00392, 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.eig(cr.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([2.+0.j, 1.+0.j])
    """
    return EigResult(*apply_lapack("eig", decompositions.eig, _NOT_CONVERGED, square(A, "eig")))


def eigvals(A: Operand) -> Tensor:
    """Return the eigenvalues of square matrices; they are complex, and in no particular order.

    Notes
    -----
    Derivative: diag(V⁻¹ dA V) with the eigenvectors V [1]_.

    References
    ----------
    .. [1] M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
       differentiation", Advances in Automatic Differentiation, 2008, 3.1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.eigvals(cr.tensor([[0.0, 0.0], [0.0, 2.0]]))
    tensor([0.+0.j, 2.+0.j])
    """
    values: Tensor = apply_lapack(
        "eigvals", decompositions.eig, _NOT_CONVERGED, square(A, "eigvals")
    )[0]
    return values


class SVDResult(NamedTuple):
    """Result of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def svd(A: Operand, full_matrices: bool = True, *, driver: str | None = None) -> SVDResult:
    """Return the singular value decomposition of matrices, A = U diag(S) Vᴴ.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
        Real or complex matrices.
    full_matrices : bool, default True
        Whether `U` and `Vh` are square; else they have k = min(m, n) columns and rows.
    driver : None
        PyTorch's choice of a CUDA algorithm, which is not supported.

    Returns
    -------
    U : Tensor, shape (..., m, m) or (..., m, k)
    S : Tensor, shape (..., k); real
        In descending order.
    Vh : Tensor, shape (..., n, n) or (..., k, n)
        Vᴴ, not V.

    Raises
    ------
    ArgumentError
        If a driver is given.
    LinAlgError
        If a matrix holds nan or inf.

    Notes
    -----
    Derivatives: [1]_, and for complex numbers [2]_. Where singular values coincide, or are zero,
    a gradient that depends on their vectors is inf or nan, and one that doesn't is finite and
    right. Columns after the first k are defined up to a rotation; functions that don't depend on it
    can be differentiated through them, too (PyTorch drops that part). A function must not depend on
    the factors of size 1 that are free in each pair of vectors.

    References
    ----------
    .. [1] J. Townsend, "Differentiating the singular value decomposition", technical report, 2016.
    .. [2] Z.-Q. Wan, S.-X. Zhang, "Automatic differentiation for complex valued SVD",
       arXiv:1909.02659, 2019.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.svd(cr.tensor([[3.0, 0.0], [0.0, -4.0]])).S
    tensor([4., 3.])
    """
    _check_driver(driver, "svd")
    x = matrices(A, "svd")
    return SVDResult(
        *apply_lapack("svd", decompositions.svd, _NOT_CONVERGED, x, full=bool(full_matrices))
    )


def _check_driver(driver: str | None, name: str) -> None:
    if driver is not None:
        raise ArgumentError(
            f"linalg.{name}: keyword argument `driver=` is only supported on CUDA inputs with "
            f"PyTorch's algorithms, but got {driver!r}: leave it out"
        )


def svdvals(A: Operand, *, driver: str | None = None) -> Tensor:
    """Return the singular values of matrices in descending order; the arguments are those of `svd`.

    Notes
    -----
    Derivative: diag(Uᴴ dA V) with the vectors U and V [1]_, which are computed if `A` requires
    grad.

    References
    ----------
    .. [1] M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
       differentiation", Advances in Automatic Differentiation, 2008, 3.2.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linalg.svdvals(cr.tensor([[0.0, 1.0], [-2.0, 0.0]]))
    tensor([2., 1.])
    """
    _check_driver(driver, "svdvals")
    x = matrices(A, "svdvals")
    if is_tracked(x):
        values: Tensor = apply_lapack("svdvals", decompositions.svd, _NOT_CONVERGED, x, full=False)[
            1
        ]
        return values

    def alone(x: Tensor) -> Tensor:
        return make(namespace(x._array).linalg.svd(x._array, compute_uv=False), None)

    values = apply_lapack("svdvals", alone, _NOT_CONVERGED, x, trial="svd")
    return values
