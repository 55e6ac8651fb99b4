"""Sample frequencies of transforms, and shifts of frequency 0 to the middle."""

from __future__ import annotations

import numpy as np

from chainrule.arguments import (
    DeviceLike,
    Dims,
    DTypeLike,
    Operand,
    dtype_or_default,
    either,
    leaf,
    many_dims,
    tensor_of,
)
from chainrule.autograd.tensor import Tensor
from chainrule.fft.arguments import check_points
from chainrule.primitives import shaping

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the elements of an `fft`, in their order.

    Parameters
    ----------
    n : int
        The number of points.
    d : float, default 1.0
        The sample spacing, a time or length; frequencies are in cycles per its unit.
    dtype : dtype, optional
        The default dtype if left out.
    device : device or str, optional
        The CPU if left out.
    requires_grad : bool, default False
        Record operations on the tensor.

    Returns
    -------
    Tensor, shape (n,)
        0, 1, …, then the negative ones, up to -1, divided by n d.

    Raises
    ------
    ShapeError
        If n < 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    steps = np.arange(check_points("fftfreq", n))
    steps[(n + 1) // 2 :] -= n
    return _frequencies(steps, n * d, dtype, device, requires_grad)


def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the elements of an `rfft`; the arguments are those of `fftfreq`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    steps = np.arange(check_points("rfftfreq", n) // 2 + 1)
    return _frequencies(steps, n * d, dtype, device, requires_grad)


def _frequencies(
    steps: np.ndarray, width: float, dtype: DTypeLike, device: DeviceLike, requires_grad: bool
) -> Tensor:
    return leaf((steps / width).astype(dtype_or_default(dtype)), device, requires_grad)


def fftshift(input: Operand, dim: Dims = None, *, axes: Dims = None) -> Tensor:
    """Return a spectrum with the frequency 0 moved to the middle.

    Parameters
    ----------
    input : Tensor
        In the order of `fftfreq`.
    dim : int or sequence of ints, optional
        Dimensions to shift: all if left out. Also spelled `axes`.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: the elements of the gradient moved back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.fftshift(cr.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    input = tensor_of(input)
    dims = _dims(input, either(dim, axes))
    return shaping.roll.apply(input, shift=tuple([input.shape[i] // 2 for i in dims]), axis=dims)


def ifftshift(input: Operand, dim: Dims = None, *, axes: Dims = None) -> Tensor:
    """Return a spectrum with the frequency 0 moved from the middle to the front.

    The arguments and the derivative are those of `fftshift`, whose inverse it is.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fft.ifftshift(cr.fft.fftshift(cr.fft.fftfreq(5)))
    tensor([ 0.0000,  0.2000,  0.4000, -0.4000, -0.2000])
    """
    input = tensor_of(input)
    dims = _dims(input, either(dim, axes))
    return shaping.roll.apply(input, shift=tuple([-(input.shape[i] // 2) for i in dims]), axis=dims)


def _dims(x: Tensor, dim: Dims) -> tuple[int, ...]:
    dims = many_dims(dim, x.ndim)
    return tuple(range(x.ndim)) if dims is None else dims
