"""The parts of complex numbers."""

from __future__ import annotations

from chainrule.arguments import RECORDERS, Operand, tensor_of
from chainrule.autograd.tensor import Tensor

__all__ = ["conj", "imag", "real"]


def conj(x: Operand, /) -> Tensor:
    """Return the complex conjugate of each element; a real tensor as it is.

    Parameters
    ----------
    x : Tensor
        Complex or real numbers.

    Returns
    -------
    Tensor, shape and dtype of `x`

    Notes
    -----
    Derivative: not holomorphic; the gradient ∂L/∂z* of a real L is conjugated.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.conj(cr.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    x = tensor_of(x)
    return RECORDERS["conj"](x) if x.is_complex() else x


def real(x: Operand, /) -> Tensor:
    """Return the real part of each element; a real tensor as it is.

    Parameters
    ----------
    x : Tensor
        Complex or real numbers.

    Returns
    -------
    Tensor, shape of `x`; real

    Notes
    -----
    Derivative: the gradient of a real L with respect to z is ∂L/∂(Re z).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.real(cr.tensor([1 + 2j]))
    tensor([1.])
    """
    x = tensor_of(x)
    return RECORDERS["real"](x) if x.is_complex() else x


def imag(x: Operand, /) -> Tensor:
    """Return the imaginary part of each element of a complex tensor.

    Parameters
    ----------
    x : Tensor
        Complex numbers.

    Returns
    -------
    Tensor, shape of `x`; real

    Raises
    ------
    RuntimeError
        If `x` is real.

    Notes
    -----
    Derivative: the gradient of a real L with respect to z is i ∂L/∂(Im z).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.imag(cr.tensor([1 + 2j]))
    tensor([2.])
    """
    x = tensor_of(x)
    if not x.is_complex():
        raise RuntimeError(
            f"imag is not implemented for tensors with non-complex dtypes, got {x.dtype}: the "
            "imaginary part of real numbers is zeros_like(x)"
        )
    return RECORDERS["imag"](x)
