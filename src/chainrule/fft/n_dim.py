"""Fourier transforms along several dimensions."""

from __future__ import annotations

from chainrule.arguments import Dims, Operand, either
from chainrule.autograd.tensor import Tensor
from chainrule.fft import n_dim
from chainrule.fft.arguments import Points, c2c, c2r, many_axes, norm_of, opposite, r2c
from chainrule.ops.complex import conj

__all__ = [
    "fftn",
    "hfftn",
    "ifftn",
    "ihfftn",
    "irfftn",
    "rfftn",
    "fft2",
    "hfft2",
    "ifft2",
    "ihfft2",
    "irfft2",
    "rfft2",
]


def fftn(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return the discrete Fourier transform along several dimensions.

    Parameters
    ----------
    input : Tensor
        Real or complex numbers. Integers are taken as numbers of the default dtype.
    s : sequence of ints, optional
        The number of points along each of `dim`: the input is cut, or filled up with zeros; -1
        leaves a dimension as it is.
    dim : sequence of ints, optional
        The dimensions to transform: the last ones if `s` is given, else all. Also spelled `axes`.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Divide by the number of points in the inverse transform, by its root in both, or in this
        transform.

    Returns
    -------
    Tensor, shape of `input` but for `s`; complex
        In the precision of `input`: complex64 for float32.

    Raises
    ------
    ShapeError
        If a number of points is not positive, or `s` and `dim` differ in length.
    ArgumentError
        If `norm` is another word, or a dimension is named twice.

    Notes
    -----
    Derivative: the transform is linear, and its own transpose; the gradient of `input` is the
    inverse transform, undivided, of the gradient of the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.fftn(cr.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """
    return c2c(many_axes("fftn", input, s, either(dim, axes)), norm_of(norm))


def ifftn(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return the inverse transform along several dimensions; the arguments are those of `fftn`.

    Notes
    -----
    Derivative: that of `fftn`, with the opposite sign of the exponent.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.ifftn(cr.tensor([[10.0, -2.0], [-4.0, 0.0]])).real
    tensor([[1., 2.],
            [3., 4.]])
    """
    return c2c(many_axes("ifftn", input, s, either(dim, axes)), norm_of(norm), inverse=True)


def rfftn(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return the transform of real numbers along several dimensions: half of it along the last one.

    Parameters
    ----------
    input : Tensor, real
        Integers are taken as numbers of the default dtype.
    s, dim, norm
        As for `fftn`. The last one of `dim` has the half spectrum.

    Returns
    -------
    Tensor; complex
        Along the last of `dim` there are n // 2 + 1 frequencies for n points.

    Raises
    ------
    DTypeError
        If `input` is complex.
    ShapeError
        If there is no dimension to transform, a number of points is not positive, or `s` and
        `dim` differ in length.

    Notes
    -----
    Derivative: an `irfftn`, in which frequencies that represent two count half.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.rfftn(cr.tensor([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]])).shape
    (2, 2)
    """
    return r2c(many_axes("rfftn", input, s, either(dim, axes), real=True), norm_of(norm))


def irfftn(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return the real numbers whose spectrum has `input` as its first half: the inverse of `rfftn`.

    Parameters
    ----------
    input : Tensor
        Along the last of `dim`, the frequencies from 0 to n/2.
    s, dim, norm
        As for `fftn`; `s` is the shape of the result, whose last size is 2 (m - 1) if left out.

    Returns
    -------
    Tensor; real

    Raises
    ------
    ShapeError
        If there is no dimension to transform, a number of points is not positive, or `s` and
        `dim` differ in length.

    Notes
    -----
    Derivative: an `rfftn`, in which frequencies that represent two count twice.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.irfftn(cr.tensor([[10.0, -2.0], [-4.0, 0.0]]))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return c2r(many_axes("irfftn", input, s, either(dim, axes)), norm_of(norm))


def hfftn(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return the real spectrum of a signal of which `input` is half along the last dimension.

    The arguments are those of `irfftn`; the signal's other half is the conjugate of `input`.

    Notes
    -----
    Derivative: as for `irfftn`, of the conjugate.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.hfftn(cr.tensor([[2.5, -0.5], [-1.0, 0.0]]))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return c2r(many_axes("hfftn", conj(input), s, either(dim, axes)), opposite(norm))


def ihfftn(
    input: Operand,
    s: Points = None,
    dim: Dims = None,
    norm: str | None = None,
    *,
    axes: Dims = None,
) -> Tensor:
    """Return half of the signal whose spectrum is `input`, real; the arguments are `rfftn`'s.

    Notes
    -----
    Derivative: as for `rfftn`, of the conjugate.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.ihfftn(cr.tensor([[1.0, 2.0], [3.0, 4.0]])).real
    tensor([[ 2.5000, -0.5000],
            [-1.0000,  0.0000]])
    """
    return conj(r2c(many_axes("ihfftn", input, s, either(dim, axes), real=True), opposite(norm)))


# --- transforms along two dimensions --------------------------------------------------------------


def _two_axes(dim: Dims, axes: Dims) -> Dims:
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
    return n_dim.fftn(input, s, _two_axes(dim, axes), norm)


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
    return n_dim.ifftn(input, s, _two_axes(dim, axes), norm)


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
    return n_dim.rfftn(input, s, _two_axes(dim, axes), norm)


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
    return n_dim.irfftn(input, s, _two_axes(dim, axes), norm)


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
    return n_dim.hfftn(input, s, _two_axes(dim, axes), norm)


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
    return n_dim.ihfftn(input, s, _two_axes(dim, axes), norm)
