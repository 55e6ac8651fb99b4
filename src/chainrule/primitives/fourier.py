"""Discrete Fourier transforms: complex to complex, real to complex, complex to real.

`axes` is a tuple of different non-negative ints here; the half spectrum is along the last one.
`norm` is "backward", "ortho" or "forward": where to divide by the number of points.
"""

from __future__ import annotations

from array import array
from functools import cache
from typing import Any

from chainrule.primitives.primitive import applied, is_complex, linear, name_of

Array = Any
Axes = tuple[int, ...]

OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm for which the inverse transform has the same factor."""


def _axis_slice(axis: int, part: slice) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, part, ...)


def _transformed(xp: Any, name: str, x: Array, axes: Axes, **settings: Any) -> Array:
    """Return a transform of the namespace along one axis, or several."""
    if len(axes) > 1:
        return getattr(xp.fft, f"{name}n")(x, axes=axes, **settings)
    return getattr(xp.fft, name)(x, axis=axes[0], **settings)


# --- complex to complex ---------------------------------------------------------------------------


def _full_spectrum(xp: Any, x: Array, axis: int, norm: str, inverse: bool) -> Array:
    """Return the full spectrum of real input: its second half is the conjugate of the first."""
    n = x.shape[axis]
    half = xp.fft.rfft(x, axis=axis, norm=OPPOSITE[norm] if inverse else norm)
    rest = half[_axis_slice(axis, slice(1, n - n // 2))]
    spectrum = xp.concat([half, xp.conj(xp.flip(rest, axis=axis))], axis=axis)
    return xp.conj(spectrum) if inverse else spectrum


def _c2c(xp: Any, x: Array, *, axes: Axes, norm: str, inverse: bool) -> Array:
    if not is_complex(x):
        x = _full_spectrum(xp, x, axes[-1], norm, inverse)
        axes = axes[:-1]
    return _transformed(xp, "ifft" if inverse else "fft", x, axes, norm=norm) if axes else x


def _c2c_adjoint(xp: Any, g: Array, x_dtype: Any, *, axes: Axes, norm: str, inverse: bool) -> Array:
    # exp(-2πi jk/n) is symmetric in j and k: the transform is its own transpose.
    back = applied(fft_c2c, xp)(g, axes=axes, norm=norm, inverse=inverse)
    return back if "complex" in name_of(x_dtype) else xp.real(back)


fft_c2c = linear("fft_c2c", _c2c_adjoint, forward=_c2c, label="FftC2CBackward0")

# --- real to complex, and complex to real ---------------------------------------------------------


@cache
def _weights(size: int, n: int, doubled: float) -> array[float]:
    """Return the weights of a half spectrum where an element may represent two of the full one.

    Frequency 0, and n/2 where n is even, are alone.
    """
    weights = array("d", [doubled]) * size
    weights[0] = 1.0
    if n % 2 == 0:
        weights[-1] = 1.0
    return weights


def _scale_doubled(xp: Any, spectrum: Array, axis: int, n: int, doubled: float) -> Array:
    """Return a half spectrum times `doubled` where an element represents two of the full one."""
    size, after = spectrum.shape[axis], spectrum.ndim - 1 - axis
    weights = xp.asarray(_weights(size, n, doubled), dtype=spectrum.dtype)
    return spectrum * (xp.reshape(weights, (size, *(1,) * after)) if after else weights)


def _r2c(xp: Any, x: Array, *, axes: Axes, norm: str) -> Array:
    return _transformed(xp, "rfft", x, axes, norm=norm)


def _r2c_adjoint(xp: Any, g: Array, x_shape: Axes, *, axes: Axes, norm: str) -> Array:
    # Re Σ g exp(-iθ) over half of the frequencies is a sum over all of them, of conj(g)/2.
    n = x_shape[axes[-1]]
    half = _scale_doubled(xp, xp.conj(g), axes[-1], n, 0.5)
    return applied(fft_c2r, xp)(half, axes=axes, norm=OPPOSITE[norm], n=n)


fft_r2c = linear("fft_r2c", _r2c_adjoint, forward=_r2c, label="FftR2CBackward0")


def _c2r(xp: Any, x: Array, *, axes: Axes, norm: str, n: int) -> Array:
    if len(axes) > 1:
        x = _transformed(xp, "ifft", x, axes[:-1], norm=norm)
    return xp.fft.irfft(x, n=n, axis=axes[-1], norm=norm)


def _c2r_adjoint(xp: Any, g: Array, *, axes: Axes, norm: str, n: int) -> Array:
    half = xp.conj(applied(fft_r2c, xp)(g, axes=axes, norm=OPPOSITE[norm]))
    return _scale_doubled(xp, half, axes[-1], n, 2.0)


fft_c2r = linear("fft_c2r", _c2r_adjoint, forward=_c2r, label="FftC2RBackward0")
