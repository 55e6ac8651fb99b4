"""Fourier transforms along two dimensions: the last two, if none are named."""

from __future__ import annotations

from chainrule.arguments import Dims, Operand, either
from chainrule.autograd.tensor import Tensor
from chainrule.fft import n_dim
from chainrule.fft.arguments import Points

__all__ = ["fft2", "hfft2", "ifft2", "ihfft2", "irfft2", "rfft2"]


def _plane(dim: Dims, axes: Dims) -> Dims:
    chosen: Dims = either(dim, axes)
    return (-2, -1) if chosen is None else chosen


def fft2(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return the discrete Fourier transform, along two dimensions.

    The arguments and the derivative are those of `fftn`, but `dim` is (-2, -1) if left out.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cr.fft.fft2(x).equal(cr.fft.fftn(x))
    True
    """
    return n_dim.fftn(input, s, _plane(dim, axes), norm)


def ifft2(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return the inverse Fourier transform, along two dimensions.

    The arguments and the derivative are those of `ifftn`, but `dim` is (-2, -1) if left out.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[10.0, -2.0], [-4.0, 0.0]])
    >>> cr.fft.ifft2(x).equal(cr.fft.ifftn(x))
    True
    """
    return n_dim.ifftn(input, s, _plane(dim, axes), norm)


def rfft2(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return half of the Fourier transform of real numbers, along two dimensions.

    The arguments and the derivative are those of `rfftn`, but `dim` is (-2, -1) if left out.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cr.fft.rfft2(x).equal(cr.fft.rfftn(x))
    True
    """
    return n_dim.rfftn(input, s, _plane(dim, axes), norm)


def irfft2(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return the real numbers of half a spectrum, along two dimensions.

    The arguments and the derivative are those of `irfftn`, but `dim` is (-2, -1) if left out.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[10.0, -2.0], [-4.0, 0.0]])
    >>> cr.fft.irfft2(x).equal(cr.fft.irfftn(x))
    True
    """
    return n_dim.irfftn(input, s, _plane(dim, axes), norm)


def hfft2(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return the real spectrum of half a signal, along two dimensions.

    The arguments and the derivative are those of `hfftn`, but `dim` is (-2, -1) if left out.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[2.5, -0.5], [-1.0, 0.0]])
    >>> cr.fft.hfft2(x).equal(cr.fft.hfftn(x))
    True
    """
    return n_dim.hfftn(input, s, _plane(dim, axes), norm)


def ihfft2(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return half of the signal of a real spectrum, along two dimensions.

    The arguments and the derivative are those of `ihfftn`, but `dim` is (-2, -1) if left out.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cr.fft.ihfft2(x).equal(cr.fft.ihfftn(x))
    True
    """
    return n_dim.ihfftn(input, s, _plane(dim, axes), norm)
