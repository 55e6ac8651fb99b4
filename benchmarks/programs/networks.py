"""Networks as modules: one text for chainrule and PyTorch, and JAX's functions of the same weights.

A program is a training step with Adam. All libraries start from the same weights, and their first
losses are compared before they are timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule as cr
from programs.peers import is_installed

Job = Callable[[], Any]
RNG = np.random.default_rng(0)
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
HEADS = 4


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


# --- modules of `chainrule.nn` and `torch.nn` -----------------------------------------------------


def mlp(m: Any) -> Any:
    """784-256-256-10."""
    layers = [m.nn.Linear(784, 256), m.nn.ReLU(), m.nn.Linear(256, 256), m.nn.ReLU()]
    return m.nn.Sequential(*layers, m.nn.Linear(256, 10))


def cnn(m: Any) -> Any:
    """Two convolutions of 16 and 32 channels on 8 × 8 pixels, and a linear layer."""
    layers = [m.nn.Conv2d(1, 16, 3, padding=1), m.nn.ReLU()]
    layers += [m.nn.Conv2d(16, 32, 3, padding=1), m.nn.ReLU(), m.nn.MaxPool2d(2)]
    return m.nn.Sequential(*layers, m.nn.Flatten(), m.nn.Linear(512, 10))


def lstm(m: Any) -> Any:
    """A recurrent layer of 64 units, and a linear layer."""

    class Recurrent(m.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.output = m.nn.LSTM(64, 64), m.nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            return self.output(self.layer(x)[0][-1])

    return Recurrent()


def gpt(m: Any) -> Any:
    """A transformer of 4 layers, width 128, 4 heads, for 64 tokens of 65 kinds."""
    nn, functional = m.nn, m.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(128), nn.LayerNorm(128)
            self.qkv, self.out = nn.Linear(128, 384), nn.Linear(128, 128)
            self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)

        def forward(self, x: Any) -> Any:
            n, t, width = x.shape
            heads = self.qkv(self.norm1(x)).reshape(n, t, 3 * HEADS, -1).transpose(1, 2)
            q, k, v = heads.chunk(3, 1)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, t, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(65, 128), nn.Embedding(64, 128)
            self.blocks = nn.Sequential(*[Block() for _ in range(4)])
            self.norm, self.output = nn.LayerNorm(128), nn.Linear(128, 65)

        def forward(self, x: Any) -> Any:
            x = self.blocks(self.tokens(x) + self.places.weight)
            return self.output(self.norm(x)).reshape(-1, 65)

    return Transformer()


# --- JAX: functions of the weights, by their names in `state_dict` --------------------------------


def linear(w: Any, name: str, x: Any) -> Any:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def jax_mlp(w: Any, x: Any) -> Any:
    import jax

    x = jax.nn.relu(linear(w, "0", x))
    return linear(w, "4", jax.nn.relu(linear(w, "2", x)))


def jax_cnn(w: Any, x: Any) -> Any:
    import jax

    for name in ("0", "2"):
        x = jax.lax.conv(x, w[f"{name}.weight"], (1, 1), "SAME")
        x = jax.nn.relu(x + w[f"{name}.bias"][:, None, None])
    x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return linear(w, "6", x.reshape(len(x), -1))


def jax_lstm(w: Any, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def step(carry: Any, gates: Any) -> Any:
        h, c = carry
        i, f, g, o = jnp.split(gates + h @ w["layer.weight_hh_l0"].T, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    gates = x @ w["layer.weight_ih_l0"].T + w["layer.bias_ih_l0"] + w["layer.bias_hh_l0"]
    start = jnp.zeros((x.shape[1], 64), x.dtype)
    return linear(w, "output", jax.lax.scan(step, (start, start), gates)[0][0])


def jax_gpt(w: Any, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def norm(name: str, x: Any) -> Any:
        x = x - x.mean(-1, keepdims=True)
        scaled = x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    n, t = x.shape
    x = w["tokens.weight"][x] + w["places.weight"]
    mask = jnp.tril(jnp.ones((t, t), bool))
    for i in range(4):
        name = f"blocks.{i}"
        heads = linear(w, f"{name}.qkv", norm(f"{name}.norm1", x))
        q, k, v = jnp.split(heads.reshape(n, t, 3 * HEADS, -1).swapaxes(1, 2), 3, 1)
        scores = jnp.where(mask, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -jnp.inf)
        y = (jax.nn.softmax(scores, -1) @ v).swapaxes(1, 2).reshape(n, t, -1)
        x = x + linear(w, f"{name}.out", y)
        y = jax.nn.gelu(linear(w, f"{name}.up", norm(f"{name}.norm2", x)), approximate=False)
        x = x + linear(w, f"{name}.down", y)
    return linear(w, "output", norm("norm", x)).reshape(-1, 65)


# --- steps ----------------------------------------------------------------------------------------

Batch = tuple[np.ndarray, np.ndarray]
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[Batch], float]] = {
    "MLP 784-256-256-10, batch 64": (
        *(mlp, jax_mlp, [(normal(64, 784), RNG.integers(0, 10, 64))], 0.95),
    ),
    "CNN, epoch of 1,408 digits": (
        *(cnn, jax_cnn, [(normal(32, 1, 8, 8), RNG.integers(0, 10, 32)) for _ in range(44)], 1.1),
    ),
    "LSTM, 100 steps × 32 × 64": (
        *(lstm, jax_lstm, [(normal(100, 32, 64), RNG.integers(0, 10, 32))], 0.9),
    ),
    "GPT, 4 layers × 128, 16 × 64 tokens": (
        gpt,
        jax_gpt,
        [(RNG.integers(0, 65, (16, 64)), RNG.integers(0, 65, 1024))],
        1.1,
    ),
}
"""By name: the module, JAX's function, the batches, and the bar of the eager step."""


def steps_of(m: Any, model: Any, batches: list[Batch], compiles: bool) -> Job:
    """Return the job of chainrule or PyTorch: a step of Adam for each batch; returns the losses."""
    tensors = [(m.tensor(x), m.tensor(y)) for x, y in batches]
    optimizer = m.optim.Adam(model.parameters(), lr=RATE)

    def step(x: Any, y: Any) -> Any:
        loss = m.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = cr.compile(step, verify=False) if compiles else step
    return lambda: [run(x, y) for x, y in tensors]


def jax_steps(function: Callable[..., Any], weights: Any, batches: list[Batch]) -> Job:
    """Return the job of JAX: the same steps of Adam, jitted, in place of the last weights."""
    import jax
    import jax.numpy as jnp

    def loss_of(w: Any, x: Any, y: Any) -> Any:
        scores = jax.nn.log_softmax(function(w, x), -1)
        return -jnp.take_along_axis(scores, y[:, None], 1).mean()

    def step(state: Any, x: Any, y: Any) -> Any:
        w, means, squares, number = state
        loss, slopes = jax.value_and_grad(loss_of)(w, x, y)
        number = number + 1
        means = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, means, slopes)
        squares = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, squares, slopes)

        def move(w: Any, m: Any, v: Any) -> Any:
            size = jnp.sqrt(v / (1 - BETA2**number)) + EPSILON
            return w - RATE * m / (1 - BETA1**number) / size

        return (jax.tree.map(move, w, means, squares), means, squares, number), loss

    jitted = jax.jit(step, donate_argnums=0)
    arrays = [(jnp.asarray(x), jnp.asarray(y)) for x, y in batches]
    w = jax.tree.map(jnp.asarray, weights)
    state = (w, jax.tree.map(jnp.zeros_like, w), jax.tree.map(jnp.zeros_like, w), jnp.zeros(()))

    def job() -> Any:
        nonlocal state
        losses = []
        for x, y in arrays:
            state, loss = jitted(state, x, y)
            losses.append(loss)
        return jax.block_until_ready(losses)

    return job


def jobs(name: str) -> dict[str, Job]:
    """Return the jobs of one program by library; "compiled" is chainrule's compiled step."""
    build, function, batches, _ = PROGRAMS[name]
    cr.manual_seed(0)
    first = build(cr)
    weights = {key: t.numpy().copy() for key, t in first.state_dict().items()}
    second = build(cr)
    second.load_state_dict(first.state_dict())
    found = {
        "chainrule": steps_of(cr, first, batches, compiles=False),
        "compiled": steps_of(cr, second, batches, compiles=True),
    }
    if is_installed("PyTorch"):
        import torch

        model = build(torch)
        model.load_state_dict({key: torch.tensor(w) for key, w in weights.items()})
        found["PyTorch"] = steps_of(torch, model, batches, compiles=False)
    if is_installed("JAX jit"):
        found["JAX jit"] = jax_steps(function, weights, batches)
    losses = [[float(loss) for loss in job()] for job in found.values()]
    for other in losses[1:]:
        np.testing.assert_allclose(other, losses[0], rtol=2e-3)
    return found
