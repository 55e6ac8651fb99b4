"""numpy.lib.scimath: functions with complex results outside of their real domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast, floating
from chainrule.autograd.tensor import Tensor
from chainrule.interop.operands import array_of, constant


def _complex_if_needed(x: Tensor, is_outside: Callable[[Any], Any]) -> Tensor:
    """Return `x` as complex numbers, if some elements are outside of the real domain."""
    x = floating(x)
    if x.is_complex() or not bool(np.any(is_outside(array_of(x)))):
        return x
    return cast(x, np.complex64 if x.dtype.itemsize <= 4 else np.complex128)


def _extend_to_complex(
    function: Callable[[Any], Tensor], is_outside: Callable[[Any], Any]
) -> Callable[..., Any]:
    def extended(x: Tensor) -> Tensor:
        return function(_complex_if_needed(x, is_outside))

    return extended


def _is_negative(x: Any) -> Any:
    return x < 0


def _is_outside_unit(x: Any) -> Any:
    return np.abs(x) > 1


sqrt = _extend_to_complex(ops.sqrt, _is_negative)
log = _extend_to_complex(ops.log, _is_negative)
log2 = _extend_to_complex(ops.log2, _is_negative)
log10 = _extend_to_complex(ops.log10, _is_negative)
arctanh = _extend_to_complex(ops.atanh, _is_outside_unit)


def _arc(function: Callable[[Any], Tensor], ends: tuple[float, float], sign: int) -> Any:
    """Return acos or asin extended outside of [-1, 1] by an imaginary part ±acosh |x|.

    The complex functions have a branch cut there, where their derivatives are one-sided.
    """

    def arc(x: Tensor) -> Tensor:
        x = floating(x)
        outside = ops.abs(x) > 1
        if x.is_complex() or not bool(ops.any(outside)):
            return function(x)
        end = constant(np.where(array_of(x) < 0, *ends).astype(x.dtype))
        real = ops.where(outside, end, function(ops.where(outside, 0.0, x)))
        imaginary = ops.acosh(ops.where(outside, ops.abs(x), 1.5))
        return ops.complex(cast(real, x.dtype), ops.where(outside, sign * imaginary, 0.0))

    return arc


arccos = _arc(ops.acos, (np.pi, 0.0), -1)
arcsin = _arc(ops.asin, (-np.pi / 2, np.pi / 2), 1)


def logn(n: Tensor, x: Tensor) -> Tensor:
    """Return the logarithm of `x` to the base `n`."""
    result: Tensor = log(x) / log(n)
    return result


def power(x: Tensor, p: Tensor) -> Tensor:
    """Return x to the power p: complex where a real x is negative."""
    x = (
        x
        if x.is_complex() or not bool(np.any(array_of(x) < 0))
        else _complex_if_needed(x, _is_negative)
    )
    return ops.pow(
        x, cast(p, np.float64) if p.dtype.kind in "iu" and (array_of(p) < 0).any() else p
    )
