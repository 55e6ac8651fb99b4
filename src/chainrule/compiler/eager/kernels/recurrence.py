"""Kernels of a step of LSTM or GRU: all that it computes besides the product with its weight."""

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


def _gru(
    start: int,
    stop: int,
    gates: Array,
    size: int,
    product: Array,
    bias: Array,
    h: Array,
    acts: Array,
    of_states: Array,
    h_new: Array,
) -> None:
    """Fill in the gates r, z and n, what r multiplies, and the new h."""
    for n in range(start, stop):
        row, state = u8(n * 3 * size), u8(n * size)
        row_z, row_n, last = row + u8(size), row + u8(2 * size), u8(2 * size)
        for j in range(u8(2 * size)):
            x = gates[row + j] + (product[row + j] + bias[j])
            acts[row + j] = real(1.0) / (real(1.0) + exp(-x))
        for j in range(u8(size)):
            of_state = product[row_n + j] + bias[last + j]
            new = tanh(acts[row + j] * of_state + gates[row_n + j])
            of_states[state + j] = of_state
            h_new[state + j] = (h[state + j] - new) * acts[row_z + j] + new
            acts[row_n + j] = new


def _gru_vjp(
    start: int,
    stop: int,
    acts: Array,
    size: int,
    of_states: Array,
    h: Array,
    d_out: Array,
    dh: Array,
    grads: Array,
    of_product: Array,
    passed: Array,
) -> None:
    """Fill in the gradients of the gates and of the product, and that of h beside the product."""
    for n in range(start, stop):
        row, state = u8(n * 3 * size), u8(n * size)
        row_z, row_n = row + u8(size), row + u8(2 * size)
        for j in range(u8(size)):
            r, z, new = acts[row + j], acts[row_z + j], acts[row_n + j]
            d_h = dh[state + j] + d_out[state + j]
            d_new = d_h * (real(1.0) - z) * (real(1.0) - new * new)
            d_r = d_new * of_states[state + j] * (r - r * r)
            d_z = d_h * (h[state + j] - new) * (z - z * z)
            grads[row + j] = d_r
            grads[row_z + j] = d_z
            grads[row_n + j] = d_new
            of_product[row + j] = d_r
            of_product[row_z + j] = d_z
            of_product[row_n + j] = d_new * r
            passed[state + j] = d_h * z


_GRU = Kernel(_gru, "real n real real real real real real")
_GRU_VJP = Kernel(_gru_vjp, "real n real real real real real real real")
_LSTM = Kernel(_lstm, "real n real real real real")
_LSTM_VJP = Kernel(_lstm_vjp, "real n real real real real real real")


def _step(kernel: Kernel, count: int) -> Callable[..., None]:
    """Return a kernel as a function of arrays, the first of which has `count` gates."""

    def step(gates: Array, *others: Array) -> None:
        n, width = gates.shape
        kernel(gates.dtype.char, n, width or 1, gates, width // count, *others)

    return step


STEPS = {
    "lstm": _step(_LSTM, 4),
    "lstm_vjp": _step(_LSTM_VJP, 4),
    "gru": _step(_GRU, 3),
    "gru_vjp": _step(_GRU_VJP, 3),
}
"""The steps, as `kernels.recurrence` calls them."""
