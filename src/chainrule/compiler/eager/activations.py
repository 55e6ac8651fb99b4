"""gelu, whose normal distribution function is kept for its derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.compiler.eager.generic import exp, real, u8
from chainrule.compiler.eager.kernel import Kernel
from chainrule.kernels.normal import CURVE, UNIT

Array = Any

C0, C1, C2, C3, C4 = CURVE
FAR = 14.0  # from here on Φ is 0 or 1


def _gelu(start: int, stop: int, x: Array, out: Array, cdf: Array) -> None:
    """Fill in x Φ(x) and Φ(x), by the curve of `kernels.normal`: its quotient as one fraction."""
    for i in range(u8(start), u8(stop)):
        y = x[i]
        y = real(FAR) if y > real(FAR) else (real(-FAR) if y < real(-FAR) else y)
        u = y * y * real(UNIT)
        below = u + real(C4)
        curve = u + real(C0) + real(C1) * below / ((u + real(C2)) * below + real(C3))
        share = real(1.0) / (real(1.0) + exp(real(-2.0) * y * curve))
        cdf[i] = share
        out[i] = x[i] * share


_GELU = Kernel(
    _gelu, "real real real", long=True, FAR=FAR, UNIT=UNIT, C0=C0, C1=C1, C2=C2, C3=C3, C4=C4
)


def gelu(x: Array) -> tuple[Array, Array] | None:
    """Return x Φ(x) and Φ(x), to 2e-7: in single precision alone."""
    if x.dtype.char != "f":
        return None
    out, cdf = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
    _GELU("f", x.size, 1, x, out, cdf)
    return out, cdf
