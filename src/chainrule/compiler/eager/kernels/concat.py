"""Kernels of concatenation, which copy in several threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.compiler.eager.substitute import are_supported
from chainrule.compiler.native.generic import u8
from chainrule.compiler.native.kernel import Kernel
from chainrule.primitives.primitive import Plan, Rule

Array = Any


def _copy(start: int, stop: int, x: Array, offset: int, out: Array) -> None:
    """Copy `x` to `out` from an offset on."""
    for j in range(u8(start), u8(stop)):
        out[u8(offset) + j] = x[j]


def _copy_rows(
    start: int, stop: int, x: Array, n: int, width: int, offset: int, out: Array
) -> None:
    """Copy rows of `x` into the wider rows of `out`, from an offset on."""
    for i in range(start, stop):
        source, target = u8(i * n), u8(i * width + offset)
        for j in range(u8(n)):
            out[target + j] = x[source + j]


_COPY = Kernel(_copy, "real n real")
_COPY_ROWS = Kernel(_copy_rows, "real n n n real")


def _concatenate(arrays: tuple[Array, ...], axis: int) -> Array | None:
    dtype, shape = arrays[0].dtype, arrays[0].shape
    before, after = shape[:axis], shape[axis + 1 :]
    rows, inner = math.prod(before), math.prod(after)
    for x in arrays:
        fits = x.shape[:axis] == before and x.shape[axis + 1 :] == after and x.dtype == dtype
        if not fits or (rows > 1 and x.shape[axis] * inner == 1):
            return None
    length = sum([x.shape[axis] for x in arrays])
    out, offset = np.empty((*before, length, *after), dtype), 0
    for x in arrays:
        n = x.shape[axis] * inner
        if rows == 1:
            _COPY(dtype.char, n, 1, x, offset, out)
        else:
            _COPY_ROWS(dtype.char, rows, n or 1, x, n, length * inner, offset, out)
        offset += n
    return out


class Concat:
    """Substitute of `concat`, if the first array has `min_size` elements or more."""

    def __init__(self, min_size: int) -> None:
        self.min_size = min_size

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function; `plain` is NumPy's."""
        min_size = self.min_size

        def forward(*arrays: Array, axis: int) -> Array:
            if arrays[0].size >= min_size and are_supported(arrays):
                found = _concatenate(arrays, axis)
                if found is not None:
                    return found
            return np.concatenate(arrays, axis)  # `plain` without its call

        return forward

    def vjp(self, plan: Plan, plain: Rule) -> Rule:
        """Return the VJP function of a plan, which returns views and needs no kernel."""
        return plain
