"""Elementwise formulas with their gradients, at three sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from programs.peers import Job, Peer, Program, ready


def gelu(lib: Any, x: Any) -> Any:
    return 0.5 * x * (1 + lib.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def softplus(lib: Any, x: Any) -> Any:
    return lib.log1p(lib.exp(-lib.abs(x))) + lib.maximum(x, 0 * x)


def option(lib: Any, x: Any) -> Any:
    """Return the price of a call option, by the logistic approximation of the normal."""
    spot = 100 * lib.exp(0.1 * x)
    d1 = (lib.log(spot / 95) + 0.06) / 0.3
    d2 = d1 - 0.3
    return spot / (1 + lib.exp(-1.702 * d1)) - 92 / (1 + lib.exp(-1.702 * d2))


def with_gradient(function: Callable[..., Any], size: int) -> Program:
    x0 = np.random.default_rng(0).standard_normal(size).astype("float32")
    g0 = np.ones_like(x0)

    def ours(peer: Peer) -> Job:
        lib, grad = peer.lib, peer.grad
        x, g = peer.tensor(x0, requires_grad=True), peer.tensor(g0)

        def both() -> Any:
            y = function(lib, x)
            return y.detach(), grad(y, x, g)[0]

        return peer.compiled(both)

    def jitted() -> Job:
        import jax
        import jax.numpy as jnp

        @jax.jit
        def both(x: Any, g: Any) -> Any:
            y, vjp = jax.vjp(lambda x: function(jnp, x), x)
            return y, vjp(g)[0]

        return ready(both, x0, g0)

    out = np.empty_like(x0), np.empty_like(x0)

    def copies() -> None:
        np.copyto(out[0], x0)
        np.copyto(out[1], g0)

    bars = {"PyTorch": 0.6, "torch.compile": 0.65, "JAX jit": 0.65}
    bars |= {"floor": 3.0} if size >= 10**6 else {}
    others = ("torch.compile", "chainrule, NumPy")
    return Program(
        ours, jitted, bars, others, copies, {"rounds": 9 if size > 10**6 else 15, "rest": 0.05}
    )


PROGRAMS = {
    f"{function.__name__} and gradient, 1e{power}": partial(with_gradient, function, 10**power)
    for function in (gelu, softplus, option)
    for power in (4, 6, 7)
}
