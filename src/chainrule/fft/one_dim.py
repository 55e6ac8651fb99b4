"""Fourier transforms along one dimension."""

from __future__ import annotations

from chainrule.arguments import Operand, either
from chainrule.autograd.tensor import Tensor
from chainrule.fft.arguments import c2c, c2r, norm_of, one_axis, opposite, r2c
from chainrule.ops.complex import conj

__all__ = ["fft", "hfft", "ifft", "ihfft", "irfft", "rfft"]


def fft(
    input: Operand,
    n: int | None = None,
    dim: int | None = None,
    norm: str | None = None,
    *,
    axis: int | None = None,
) -> Tensor:
    """Return the discrete Fourier transform along a dimension.

    Parameters
    ----------
    input : Tensor, shape (..., m, ...)
        Real or complex numbers. Integers are taken as numbers of the default dtype.
    n : int, optional
        The number of points: the input is cut, or filled up with zeros. m if left out.
    dim : int, default -1
        The dimension to transform. Also spelled `axis`.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Divide by the number of points in the inverse transform, by its root in both, or in this
        transform.

    Returns
    -------
    Tensor, shape (..., n, ...); complex
        out[k] = Σ x[j] exp(-2πi jk/n), in the precision of `input`: complex64 for float32.

    Raises
    ------
    ShapeError
        If n < 1, or `input` is a single number.
    ArgumentError
        If `norm` is another word.

    Notes
    -----
    Derivative: the transform is linear, and its own transpose; the gradient of `input` is the
    inverse transform, undivided, of the gradient of the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.fft(cr.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return c2c(one_axis("fft", input, n, either(dim, axis)), norm_of(norm))


def ifft(
    input: Operand,
    n: int | None = None,
    dim: int | None = None,
    norm: str | None = None,
    *,
    axis: int | None = None,
) -> Tensor:
    """Return the inverse discrete Fourier transform; the arguments are those of `fft`.

    Notes
    -----
    Derivative: that of `fft`, with the opposite sign of the exponent.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.ifft(cr.tensor([10 + 0j, -2 + 2j, -2 + 0j, -2 - 2j])).real
    tensor([1., 2., 3., 4.])
    """
    return c2c(one_axis("ifft", input, n, either(dim, axis)), norm_of(norm), inverse=True)


def rfft(
    input: Operand,
    n: int | None = None,
    dim: int | None = None,
    norm: str | None = None,
    *,
    axis: int | None = None,
) -> Tensor:
    """Return the Fourier transform of real numbers: the non-negative frequencies.

    Parameters
    ----------
    input : Tensor, shape (..., m, ...), real
        Integers are taken as numbers of the default dtype.
    n, dim, norm
        As for `fft`.

    Returns
    -------
    Tensor, shape (..., n // 2 + 1, ...); complex
        The frequencies from 0 to n/2. The others are their conjugates: out[-k] = conj(out[k]).

    Raises
    ------
    DTypeError
        If `input` is complex.
    ShapeError
        If n < 1, or `input` is a single number.

    Notes
    -----
    Derivative: an `irfft`, in which frequencies that represent two count half.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.rfft(cr.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return r2c(one_axis("rfft", input, n, either(dim, axis), real=True), norm_of(norm))


def irfft(
    input: Operand,
    n: int | None = None,
    dim: int | None = None,
    norm: str | None = None,
    *,
    axis: int | None = None,
) -> Tensor:
    """Return the real numbers whose spectrum has `input` as its first half: the inverse of `rfft`.

    Parameters
    ----------
    input : Tensor, shape (..., m, ...)
        The frequencies from 0 to n/2. The imaginary part of the first, and of the last one where
        n is even, is ignored.
    n : int, optional
        The number of points of the result: 2 (m - 1) if left out. `input` doesn't contain the
        parity of the original length: give n where it was odd.
    dim, norm
        As for `fft`.

    Returns
    -------
    Tensor, shape (..., n, ...); real

    Raises
    ------
    ShapeError
        If n < 1, or `input` is a single number.

    Notes
    -----
    Derivative: an `rfft`, in which frequencies that represent two count twice.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.irfft(cr.tensor([10 + 0j, -2 + 2j, -2 + 0j]))
    tensor([1., 2., 3., 4.])
    """
    return c2r(one_axis("irfft", input, n, either(dim, axis)), norm_of(norm))


def hfft(
    input: Operand,
    n: int | None = None,
    dim: int | None = None,
    norm: str | None = None,
    *,
    axis: int | None = None,
) -> Tensor:
    """Return the real spectrum of a Hermitian-symmetric signal, of which `input` is one half.

    The arguments are those of `irfft`.

    Notes
    -----
    Derivative: as for `irfft`, of the conjugate.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.hfft(cr.tensor([2.5 + 0j, -0.5 - 0.5j, -0.5 + 0j]))
    tensor([1., 2., 3., 4.])
    """
    return c2r(one_axis("hfft", conj(input), n, either(dim, axis)), opposite(norm))


def ihfft(
    input: Operand,
    n: int | None = None,
    dim: int | None = None,
    norm: str | None = None,
    *,
    axis: int | None = None,
) -> Tensor:
    """Return half of the signal with the real spectrum `input`; the arguments are those of `rfft`.

    Notes
    -----
    Derivative: as for `rfft`, of the conjugate.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.ihfft(cr.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([ 2.5000-0.0000j, -0.5000-0.5000j, -0.5000-0.0000j])
    """
    return conj(r2c(one_axis("ihfft", input, n, either(dim, axis), real=True), opposite(norm)))
