"""Vector p-norms that are rescaled only if the powers over- or underflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.interrupts import errstate
from chainrule.kernels.reductions import sum_over

Array = Any
Axes = tuple[int, ...] | None


@errstate(all="ignore")
def p_norm(xp: Any, x: Array, *, p: float, axis: Axes, keepdims: bool) -> Array:
    """Return (Σ |x|ᵖ)^(1/p), computed again from scaled elements if powers over- or underflow."""
    if x.size == 0:
        return abs(x).sum(axis=axis, keepdims=keepdims)
    powers = _powers(xp, x, p)
    total = (sum_over if xp is np else xp.sum)(powers, axis=axis, keepdims=keepdims)
    info = np.finfo(total.dtype)
    waits = getattr(xp, "waits", False)
    if not waits and total.min() > info.tiny / info.eps and total.max() <= info.max:
        return xp.sqrt(total) if p == 2 else total ** (1 / p)
    sizes = abs(x)
    extreme = sizes.max if p > 0 else sizes.min
    scale = extreme(axis=axis, keepdims=True)
    scale = xp.where((scale > 0) & xp.isfinite(scale), scale, xp.ones_like(scale))
    total = ((sizes / scale) ** p).sum(axis=axis, keepdims=True)
    out = scale * (xp.sqrt(total) if p == 2 else total ** (1 / p))
    if keepdims:
        return out
    return out.reshape(()) if axis is None else out.squeeze(axis)


def _powers(xp: Any, x: Array, p: float) -> Array:
    if p != 2:
        return abs(x) ** p
    return x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
