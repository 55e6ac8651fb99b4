"""Discrete cosine and sine transforms by SciPy."""

from __future__ import annotations

from typing import Any

from chainrule.errors import DeviceFunctionError, MissingExtraError

Array = Any


def scipy_fft(xp: Any, x: Array, *, routine: str, type: int, axes: Any, **settings: Any) -> Array:
    """Return a transform along some axes: of the function dctn or dstn, of a type from 1 to 4."""
    if xp.__name__ != "numpy":
        raise DeviceFunctionError(
            f"scipy.fft.{routine} is computed on the CPU only: move the tensors with .cpu()"
        )
    try:
        import scipy.fft
    except ImportError as error:
        raise MissingExtraError(
            f"scipy.fft.{routine} needs SciPy, which is not installed: "
            "pip install 'chainrule[scipy]'"
        ) from error
    return getattr(scipy.fft, routine)(x, type, axes=axes, **settings)
