"""Fourier transforms with the arguments of NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule import fft
from chainrule.autograd.tensor import Tensor


def of_planes(name: str) -> Callable[..., Tensor]:
    """Return NumPy's transform along two axes, which takes None for all axes."""
    along_two: Callable[..., Tensor] = getattr(fft, name)
    along_all: Callable[..., Tensor] = getattr(fft, name[:-1] + "n")

    def transform(a: Tensor, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Tensor:
        return (along_all if axes is None else along_two)(a, s=s, axes=axes, norm=norm)

    return transform
