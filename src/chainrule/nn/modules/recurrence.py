"""LSTM and GRU over a sequence as one function of arrays, with its derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.function import Function
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.tensor import Tensor, make
from chainrule.transforms import jvp

Array = np.ndarray[Any, Any]
Loop = Callable[..., tuple[Tensor, ...]]


def fits(*tensors: Tensor) -> bool:
    """Return whether tensors are NumPy arrays of one floating dtype."""
    arrays = [tensor._array for tensor in tensors]
    dtype = arrays[0].dtype
    return dtype.char in "fd" and all(
        a.__class__ is np.ndarray and a.dtype is dtype for a in arrays
    )


class Recurrence(Function):
    """A layer over a sequence in one direction: outputs and last states.

    The arguments are the loop that computes the same in tensors, the mode, the gates of the inputs
    of shape (l, n, gates · size), the weight, the bias or None, and the states of shape (n, size).
    Derivatives of higher order and forward mode differentiate the loop.
    """

    @staticmethod
    def forward(ctx: Any, loop: Loop, mode: str, gates: Tensor, *rest: Tensor) -> Any:
        ctx.loop, ctx.mode = loop, mode
        ctx.save_for_backward(gates, *rest)
        weight, bias, *states = (tensor._array for tensor in rest)
        run = _lstm if mode == "LSTM" else _gru
        outputs, last, ctx.kept = run(gates._array, weight, bias, *states)
        return tuple(make(array, None) for array in (outputs, *last))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        inputs = ctx.saved_tensors
        if is_grad_enabled():  # the gradient is to be differentiated
            needed = [i for i, x in enumerate(inputs) if x.requires_grad]
            outputs = ctx.loop(*inputs)
            found = autograd_grad(
                outputs, [inputs[i] for i in needed], grads, create_graph=True, allow_unused=True
            )
            by_input = dict(zip(needed, found, strict=True))
            return None, None, *(by_input.get(i) for i in range(len(inputs)))
        run = _lstm_backward if ctx.mode == "LSTM" else _gru_backward
        arrays = [grad._array for grad in grads]
        found = run(inputs[1]._array, ctx.kept, *arrays)
        return None, None, *(make(array, None) for array in found)

    @staticmethod
    def jvp(ctx: Any, _loop: Any, _mode: Any, *tangents: Any) -> Any:
        return jvp(ctx.loop, ctx.saved_tensors, tangents)[1]


def _lstm(gates: Array, weight: Array, bias: Array, h: Array, c: Array) -> Any:
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


def _lstm_backward(weight: Array, kept: Any, d_out: Array, d_h: Array, d_c: Array) -> Any:
    acts, hs, cs, tanhs = kept
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


def _gru(gates: Array, weight: Array, bias: Array, h: Array) -> Any:
    length, n, width = gates.shape
    size = width // 3
    hs = np.empty((length + 1, n, size), gates.dtype)
    acts, news = np.empty_like(gates), np.empty_like(hs[1:])  # r, z, n; the product for n
    hs[0] = h
    transposed = np.ascontiguousarray(weight.T)
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


def _gru_backward(weight: Array, kept: Any, d_out: Array, d_h: Array) -> Any:
    acts, hs, news = kept
    size = hs.shape[-1]
    grads, of_states = np.empty_like(acts), np.empty_like(acts)
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
    return rows.T @ hs[:-1].reshape(len(rows), -1), rows.sum(0)
