"""Kernel of gelu, which also returns the normal distribution function for the derivative."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.compiler.native.generic import times_plus, u8
from chainrule.compiler.native.kernel import Kernel
from chainrule.compiler.native.vector_math import f4, i4
from chainrule.kernels.normal import CURVE, UNIT

Array = Any

# Φ(x) = 1 / (1 + 2^t), t = -2 log₂e x (u + c₀ + c₁/(u + c₂ + c₃/(u + c₄))) with u = UNIT x², and
# 2^t = 2^n (1 + r p(r)), |r| ≤ ½. `exp` would check limits and round a second time.
SLOPE = -2 / math.log(2)
C0, C1, C2, C3, C4 = CURVE
P0, P1, P2, P3, P4 = 0.693147, 0.24022242, 0.055507336, 0.009671511, 0.0013264725
SHIFT = 12583039.0  # 1.5 · 2²³ + 127: the last bits of t + SHIFT are the exponent bits of 2^n


def _gelu(start: int, stop: int, x: Array, out: Array, cdf: Array) -> None:
    """Fill `out` with x Φ(x) and `cdf` with Φ(x)."""
    for i in range(u8(start), u8(stop)):
        y = x[i]
        u = y * y * f4(UNIT)
        u = f4(10.0) if u > f4(10.0) else u  # where Φ is 0 or 1 to rounding
        below = u + f4(C4)
        quotient = f4(SLOPE * C1) * below / times_plus(f4(C3), u + f4(C2), below)
        t = y * (times_plus(f4(SLOPE * C0), f4(SLOPE), u) + quotient)
        t = f4(-126.0) if t < f4(-126.0) else t
        t = f4(128.0) if t > f4(128.0) else t  # 2^t is infinite then
        shifted = t + f4(SHIFT)
        r = t - (shifted - f4(SHIFT))
        p = times_plus(f4(P3), r, f4(P4))
        p = times_plus(f4(P2), r, p)
        p = times_plus(f4(P1), r, p)
        p = times_plus(f4(P0), r, p)
        p = times_plus(f4(1.0), r, p)
        share = f4(1.0) / (f4(1.0) + p * i4(f4(shifted).view(i4) << i4(23)).view(f4))
        cdf[i] = share
        out[i] = y * share


_CONSTANTS = {
    **{"UNIT": UNIT, "SLOPE": SLOPE, "SHIFT": SHIFT},
    **{"C0": C0, "C1": C1, "C2": C2, "C3": C3, "C4": C4},
    **{"P0": P0, "P1": P1, "P2": P2, "P3": P3, "P4": P4},
}
_GELU = Kernel(_gelu, "real real real", long=True, **_CONSTANTS)


def gelu(x: Array) -> tuple[Array, Array] | None:
    """Return x Φ(x) and Φ(x) to 2e-7, in single precision only."""
    if x.dtype.char != "f":
        return None
    out, cdf = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
    _GELU("f", x.size, 1, x, out, cdf)
    return out, cdf
