"""`scipy.fftpack` over tensors: Fourier, cosine and sine transforms of older programs.

Given arrays, a function is SciPy's own. The transforms are those of `chainrule.scipy.fft`.

>>> import numpy as np
>>> import chainrule as cr
>>> cr.grad(lambda x: cr.scipy.fftpack.dct(x)[0])(np.ones(3))
array([2., 2., 2.])
"""

from __future__ import annotations

from typing import Any

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend.extensions import SCIPY
from chainrule.scipy import fft as _fft
from chainrule.scipy.dispatch import Table
from chainrule.scipy.operands import inexact

_TABLE = Table("scipy.fftpack", SCIPY, has_scipys_numbers=True)


def _along_one(name: str) -> None:
    @_TABLE.function(name, "linear")
    def transform(x: Any, n: Any = None, axis: int = -1, overwrite_x: bool = False) -> Any:
        return getattr(_fft, name)(x, n, axis)


def _along_many(name: str, default: Any) -> None:
    @_TABLE.function(name, "linear")
    def transform(x: Any, shape: Any = None, axes: Any = default, overwrite_x: bool = False) -> Any:
        return getattr(_fft, name)(x, shape, axes)


def _real(name: str) -> None:
    @_TABLE.function(name, "linear")
    def transform(
        x: Any,
        type: int = 2,
        n: Any = None,
        axis: Any = -1,
        norm: Any = None,
        overwrite_x: bool = False,
    ) -> Any:
        # Without a norm, the inverse here isn't divided by the length: it is another type.
        if norm is None and name[0] == "i":
            return getattr(_fft, name[1:])(x, {2: 3, 3: 2}.get(type, type), n, axis)
        return getattr(_fft, name)(x, type, n, axis, norm)


for _name in ("fft", "ifft"):
    _along_one(_name)
    _along_many(f"{_name}2", (-2, -1))
    _along_many(f"{_name}n", None)
for _name in ("dct", "idct", "dst", "idst"):
    _real(_name)


@_TABLE.function("fftshift", "linear")
def _fftshift(x: Any, axes: Any = None) -> Any:
    return _fft.fftshift(x, axes)


@_TABLE.function("ifftshift", "linear")
def _ifftshift(x: Any, axes: Any = None) -> Any:
    return _fft.ifftshift(x, axes)


@_TABLE.function("rfft", "linear")
def _rfft(x: Any, n: Any = None, axis: int = -1, overwrite_x: bool = False) -> Tensor:
    """Return the real and imaginary parts of the spectrum, one after the other."""
    (x,) = inexact("rfft", x, real=True)
    length = x.shape[axis] if n is None else n
    spectrum = ops.movedim(_fft.rfft(x, length, axis), axis, -1)
    pairs = ops.stack([ops.real(spectrum), ops.imag(spectrum)], dim=-1)
    flat = ops.reshape(pairs, (*spectrum.shape[:-1], 2 * spectrum.shape[-1]))
    return ops.movedim(ops.cat([flat[..., :1], flat[..., 2 : length + 1]], dim=-1), -1, axis)


__getattr__, __dir__ = _TABLE.namespace()
