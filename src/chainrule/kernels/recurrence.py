"""LSTM and GRU over a sequence, and their gradients.

A gate's argument is the sum of the gates of the inputs, of shape (l, n, gates · size), the product
of the last state and the weight, and the bias.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

STEPS: dict[str, Callable[..., None]] = {}
"""Machine code for what a step computes besides its product, while `set_kernels` selects it."""

_MIN_SIZE = 1 << 12
"""Number of elements of all gates from which machine code is used."""


def _native_step(name: str, gates: Array) -> Callable[..., None] | None:
    step = STEPS.get(name)
    return step if gates.size >= _MIN_SIZE and gates.dtype.isnative else None


def _plain(*arrays: Array, dtype: np.dtype[Any]) -> list[Array]:
    """Return arrays of a dtype, aligned and in C order, copied where they are not."""
    return [np.require(x, dtype, ("C", "A")) for x in arrays]


def lstm(gates: Array, weight: Array, bias: Array, h: Array, c: Array) -> Any:
    """Return the outputs, the last h and c, and what `lstm_vjp` needs."""
    step = _native_step("lstm", gates)
    if step is not None:
        return _lstm_by_step(step, gates, weight, bias, h, c)
    length, n, width = gates.shape
    size = width // 4
    half = np.full(width, 0.5, gates.dtype)  # sigmoid(x) = (1 + tanh(x / 2)) / 2
    half[2 * size : 3 * size] = 1
    rest = 1 - half
    acts = gates + bias
    acts *= half
    hs = np.empty((length + 1, n, size), gates.dtype)
    cs, tanhs = np.empty_like(hs), np.empty_like(hs[1:])
    hs[0], cs[0] = h, c
    transposed = np.ascontiguousarray((weight * half[:, None]).T)
    for t in range(length):
        a = acts[t]
        a += hs[t] @ transposed
        np.tanh(a, out=a)
        a *= half
        a += rest
        g = a[:, 2 * size : 3 * size]
        i, f, o = a[:, :size], a[:, size : 2 * size], a[:, 3 * size :]
        c = np.multiply(f, cs[t], out=cs[t + 1])
        c += i * g
        np.multiply(o, np.tanh(c, out=tanhs[t]), out=hs[t + 1])
    return hs[1:].copy(), (hs[-1].copy(), cs[-1].copy()), (acts, hs, cs, tanhs)


def _lstm_by_step(
    step: Callable[..., None], gates: Array, weight: Array, bias: Array, h: Array, c: Array
) -> Any:
    length, n, width = gates.shape
    acts, transposed = gates + bias, np.ascontiguousarray(weight.T)
    hs = np.empty((length + 1, n, width // 4), gates.dtype)
    cs, tanhs = np.empty_like(hs), np.empty_like(hs[1:])
    hs[0], cs[0] = h, c
    for t in range(length):
        a = acts[t]
        a += hs[t].dot(transposed)
        step(a, cs[t], cs[t + 1], tanhs[t], hs[t + 1])
    return hs[1:].copy(), (hs[-1].copy(), cs[-1].copy()), (acts, hs, cs, tanhs)


def lstm_vjp(weight: Array, kept: Any, d_out: Array, d_h: Array, d_c: Array) -> Any:
    """Return the gradients of the gates, the weight, the bias, and the first h and c."""
    acts, hs, cs, tanhs = kept
    step = _native_step("lstm_vjp", acts)
    if step is not None:
        d_out, dh = _plain(d_out, d_h, dtype=acts.dtype)
        dc, grads = d_c.astype(acts.dtype, order="C"), np.empty_like(acts)
        for t in reversed(range(len(acts))):
            step(acts[t], cs[t], tanhs[t], d_out[t], dh, dc, grads[t])
            dh = grads[t].dot(weight)
        return grads, *_sums(grads, hs), dh, dc
    length, n, size = tanhs.shape
    i, f, g, o = (acts[..., k * size : (k + 1) * size] for k in range(4))
    # The derivatives of all steps by dc, and by dh for o: the loop multiplies by these.
    grads = acts - acts * acts
    by_gate = grads.reshape(length, n, 4, size)
    by_gate[:, :, 0] *= g
    by_gate[:, :, 1] *= cs[:-1]
    np.multiply(i, 1 - g * g, out=by_gate[:, :, 2])
    by_gate[:, :, 3] *= tanhs
    slopes = o * (1 - tanhs * tanhs)
    dh, dc = d_h, d_c
    for t in reversed(range(length)):
        dh = dh + d_out[t]
        dc = dc + dh * slopes[t]
        grad = by_gate[t]
        grad[:, :3] *= dc[:, None]
        grad[:, 3] *= dh
        dh = grads[t] @ weight
        dc = dc * f[t]
    return grads, *_sums(grads, hs), dh, dc


def gru(gates: Array, weight: Array, bias: Array, h: Array) -> Any:
    """Return the outputs, the last h, and what `gru_vjp` needs."""
    length, n, width = gates.shape
    size = width // 3
    hs = np.empty((length + 1, n, size), gates.dtype)
    acts, news = np.empty(gates.shape, gates.dtype), np.empty_like(hs[1:])  # r, z, n; what r scales
    hs[0] = h
    transposed = np.ascontiguousarray(weight.T)
    step = _native_step("gru", gates)
    if step is not None:
        gates, bias = _plain(gates, bias, dtype=gates.dtype)
        for t in range(length):
            step(gates[t], hs[t].dot(transposed), bias, hs[t], acts[t], news[t], hs[t + 1])
        return hs[1:].copy(), (hs[-1].copy(),), (acts, hs, news)
    for t in range(length):
        of_state = hs[t] @ transposed
        of_state += bias
        a, x = acts[t], gates[t]
        rz, new = a[:, : 2 * size], a[:, 2 * size :]
        np.add(x[:, : 2 * size], of_state[:, : 2 * size], out=rz)
        rz *= 0.5
        np.tanh(rz, out=rz)
        rz += 1
        rz *= 0.5
        news[t] = of_state[:, 2 * size :]
        np.multiply(rz[:, :size], news[t], out=new)
        new += x[:, 2 * size :]
        np.tanh(new, out=new)
        after = np.subtract(hs[t], new, out=hs[t + 1])
        after *= rz[:, size:]
        after += new
    return hs[1:].copy(), (hs[-1].copy(),), (acts, hs, news)


def gru_vjp(weight: Array, kept: Any, d_out: Array, d_h: Array) -> Any:
    """Return the gradients of the gates, the weight, the bias, and the first h."""
    acts, hs, news = kept
    size = hs.shape[-1]
    grads, of_states = np.empty_like(acts), np.empty_like(acts)
    step = _native_step("gru_vjp", acts)
    if step is not None:
        d_out, dh = _plain(d_out, d_h, dtype=acts.dtype)
        for t in reversed(range(len(acts))):
            passed = np.empty_like(hs[t])
            step(acts[t], news[t], hs[t], d_out[t], dh, grads[t], of_states[t], passed)
            dh = of_states[t].dot(weight)
            dh += passed
        return grads, *_sums(of_states, hs), dh
    dh = d_h
    for t in reversed(range(len(acts))):
        a, grad, of_state = acts[t], grads[t], of_states[t]
        r, z, new = (a[:, k * size : (k + 1) * size] for k in range(3))
        dh = dh + d_out[t]
        d_new = dh * (1 - z) * (1 - new * new)
        np.multiply(d_new, news[t], out=grad[:, :size])
        np.multiply(dh, hs[t] - new, out=grad[:, size : 2 * size])
        rz = a[:, : 2 * size]
        grad[:, : 2 * size] *= rz - rz * rz
        grad[:, 2 * size :] = d_new
        of_state[:, : 2 * size] = grad[:, : 2 * size]
        np.multiply(d_new, r, out=of_state[:, 2 * size :])
        dh = dh * z + of_state @ weight
    return grads, *_sums(of_states, hs), dh


def _sums(grads: Array, hs: Array) -> tuple[Array, Array]:
    """Return the gradients of the weight and the bias."""
    rows = grads.reshape(-1, grads.shape[-1])
    return rows.T @ hs[:-1].reshape(len(rows), hs.shape[-1]), rows.sum(0)
