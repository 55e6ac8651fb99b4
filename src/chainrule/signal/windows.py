"""Window functions, symmetric by default."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from chainrule.arguments import DeviceLike, DTypeLike, dtype_or_default
from chainrule.autograd.tensor import Tensor
from chainrule.creation.windows import Weights, bell, cosines, sampled, triangle
from chainrule.errors import ArgumentError, DTypeError

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]

Array = Any


def _window(
    name: str,
    M: int,
    sym: bool,
    weights: Weights,
    dtype: DTypeLike,
    device: DeviceLike,
    requires_grad: bool,
    single: float = 1.0,
) -> Tensor:
    """Return the samples of a window; a window of one sample is `single`."""
    count = index(M)
    if count < 0:
        raise ArgumentError(f"{name} requires non-negative window length, got M={count}")
    kind = dtype_or_default(dtype)
    if kind.kind != "f":
        raise DTypeError(f"{name} expects float32, float64 or float16 dtypes, got: {kind}")
    return sampled(weights, count, not sym, kind, device, requires_grad, single)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the Hann window, (1 - cos 2πt) / 2.

    Parameters
    ----------
    M : int
        Number of samples.
    sym : bool, default True
        Sample t from 0 to 1; if False, without 1: periodic, for spectra.
    dtype : dtype, optional
        A real floating one; the default dtype if left out.
    device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape (M,)
        A window of one sample is 1.

    Raises
    ------
    DTypeError
        If the dtype is not a real floating one.
    ArgumentError
        If M is negative.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signal.windows.hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, device=device, requires_grad=requires_grad
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the Hamming window, 0.54 - 0.46 cos 2πt; the arguments are those of `hann`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the window alpha - (1 - alpha) cos 2πt; the other arguments are those of `hann`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return general_cosine(
        M,
        a=(alpha, 1 - alpha),
        sym=sym,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the Blackman window, of three cosines; the arguments are those of `hann`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signal.windows.blackman(5)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """
    a = (0.42, 0.5, 0.08)
    return general_cosine(M, a=a, sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return Nuttall's window, of four cosines [1]_; the arguments are those of `hann`.

    References
    ----------
    .. [1] A. Nuttall, "Some windows with very good sidelobe behavior", IEEE Trans. ASSP 29(1),
       1981, 84–91.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signal.windows.nuttall(5)[1:4]
    tensor([0.2270, 1.0000, 0.2270])
    """
    a = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return general_cosine(M, a=a, sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def general_cosine(
    M: int,
    *,
    a: Sequence[float],
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the window Σ (-1)ⁱ aᵢ cos 2πit.

    Parameters
    ----------
    M, sym, dtype, device, requires_grad
        As for `hann`.
    a : sequence of numbers
        Coefficients of the cosines, from frequency 0 on.

    Returns
    -------
    Tensor, shape (M,)

    Raises
    ------
    ArgumentError
        If there are no coefficients.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    if not len(a):
        raise ArgumentError("general_cosine: Coefficients cannot be empty: give one number in a")
    return _window("general_cosine", M, sym, cosines(*a), dtype, device, requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the Bartlett window, a triangle: 1 - |2t - 1|; the arguments are those of `hann`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("bartlett", M, sym, triangle, dtype, device, requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the cosine window, half a period of a sine; the arguments are those of `hann`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """

    def weights(k: Array, last: int) -> Array:
        return np.sin(np.pi * (k + 0.5) / (last + 1))

    return _window("cosine", M, sym, weights, dtype, device, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the Gaussian window, exp(-n² / 2 std²) at n samples from the middle.

    Parameters
    ----------
    M, sym, dtype, device, requires_grad
        As for `hann`.
    std : number, default 1
        Standard deviation, in samples.

    Returns
    -------
    Tensor, shape (M,)

    Raises
    ------
    ArgumentError
        If `std` is not positive.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ArgumentError(f"gaussian: Standard deviation must be positive, got: {std} instead.")

    def weights(k: Array, last: int) -> Array:
        return np.exp(-(((k - last / 2) / std) ** 2) / 2)

    return _window("gaussian", M, sym, weights, dtype, device, requires_grad)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the exponential window, exp(-n / tau) at n samples from its centre.

    Parameters
    ----------
    M, sym, dtype, device, requires_grad
        As for `hann`.
    center : number, optional
        Position of the centre, in samples from 0: by default the middle, as in symmetric windows.
    tau : number, default 1
        Decay length, in samples: the window is 1/e at this distance.

    Returns
    -------
    Tensor, shape (M,)

    Raises
    ------
    ArgumentError
        If `tau` is not positive, or a symmetric window is to have another centre.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signal.windows.exponential(3, center=0, sym=False)
    tensor([1.0000, 0.3679, 0.1353])
    """
    if tau <= 0:
        raise ArgumentError(f"exponential: Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ArgumentError(
            "exponential: Center must be None for symmetric windows: give sym=False with it"
        )

    def weights(k: Array, last: int) -> Array:
        return np.exp(-np.abs(k - (last / 2 if center is None else center)) / tau)

    single = float(np.exp(-abs(center or 0) / tau))
    return _window("exponential", M, sym, weights, dtype, device, requires_grad, single)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the Kaiser window, I₀(beta √(1 - (2t - 1)²)) / I₀(beta).

    Parameters
    ----------
    M, sym, dtype, device, requires_grad
        As for `hann`.
    beta : number, default 12
        Shape: 0 gives a rectangle, larger numbers narrower bells.

    Returns
    -------
    Tensor, shape (M,)

    Raises
    ------
    ArgumentError
        If `beta` is negative.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signal.windows.kaiser(3, beta=1)
    tensor([0.7898, 1.0000, 0.7898])
    """
    if beta < 0:
        raise ArgumentError(f"kaiser: beta must be non-negative, got: {beta} instead.")
    return _window("kaiser", M, sym, bell(beta), dtype, device, requires_grad)
