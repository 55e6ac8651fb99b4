"""Kernels of a step of an LSTM: all that it computes besides the product with its weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.compiler.native.generic import exp, real, tanh, u8
from chainrule.compiler.native.kernel import Kernel

Array = Any


def _lstm(
    start: int, stop: int, acts: Array, size: int, c: Array, c_new: Array, tanhs: Array, h: Array
) -> None:
    """Apply the gates' functions to rows of `acts` in place, and fill in the new c and h.

    A row contains the gates i, f, g and o, of `size` elements each.
    """
    for n in range(start, stop):
        row, state = u8(n * 4 * size), u8(n * size)
        for j in range(u8(2 * size)):
            acts[row + j] = real(1.0) / (real(1.0) + exp(-acts[row + j]))
        row_g, row_o = row + u8(2 * size), row + u8(3 * size)
        for j in range(u8(size)):
            acts[row_g + j] = tanh(acts[row_g + j])
        for j in range(u8(size)):
            acts[row_o + j] = real(1.0) / (real(1.0) + exp(-acts[row_o + j]))
        row_f = row + u8(size)
        for j in range(u8(size)):
            new = acts[row_f + j] * c[state + j] + acts[row + j] * acts[row_g + j]
            c_new[state + j] = new
            of_new = tanh(new)
            tanhs[state + j] = of_new
            h[state + j] = acts[row_o + j] * of_new


def _lstm_vjp(
    start: int,
    stop: int,
    acts: Array,
    size: int,
    c: Array,
    tanhs: Array,
    d_out: Array,
    dh: Array,
    dc: Array,
    grads: Array,
) -> None:
    """Fill in the gradients of the gates' arguments, and replace `dc` by that of the last c."""
    for n in range(start, stop):
        row, state = u8(n * 4 * size), u8(n * size)
        row_f, row_g, row_o = row + u8(size), row + u8(2 * size), row + u8(3 * size)
        for j in range(u8(size)):
            i, f = acts[row + j], acts[row_f + j]
            g, o = acts[row_g + j], acts[row_o + j]
            of_new = tanhs[state + j]
            d_h = dh[state + j] + d_out[state + j]
            d_c = dc[state + j] + d_h * (o * (real(1.0) - of_new * of_new))
            grads[row + j] = (i - i * i) * g * d_c
            grads[row_f + j] = (f - f * f) * c[state + j] * d_c
            grads[row_g + j] = i * (real(1.0) - g * g) * d_c
            grads[row_o + j] = (o - o * o) * of_new * d_h
            dc[state + j] = d_c * f


_LSTM = Kernel(_lstm, "real n real real real real")
_LSTM_VJP = Kernel(_lstm_vjp, "real n real real real real real real")


def lstm(acts: Array, c: Array, c_new: Array, tanhs: Array, h: Array) -> None:
    n, width = acts.shape
    _LSTM(acts.dtype.char, n, width or 1, acts, width // 4, c, c_new, tanhs, h)


def lstm_vjp(
    acts: Array, c: Array, tanhs: Array, d_out: Array, dh: Array, dc: Array, grads: Array
) -> None:
    n, width = acts.shape
    size, char = width // 4, acts.dtype.char
    _LSTM_VJP(char, n, width or 1, acts, size, c, tanhs, d_out, dh, dc, grads)


STEPS: dict[str, Callable[..., None]] = {"lstm": lstm, "lstm_vjp": lstm_vjp}
"""The steps, as `kernels.recurrence` calls them."""
