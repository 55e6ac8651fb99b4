"""Neural networks: training steps, and the gradient of a transformer block."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np

from programs.peers import Job, Peer, Program, ready

OTHERS = ("torch.compile",)
REST = 0.15
"""Pause before each turn, in seconds: OpenBLAS's threads spin for 0.1 s after a product."""


def two_layers() -> Program:
    """Return a training step of the tutorial's network."""
    rng = np.random.default_rng(0)
    shapes = [(64, 1000), (64, 10), (1000, 100), (100, 10)]
    x0, y0, w10, w20 = (rng.standard_normal(shape).astype("float32") * 0.1 for shape in shapes)

    def ours(peer: Peer) -> Job:
        lib = peer.lib
        x, y = peer.tensor(x0), peer.tensor(y0)
        w1, w2 = peer.tensor(w10, requires_grad=True), peer.tensor(w20, requires_grad=True)

        def step() -> Any:
            loss = (x.mm(w1).clamp(min=0).mm(w2) - y).pow(2).sum()
            w1.grad = w2.grad = None
            loss.backward()
            with lib.no_grad():
                w1.sub_(1e-6 * w1.grad)
                w2.sub_(1e-6 * w2.grad)
            return loss

        return peer.compiled(step)

    def jitted() -> Job:
        import jax
        import jax.numpy as jnp

        def loss(weights: Any, x: Any, y: Any) -> Any:
            return ((jnp.maximum(x @ weights[0], 0) @ weights[1] - y) ** 2).sum()

        @jax.jit
        def step(weights: Any, x: Any, y: Any) -> Any:
            value, grads = jax.value_and_grad(loss)(weights, x, y)
            return value, [w - 1e-6 * g for w, g in zip(weights, grads, strict=True)]

        return ready(step, [w10, w20], x0, y0)

    h, out, back = (np.empty(s, "float32") for s in ((64, 100), (64, 10), (64, 100)))
    g1, g2 = np.empty((1000, 100), "float32"), np.empty((100, 10), "float32")

    def products() -> None:
        np.matmul(x0, w10, out=h)
        np.matmul(h, w20, out=out)
        np.matmul(out, w20.T, out=back)
        np.matmul(h.T, out, out=g2)
        np.matmul(x0.T, back, out=g1)

    bars = {"floor": 1.25, "PyTorch": 0.55, "JAX jit": 0.75}
    return Program(ours, jitted, bars, OTHERS, products, {"rest": REST})


def mlp(optimiser: str) -> Program:
    rng = np.random.default_rng(0)
    sizes = [784, 512, 512, 10]
    x0 = rng.standard_normal((256, 784)).astype("float32")
    labels = rng.integers(0, 10, 256)
    w0 = [
        (rng.standard_normal((m, n)) * m**-0.5).astype("float32")
        for m, n in itertools.pairwise(sizes)
    ]
    b0 = [np.zeros(n, "float32") for n in sizes[1:]]

    def ours(peer: Peer) -> Job:
        lib = peer.lib
        x, y = peer.tensor(x0), peer.tensor(labels)
        ws = [peer.tensor(w, requires_grad=True) for w in w0]
        bs = [peer.tensor(b, requires_grad=True) for b in b0]
        stepper = getattr(lib.optim, optimiser)([*ws, *bs], lr=1e-3)

        def step() -> Any:
            h = x
            for w, b in zip(ws[:-1], bs[:-1], strict=True):
                h = (h @ w + b).relu()
            loss = lib.nn.functional.cross_entropy(h @ ws[-1] + bs[-1], y)
            stepper.zero_grad()
            loss.backward()
            stepper.step()
            return loss

        step()
        return peer.compiled(step)

    def jitted() -> Job:
        return _jitted_mlp(optimiser, ([*w0], [*b0]), x0, labels)

    bars = {"PyTorch": 0.65, "JAX jit": 0.85}
    return Program(ours, jitted, bars, OTHERS, measured={"rest": REST})


def _jitted_mlp(optimiser: str, params: Any, x0: Any, labels: Any) -> Job:
    import jax
    import jax.numpy as jnp

    def loss(params: Any, x: Any, y: Any) -> Any:
        ws, bs = params
        for w, b in zip(ws[:-1], bs[:-1], strict=True):
            x = jnp.maximum(x @ w + b, 0)
        scores = jax.nn.log_softmax(x @ ws[-1] + bs[-1])
        return -jnp.take_along_axis(scores, y[:, None], 1).mean()

    def sgd(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return value, jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads), state

    def adam(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        t, m, v = state
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        move = lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8)  # noqa: E731
        return value, jax.tree.map(move, params, m, v), (t, m, v)

    zeros = jax.tree.map(np.zeros_like, params)
    state = (np.float32(0), zeros, zeros)
    step = jax.jit(sgd if optimiser == "SGD" else adam, donate_argnums=(0, 1))
    held = [jax.device_put((params, state))]
    x, y = jax.device_put((x0, labels))

    def job() -> Any:
        value, *held[0] = jax.block_until_ready(step(*held[0], x, y))
        return value

    return job


def transformer() -> Program:
    """Return the gradient of a transformer block's weights: 8 × 64 tokens, width 128, 4 heads."""
    rng = np.random.default_rng(0)
    width, heads = 128, 4
    shapes = {"qkv": (width, 3 * width), "out": (width, width)}
    shapes |= {"up": (width, 4 * width), "down": (4 * width, width)}
    w0 = {
        name: (rng.standard_normal(shape) * shape[0] ** -0.5).astype("float32")
        for name, shape in shapes.items()
    }
    x0 = rng.standard_normal((8, 64, width)).astype("float32")

    def normal(x: Any) -> Any:
        centred = x - x.mean(-1)[..., None]
        return centred / ((centred * centred).mean(-1)[..., None] + 1e-5) ** 0.5

    def block(x: Any, w: Any, swapped: Any, softmax: Any, tanh: Any) -> Any:
        batch, length = x.shape[:2]
        parts = (normal(x) @ w["qkv"]).reshape((batch, length, 3, heads, width // heads))
        q, k, v = (swapped(parts[:, :, i], 1, 2) for i in range(3))
        scores = softmax(q @ swapped(k, 2, 3) * (width // heads) ** -0.5)
        mixed = swapped(scores @ v, 1, 2).reshape((batch, length, width))
        x = x + mixed @ w["out"]
        h = normal(x) @ w["up"]
        h = 0.5 * h * (1 + tanh(0.7978845608 * (h + 0.044715 * h * h * h)))
        return ((x + h @ w["down"]) ** 2).mean()

    def ours(peer: Peer) -> Job:
        lib, grad = peer.lib, peer.grad
        x = peer.tensor(x0)
        w = {name: peer.tensor(a, requires_grad=True) for name, a in w0.items()}

        def gradient() -> Any:
            swapped, softmax = lib.swapaxes, lambda scores: scores.softmax(-1)
            return grad(block(x, w, swapped, softmax, lib.tanh), list(w.values()))

        return peer.compiled(gradient)

    def jitted() -> Job:
        import jax
        import jax.numpy as jnp

        def loss(w: Any, x: Any) -> Any:
            return block(x, w, jnp.swapaxes, jax.nn.softmax, jnp.tanh)

        return ready(jax.jit(jax.grad(loss)), w0, x0)

    bars = {"PyTorch": 0.65, "JAX jit": 0.85}
    return Program(ours, jitted, bars, OTHERS, measured={"rest": REST})


NETWORK = {"two-layer network, a step": two_layers}
LARGER = {
    "MLP step, 256 × 784-512-512-10, SGD": partial(mlp, "SGD"),
    "MLP step, 256 × 784-512-512-10, Adam": partial(mlp, "Adam"),
    "transformer block, gradient": transformer,
}
