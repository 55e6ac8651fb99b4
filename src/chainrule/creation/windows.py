"""Windows for spectra: periodic ones if not asked else."""

from __future__ import annotations

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


def _window(
    name: str,
    length: int,
    periodic: bool,
    weights: Any,
    dtype: DTypeLike,
    device: DeviceLike,
    requires_grad: bool,
) -> Tensor:
    """Return ``weights(t)`` at places t from 0 to 1: the last is left out of a periodic window."""
    (count,) = lengths_of((length,))
    kind = dtype_or_default(dtype)
    if kind.kind != "f":
        raise DTypeError(f"{name} expects floating point dtypes, got: {kind}")
    if count < 2:
        return leaf(np.ones(count, kind), device, requires_grad)
    values = weights(np.arange(count) / (count if periodic else count - 1))
    return leaf(values.astype(kind), device, requires_grad)


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the Hann window, sin²(π t).

    Parameters
    ----------
    window_length : int
        How many values.
    periodic : bool, default True
        Let t go from 0 to 1 without 1, as spectra want it; else up to 1: symmetric, as filters do.
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
        lambda t: np.sin(np.pi * t) ** 2,
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
) -> Tensor:
    """Return the Hamming window, alpha - beta · cos(2π t); the rest is as of `hann_window`.

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
        lambda t: alpha - beta * np.cos(2 * np.pi * t),
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
) -> Tensor:
    """Return the Blackman window, 0.42 - 0.5 cos(2π t) + 0.08 cos(4π t), as `hann_window` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.blackman_window(4).abs()
    tensor([1.3878e-17, 3.4000e-01, 1.0000e+00, 3.4000e-01])
    """

    def weights(t: Any) -> Any:
        return 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t)

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
) -> Tensor:
    """Return the Bartlett window, a triangle: 1 - |2 t - 1|; the rest is as of `hann_window`.

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
        lambda t: 1 - np.abs(2 * t - 1),
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
) -> Tensor:
    """Return the Kaiser window, I₀(beta √(1 - (2 t - 1)²)) / I₀(beta), as `hann_window` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.kaiser_window(4, beta=5.0)
    tensor([0.0367, 0.5529, 1.0000, 0.5529])
    """

    def weights(t: Any) -> Any:
        return np.i0(beta * np.sqrt(1 - (2 * t - 1) ** 2)) / np.i0(beta)

    return _window("kaiser_window", window_length, periodic, weights, dtype, device, requires_grad)
