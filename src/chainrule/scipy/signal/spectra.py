"""Trends, smoothing, analytic signals and frequency responses."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import fft, ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.interop.operands import are_known, arrays_of, is_tracked, tensor_of
from chainrule.scipy.operands import inexact
from chainrule.scipy.signal.arguments import TABLE, axis_last, padded
from chainrule.scipy.signal.convolutions import direct


def _times(x: Tensor, matrix: Any) -> Tensor:
    """Return the product with a constant matrix."""
    x, constant = inexact("signal", x, matrix.astype(np.finfo(x.dtype).dtype))
    return x @ constant


@TABLE.function("detrend", "linear")
def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False
) -> Tensor:
    """Return data without their mean or the straight lines of least squares between breakpoints."""
    if type not in ("linear", "l", "constant", "c"):
        raise ArgumentError(f"detrend: trend type must be 'linear' or 'constant', got {type!r}")
    (x,) = inexact("detrend", data)
    x = axis_last("detrend", x, axis)
    if type in ("constant", "c"):
        return ops.movedim(x - ops.mean(x, dim=-1, keepdim=True), -1, axis)
    n = x.shape[-1]
    ends = np.unique(np.concatenate(np.atleast_1d(0, arrays_of(bp), n)))
    if ends[-1] > n:
        raise ArgumentError(
            f"detrend: breakpoints must be less than length of data along given axis, {n}: got {bp}"
        )
    parts = []
    for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        times = np.arange(stop - start)
        basis, _ = np.linalg.qr(np.stack([np.ones(len(times)), times], -1))
        part = x[..., start:stop]
        parts.append(part - _times(_times(part, basis), basis.T))
    return ops.movedim(ops.cat(parts, dim=-1), -1, axis)


_PAD_MODES = {"mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}


@TABLE.function("savgol_filter", "linear")
def savgol_filter(
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: float = 0.0,
) -> Tensor:
    """Return a signal smoothed by polynomials of least squares in a moving window."""
    if mode not in (*_PAD_MODES, "interp"):
        raise ArgumentError(
            "savgol_filter: mode must be 'mirror', 'constant', 'nearest', 'wrap' or 'interp', got "
            f"{mode!r}"
        )
    (x,) = inexact("savgol_filter", x, real=True)
    x = axis_last("savgol_filter", x, axis)
    n, half = x.shape[-1], window_length // 2
    start = window_length - window_length % 2  # of what no edge disturbs
    settings = {"deriv": deriv, "delta": delta}
    weights = TABLE.scipys.savgol_coeffs(window_length, polyorder, **settings)
    _, kernel = inexact("savgol_filter", x, weights.astype(x.dtype))
    if mode == "interp":
        if window_length > n:
            raise ArgumentError(
                "savgol_filter: if mode is 'interp', window_length must be less than or equal to "
                f"the size of x, {n}: got {window_length}"
            )
        edges = TABLE.scipys.savgol_filter(
            np.eye(window_length), window_length, polyorder, axis=0, **settings
        )
        first = _times(x[..., :window_length], edges[:half].T)
        last = _times(x[..., n - window_length :], edges[window_length - half :].T)
        middle = direct(x, kernel, [(start, n - 2 * half)], 1) if n > 2 * half else x[..., :0]
        return ops.movedim(ops.cat([first, middle, last], dim=-1), -1, axis)
    longer = padded(x, half, half, _PAD_MODES[mode], cval)
    return ops.movedim(direct(longer, kernel, [(start, n)], 1), -1, axis)


@TABLE.function("hilbert", "linear")
def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Tensor:
    """Return the analytic signal, whose imaginary part is the Hilbert transform."""
    (x,) = inexact("hilbert", x, real=True)
    x = axis_last("hilbert", x, axis)
    n = x.shape[-1] if N is None else N
    if n <= 0:
        raise ArgumentError(f"hilbert: N must be positive, got {n}")
    weights = np.zeros(n, x.dtype)
    weights[0] = 1.0
    weights[1 : (n + 1) // 2] = 2.0
    if n % 2 == 0:
        weights[n // 2] = 1.0
    return ops.movedim(fft.ifft(fft.fft(x, n) * tensor_of(weights)), -1, axis)


@TABLE.function("freqz", "composite")
def freqz(
    b: Any,
    a: Any = 1,
    worN: Any = 512,
    whole: bool = False,
    plot: Any = None,
    fs: Any = 2 * np.pi,
    include_nyquist: bool = False,
) -> tuple[Any, Tensor]:
    """Return frequencies and the response of a filter there, by the coefficients.

    It has derivatives with respect to frequencies and the sampling frequency, too. Coefficients of
    several filters are along the first axis, and the others are of a shape that frequencies fit.
    """
    b, a = (ops.atleast_1d(x) for x in inexact("freqz", b, a))
    frequencies, angles = _frequencies(worN, whole, fs, include_nyquist)
    response = _on_circle(b, angles) / _on_circle(a, angles)
    if plot is not None:
        plot(frequencies, response)
    return frequencies, response


def _frequencies(given: Any, whole: bool, fs: Any, include_nyquist: bool) -> tuple[Any, Any]:
    """Return frequencies in the unit of `fs`, and in radians for each sample."""

    def spaced(fs: Any) -> Any:
        return TABLE.scipys.freqz([1.0], [1.0], arrays_of(given), whole, None, fs, include_nyquist)

    if is_tracked(given) or not are_known(given):
        found = ops.atleast_1d(*inexact("freqz", given))
        return found, found * (2 * np.pi / fs)
    if (is_tracked(fs) or not are_known(fs)) and np.ndim(given) == 0:
        angles, _ = spaced(2 * np.pi)
        return angles * (fs / (2 * np.pi)), angles
    found, _ = spaced(arrays_of(fs))
    return found, found * (2 * np.pi / fs)


def _on_circle(c: Tensor, angles: Any) -> Tensor:
    """Return the sum of c[k] exp(-i k w) for each angle w."""
    count, rest = c.shape[0], c.shape[1:]
    if not rest:
        parts = _powers(
            ops if isinstance(angles, Tensor) else np, angles[..., None] * np.arange(count), c
        )
        if c.is_complex():
            return ops.complex(*parts) @ c
        return ops.complex(*[part @ c for part in parts])
    ones = [1] * (len(rest) - angles.ndim)
    powers = np.arange(count).reshape(-1, *ones, *[1] * angles.ndim) * angles
    parts = _powers(ops if isinstance(angles, Tensor) else np, powers, c)
    if c.is_complex():
        return ops.sum(ops.complex(*parts) * c, dim=0)
    return ops.complex(*[ops.sum(part * c, dim=0) for part in parts])


def _powers(xp: Any, angles: Any, like: Tensor) -> list[Tensor]:
    """Return the real and imaginary parts of exp(-i w), in the precision of a tensor."""
    real = np.finfo(like.dtype).dtype
    return [cast(tensor_of(part), real) for part in (xp.cos(angles), -xp.sin(angles))]
