"""Window functions for spectra, periodic by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.arguments import DeviceLike, DTypeLike, dtype_or_default, leaf, lengths_of
from chainrule.autograd.tensor import Tensor
from chainrule.errors import DTypeError

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
]

Array = Any
Weights = Callable[[Array, int], Array]
"""Function of the sample numbers k = 0, 1, … and the number `last` of the sample at t = 1."""


def sampled(
    weights: Weights,
    count: int,
    periodic: bool,
    dtype: Any,
    device: DeviceLike,
    requires_grad: bool,
    single: float = 1.0,
) -> Tensor:
    """Return the samples of a window; a periodic one ends before t = 1.

    A window of one sample is `single`.
    """
    if count < 2:
        return leaf(np.full(count, single, dtype), device, requires_grad)
    values = weights(np.arange(count), count if periodic else count - 1)
    return leaf(values.astype(dtype), device, requires_grad)


def cosines(*a: float) -> Weights:
    """Return Σ (-1)ⁱ aᵢ cos 2πit."""
    signed = [(-1) ** i * float(factor) for i, factor in enumerate(a)]

    def weights(k: Array, last: int) -> Array:
        angle = 2 * np.pi * k / last
        return sum([factor * np.cos(i * angle) for i, factor in enumerate(signed)])

    return weights


def triangle(k: Array, last: int) -> Array:
    """Return 1 - |2t - 1|."""
    return 1 - np.abs(2 * k / last - 1)


def bell(beta: float) -> Weights:
    """Return I₀(beta √(1 - (2t - 1)²)) / I₀(beta)."""

    def weights(k: Array, last: int) -> Array:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * k / last - 1) ** 2, 0))) / np.i0(beta)

    return weights


def _window(
    name: str,
    length: int,
    periodic: bool,
    weights: Weights,
    dtype: DTypeLike,
    device: DeviceLike,
    requires_grad: bool,
) -> Tensor:
    (count,) = lengths_of((length,))
    kind = dtype_or_default(dtype)
    if kind.kind != "f":
        raise DTypeError(f"{name} expects floating point dtypes, got: {kind}")
    return sampled(weights, count, periodic, kind, device, requires_grad)


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the Hann window, (1 - cos 2πt) / 2.

    Parameters
    ----------
    window_length : int
        Number of samples.
    periodic : bool, default True
        Sample t from 0 to 1 without 1, for spectra; else including 1: symmetric, for filters.
    dtype : dtype, optional
        A real floating one; the default dtype if left out.
    device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape (window_length,)

    Raises
    ------
    DTypeError
        If the dtype is not a real floating one.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(
        "hann_window",
        window_length,
        periodic,
        cosines(0.5, 0.5),
        dtype,
        device,
        requires_grad,
    )


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the Hamming window, alpha - beta · cos(2π t); otherwise as `hann_window`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window(
        "hamming_window",
        window_length,
        periodic,
        cosines(alpha, beta),
        dtype,
        device,
        requires_grad,
    )


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the Blackman window, 0.42 - 0.5 cos(2π t) + 0.08 cos(4π t), as `hann_window` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.blackman_window(4).abs()
    tensor([1.3878e-17, 3.4000e-01, 1.0000e+00, 3.4000e-01])
    """

    weights = cosines(0.42, 0.5, 0.08)
    return _window(
        "blackman_window", window_length, periodic, weights, dtype, device, requires_grad
    )


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the Bartlett window, a triangle: 1 - |2 t - 1|; otherwise as `hann_window`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(
        "bartlett_window",
        window_length,
        periodic,
        triangle,
        dtype,
        device,
        requires_grad,
    )


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    layout: Any = None,  # PyTorch's, without effect
) -> Tensor:
    """Return the Kaiser window, I₀(beta √(1 - (2 t - 1)²)) / I₀(beta), as `hann_window` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.kaiser_window(4, beta=5.0)
    tensor([0.0367, 0.5529, 1.0000, 0.5529])
    """
    return _window(
        "kaiser_window", window_length, periodic, bell(beta), dtype, device, requires_grad
    )
