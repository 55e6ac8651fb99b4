"""Arrays put together: copies that threads share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.compiler.eager.generic import u8
from chainrule.compiler.eager.kernel import Kernel
from chainrule.compiler.eager.substitute import are_fit
from chainrule.primitives.primitive import Plan, Rule

Array = Any


def _copy(start: int, stop: int, x: Array, place: int, out: Array) -> None:
    """Fill in numbers from a place on."""
    for j in range(u8(start), u8(stop)):
        out[u8(place) + j] = x[j]


def _copy_rows(start: int, stop: int, x: Array, n: int, width: int, place: int, out: Array) -> None:
    """Fill in parts of rows of some width, from a place on."""
    for i in range(start, stop):
        source, target = u8(i * n), u8(i * width + place)
        for j in range(u8(n)):
            out[target + j] = x[source + j]


_COPY = Kernel(_copy, "real n real")
_COPY_ROWS = Kernel(_copy_rows, "real n n n real")


def _joined(arrays: tuple[Array, ...], axis: int) -> Array | None:
    dtype, shape = arrays[0].dtype, arrays[0].shape
    before, after = shape[:axis], shape[axis + 1 :]
    rows, inner = math.prod(before), math.prod(after)
    for x in arrays:
        fits = x.shape[:axis] == before and x.shape[axis + 1 :] == after and x.dtype == dtype
        if not fits or (rows > 1 and x.shape[axis] * inner == 1):
            return None
    length = sum([x.shape[axis] for x in arrays])
    out, place = np.empty((*before, length, *after), dtype), 0
    for x in arrays:
        n = x.shape[axis] * inner
        if rows == 1:
            _COPY(dtype.char, n, 1, x, place, out)
        else:
            _COPY_ROWS(dtype.char, rows, n or 1, x, n, length * inner, place, out)
        place += n
    return out


class Joined:
    """Puts arrays together, where the first one has `least` elements or more."""

    def __init__(self, least: int) -> None:
        self.least = least

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function."""
        least = self.least

        def forward(*arrays: Array, axis: int) -> Array:
            if arrays[0].size >= least and are_fit(arrays):
                found = _joined(arrays, axis)
                if found is not None:
                    return found
            return np.concatenate(arrays, axis)  # as the plain one does, which is a call further

        return forward

    def vjp(self, plan: Plan, plain: Rule) -> Rule:
        """Return the pull of a plan, which is made of views."""
        return plain
