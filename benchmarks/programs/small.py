"""Programs of many small operations: a recurrent network, an ODE solver, a call on a scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from programs.peers import Job, Peer, Program, ready


def recurrent() -> Program:
    """Return the gradient of an LSTM's loss: 2 layers of 14, 64 characters."""
    rng = np.random.default_rng(0)
    size, length = 14, 64
    w0 = [(rng.standard_normal((2 * size, 4 * size)) * 0.3).astype("float32") for _ in range(2)]
    x0 = rng.standard_normal((length, size)).astype("float32")

    def cell(w: Any, x: Any, state: Any, join: Any, sigmoid: Any, tanh: Any) -> Any:
        h, c = state
        gates = join([x, h]) @ w
        i, f, g, o = (gates[k * size : (k + 1) * size] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c

    def ours(peer: Peer) -> Job:
        lib, grad = peer.lib, peer.grad
        x, w = peer.tensor(x0), [peer.tensor(a, requires_grad=True) for a in w0]
        zero = peer.tensor(np.zeros(size, "float32"))

        def gradient() -> Any:
            states, loss = [(zero, zero), (zero, zero)], 0.0
            for t in range(length):
                h = x[t]
                for layer in range(2):
                    args = (lib.cat, lib.sigmoid, lib.tanh)
                    states[layer] = cell(w[layer], h, states[layer], *args)
                    h = states[layer][0]
                loss = loss + (h * h).sum()
            return grad(loss, w)

        return peer.compiled(gradient)

    def jitted() -> Job:
        import jax
        import jax.numpy as jnp

        def loss(w: Any, x: Any) -> Any:
            def body(states: Any, x: Any) -> Any:
                h, states = x, list(states)
                for layer in range(2):
                    args = (jnp.concatenate, jax.nn.sigmoid, jnp.tanh)
                    states[layer] = cell(w[layer], h, states[layer], *args)
                    h = states[layer][0]
                return tuple(states), (h * h).sum()

            zero = jnp.zeros(size)
            return jax.lax.scan(body, ((zero, zero), (zero, zero)), x)[1].sum()

        return ready(jax.jit(jax.grad(loss)), w0, x0)

    return Program(ours, jitted, {"JAX jit": 1.0})


def differential() -> Program:
    """Return the gradient of the end point of a three-equation ODE, after 1,000 Euler steps."""
    p0 = np.array([10.0, 28.0, 8 / 3])
    y0 = np.array([1.0, 1.0, 1.0])

    def field(y: Any, p: Any, stack: Any) -> Any:
        return stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])

    def ours(peer: Peer) -> Job:
        lib, grad = peer.lib, peer.grad
        start, p = peer.tensor(y0), peer.tensor(p0, requires_grad=True)

        def gradient() -> Any:
            y = start
            for _ in range(1000):
                y = y + 1e-3 * field(y, p, lib.stack)
            return grad(y.sum(), p)

        return peer.compiled(gradient)

    def jitted() -> Job:
        import jax
        import jax.numpy as jnp

        def end(p: Any, y: Any) -> Any:
            def body(y: Any, _: Any) -> Any:
                return y + 1e-3 * field(y, p, jnp.stack), None

            return jax.lax.scan(body, y, None, 1000)[0].sum()

        return ready(jax.jit(jax.grad(end)), p0, y0)

    return Program(ours, jitted, {"JAX jit": 1.0}, measured={"rounds": 5})


def scalar() -> Program:
    """Return the call of a compiled function of one number, which is all overhead."""

    def ours(peer: Peer) -> Job:
        x = peer.tensor(np.float32(2.0))
        function = peer.compiled(lambda x: x * 3 + 1)
        return lambda: function(x)

    def jitted() -> Job:
        import jax

        return ready(jax.jit(lambda x: x * 3 + 1), np.float32(2.0))

    x = np.float32(2.0) * np.ones(())

    def calls() -> Any:
        return x * 3 + 1

    return Program(ours, jitted, {"JAX jit": 1.0}, floor=calls)


PROGRAMS = {
    "LSTM gradient, 2 × 14, 64 characters": recurrent,
    "ODE, 1,000 steps, gradient": differential,
}
SCALAR = {"a compiled function of a scalar": scalar}
