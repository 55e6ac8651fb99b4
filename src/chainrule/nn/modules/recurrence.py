"""LSTM and GRU over a sequence as one function, recorded as one node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.function import Function
from chainrule.autograd.modes import enable_grad, is_grad_enabled, run_in
from chainrule.autograd.tensor import Tensor, make
from chainrule.kernels import recurrence
from chainrule.transforms import jvp

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
        run = recurrence.lstm if mode == "LSTM" else recurrence.gru
        outputs, last, ctx.kept = run(gates._array, weight, bias, *states)
        return tuple(make(array, None) for array in (outputs, *last))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        inputs, more = ctx.saved_tensors, is_grad_enabled()
        is_plain = all(grad._array.__class__ is np.ndarray for grad in grads)
        if more or not is_plain:  # the gradient is to be differentiated, or a batch of gradients
            needed = [i for i, x in enumerate(inputs) if x.requires_grad]
            outputs = run_in(enable_grad(), ctx.loop, *inputs)
            found = autograd_grad(
                outputs, [inputs[i] for i in needed], grads, create_graph=more, allow_unused=True
            )
            by_input = dict(zip(needed, found, strict=True))
            return None, None, *(by_input.get(i) for i in range(len(inputs)))
        run = recurrence.lstm_vjp if ctx.mode == "LSTM" else recurrence.gru_vjp
        arrays = [grad._array for grad in grads]
        found = run(inputs[1]._array, ctx.kept, *arrays)
        return None, None, *(make(array, None) for array in found)

    @staticmethod
    def jvp(ctx: Any, _loop: Any, _mode: Any, *tangents: Any) -> Any:
        return jvp(ctx.loop, ctx.saved_tensors, tangents)[1]
