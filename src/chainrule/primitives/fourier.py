"""Discrete Fourier transforms: complex to complex, real to complex, complex to real.

`axes` is a tuple of different non-negative ints here; the half spectrum is along the last one.
`norm` is "backward", "ortho" or "forward": where to divide by the number of points.
"""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import applied, is_complex, linear, name_of

Array = Any
Axes = tuple[int, ...]

OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm for which the inverse transform has the same factor."""


def _axis_slice(axis: int, part: slice) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, part, ...)


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
    if len(axes) > 1:
        return (xp.fft.ifftn if inverse else xp.fft.fftn)(x, axes=axes, norm=norm)
    if axes:
        return (xp.fft.ifft if inverse else xp.fft.fft)(x, axis=axes[0], norm=norm)
    return x


def _c2c_adjoint(xp: Any, g: Array, x_dtype: Any, *, axes: Axes, norm: str, inverse: bool) -> Array:
    # exp(-2πi jk/n) is symmetric in j and k: the transform is its own transpose.
    back = applied(fft_c2c, xp)(g, axes=axes, norm=norm, inverse=inverse)
    return back if "complex" in name_of(x_dtype) else xp.real(back)


fft_c2c = linear("fft_c2c", _c2c_adjoint, forward=_c2c, label="FftC2CBackward0")

# --- real to complex, and complex to real ---------------------------------------------------------


def _scale_doubled(xp: Any, spectrum: Array, axis: int, n: int, weight: float) -> Array:
    """Return a half spectrum times `weight` where an element represents two of the full one."""
    size = spectrum.shape[axis]
    alone = xp.ones((1,), dtype=spectrum.dtype)  # frequency 0, and n/2 where n is even
    twice = weight * xp.ones((size - 1 - (n % 2 == 0),), dtype=spectrum.dtype)
    weights = xp.concat([alone, twice] if n % 2 else [alone, twice, alone], axis=0)
    return spectrum * xp.reshape(weights, (size, *(1,) * (spectrum.ndim - 1 - axis)))


def _r2c(xp: Any, x: Array, *, axes: Axes, norm: str) -> Array:
    if len(axes) > 1:
        return xp.fft.rfftn(x, axes=axes, norm=norm)
    return xp.fft.rfft(x, axis=axes[0], norm=norm)


def _r2c_adjoint(xp: Any, g: Array, x_shape: Axes, *, axes: Axes, norm: str) -> Array:
    # Re Σ g exp(-iθ) over half of the frequencies is a sum over all of them, of conj(g)/2.
    n = x_shape[axes[-1]]
    half = _scale_doubled(xp, xp.conj(g), axes[-1], n, 0.5)
    return applied(fft_c2r, xp)(half, axes=axes, norm=OPPOSITE[norm], n=n)


fft_r2c = linear("fft_r2c", _r2c_adjoint, forward=_r2c, label="FftR2CBackward0")


def _c2r(xp: Any, x: Array, *, axes: Axes, norm: str, n: int) -> Array:
    if len(axes) > 1:
        sizes = [*(x.shape[axis] for axis in axes[:-1]), n]
        return xp.fft.irfftn(x, s=sizes, axes=axes, norm=norm)
    return xp.fft.irfft(x, n=n, axis=axes[0], norm=norm)


def _c2r_adjoint(xp: Any, g: Array, *, axes: Axes, norm: str, n: int) -> Array:
    half = xp.conj(applied(fft_r2c, xp)(g, axes=axes, norm=OPPOSITE[norm]))
    return _scale_doubled(xp, half, axes[-1], n, 2.0)


fft_c2r = linear("fft_c2r", _c2r_adjoint, forward=_c2r, label="FftC2RBackward0")
