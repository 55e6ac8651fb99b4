"""Kernels of running sums and products of large arrays along an axis, from either end.

NumPy waits for every addition, and for its result to be read from memory again: a running sum
takes it 17 times as long as a sum.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.compiler.native.call_wrapper import fresh, to_out
from chainrule.compiler.native.generic import real, u8
from chainrule.compiler.native.kernel import Kernel, is_plain

Array = Any
Out = tuple[Array | None]

IS_PRODUCT = False  # compile-time constants: whether elements are multiplied, and what begins
BEGIN = 0.0

# --- loops: from the end of `x` if `x_back` is 1, and to that of `out` if `back` is 1 -------------


def _along_rows(
    start: int, stop: int, x: Array, n: int, x_back: int, back: int, out: Array
) -> None:
    """Fill rows of `out` with running sums of rows.

    It interleaves four rows, since each addition waits for the one before in its row.
    """
    last, i = u8(n - 1), start
    while i + 4 <= stop:
        a, b, c, d = real(BEGIN), real(BEGIN), real(BEGIN), real(BEGIN)
        p, q, r, s = u8(i * n), u8((i + 1) * n), u8((i + 2) * n), u8((i + 3) * n)
        for j in range(u8(n)):
            k, m = last - j if x_back == 1 else j, last - j if back == 1 else j
            a = a * x[p + k] if IS_PRODUCT else a + x[p + k]
            b = b * x[q + k] if IS_PRODUCT else b + x[q + k]
            c = c * x[r + k] if IS_PRODUCT else c + x[r + k]
            d = d * x[s + k] if IS_PRODUCT else d + x[s + k]
            out[p + m], out[q + m], out[r + m], out[s + m] = a, b, c, d
        i += 4
    while i < stop:
        a, p = real(BEGIN), u8(i * n)
        for j in range(u8(n)):
            k = p + (last - j if x_back == 1 else j)
            a = a * x[k] if IS_PRODUCT else a + x[k]
            out[p + (last - j if back == 1 else j)] = a
        i += 1


def _down_columns(
    start: int,
    stop: int,
    x: Array,
    n: int,
    x_back: int,
    back: int,
    width: int,
    blocks: int,
    columns: int,
    out: Array,
) -> None:
    """Fill rows of matrices with running sums of their columns, one block of columns at a time."""
    last = u8(n - 1)
    for i in range(start, stop):
        matrix, begin = u8(i // blocks * n), i % blocks * columns
        count = u8(min(columns, width - begin))
        for k in range(u8(n)):
            row, target_row = last - k if x_back == 1 else k, last - k if back == 1 else k
            source = (matrix + row) * u8(width) + u8(begin)
            target = (matrix + target_row) * u8(width) + u8(begin)
            if k == u8(0):
                for j in range(count):
                    out[target + j] = x[source + j]
            else:
                before = target + u8(width) if back == 1 else target - u8(width)
                for j in range(count):
                    if IS_PRODUCT:
                        out[target + j] = out[before + j] * x[source + j]
                    else:
                        out[target + j] = out[before + j] + x[source + j]


# --- calls of the loops ---------------------------------------------------------------------------

_KERNELS = {
    is_product: (
        Kernel(_along_rows, "real n n n real", IS_PRODUCT=is_product, BEGIN=float(is_product)),
        Kernel(_down_columns, "real n n n n n n real", IS_PRODUCT=is_product),
    )
    for is_product in (False, True)
}

_COLUMNS = 512
"""Number of columns that are summed at a time: those of two rows stay in the first cache."""


def running(x: Array, axis: int, out: Array, is_product: bool = False, back: bool = False) -> None:
    """Fill `out`, in C order, with the running sums of an array along an axis.

    If `back`, they begin at the end. `x` is not empty.
    """
    begins_last, whole = back, x
    if not is_plain(x):
        whole = np.flip(x, axis)
        if is_plain(whole):
            begins_last = not back
        else:
            whole = np.array(x, order="C")
    n, width = x.shape[axis], math.prod(x.shape[axis + 1 :])
    along, down = _KERNELS[is_product]
    arguments = (whole, n, int(begins_last), int(back))
    if width == 1:
        along(x.dtype.char, x.size // n, n, *arguments, out)
        return
    blocks = -(-width // _COLUMNS)
    turns = x.size // (n * width) * blocks
    down(x.dtype.char, turns, n * _COLUMNS, *arguments, width, blocks, _COLUMNS, out)


def running_sum(x: Array, axis: int, out: Out = (None,)) -> Array:
    """Return the running sums of a large array along an axis."""
    made = fresh(out[0], x.shape, x.dtype)
    running(x, axis, made)
    return to_out(out[0], made)


def running_product(x: Array, axis: int, out: Out = (None,)) -> Array:
    """Return the running products of a large array along an axis."""
    made = fresh(out[0], x.shape, x.dtype)
    running(x, axis, made, is_product=True)
    return to_out(out[0], made)
