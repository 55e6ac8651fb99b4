"""Compiled functions beside PyTorch's eager operations and JAX's jit, in one process.

Every library runs with its own defaults. Each job ends when its result is there: JAX is waited for.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import harness
import numpy as np

import chainrule as cr

try:
    import torch
except ImportError:
    torch = None
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None

Job = Callable[[], Any]
PEERS = ["chainrule", "PyTorch", "JAX jit", "floor"]


def jobs_of(
    ours: Callable[[Any, Callable[..., Any]], Job], jitted: Callable[[], Job] | None
) -> dict[str, Job]:
    """Build a job with chainrule and PyTorch, from one text, and with JAX."""
    jobs = {"chainrule": ours(cr, lambda a, **kw: cr.tensor(np.asarray(a), **kw))}
    if torch is not None:
        jobs["PyTorch"] = ours(torch, lambda a, **kw: torch.tensor(np.asarray(a), **kw))
    if jax is not None and jitted is not None:
        jobs["JAX jit"] = jitted()
    return jobs


def compiled(lib: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with chainrule; PyTorch runs eagerly."""
    return cr.compile(function) if lib is cr else function


def ready(function: Callable[..., Any], *args: Any) -> Job:
    """Return the job of a jitted function, done when its results are there."""
    placed = jax.device_put(args)
    return lambda: jax.block_until_ready(function(*placed))


# --- 1: the tutorial's network --------------------------------------------------------------------


def two_layers() -> harness.Row:
    rng = np.random.default_rng(0)
    shapes = [(64, 1000), (64, 10), (1000, 100), (100, 10)]
    x0, y0, w10, w20 = (rng.standard_normal(shape).astype("float32") * 0.1 for shape in shapes)

    def ours(lib: Any, make: Callable[..., Any]) -> Job:
        x, y = make(x0), make(y0)
        w1, w2 = make(w10, requires_grad=True), make(w20, requires_grad=True)

        def step() -> Any:
            loss = (x.mm(w1).clamp(min=0).mm(w2) - y).pow(2).sum()
            w1.grad = w2.grad = None
            loss.backward()
            with lib.no_grad():
                w1.sub_(1e-6 * w1.grad)
                w2.sub_(1e-6 * w2.grad)
            return loss

        return compiled(lib, step)

    def jitted() -> Job:
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

    jobs = {**jobs_of(ours, jitted), "floor": products}
    bars = {"floor": 1.25, "PyTorch": 0.55, "JAX jit": 0.75}
    return harness.measure("two-layer network, a step", jobs, bars, rest=0.05)


# --- 2: element by element ------------------------------------------------------------------------


def gelu(lib: Any, x: Any) -> Any:
    return 0.5 * x * (1 + lib.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def softplus(lib: Any, x: Any) -> Any:
    return lib.log1p(lib.exp(-lib.abs(x))) + lib.maximum(x, 0 * x)


def option(lib: Any, x: Any) -> Any:
    """A call option's price by the logistic approximation of the normal distribution."""
    spot = 100 * lib.exp(0.1 * x)
    d1 = (lib.log(spot / 95) + 0.06) / 0.3
    d2 = d1 - 0.3
    return spot / (1 + lib.exp(-1.702 * d1)) - 92 / (1 + lib.exp(-1.702 * d2))


def elementwise() -> Iterator[harness.Row]:
    for function in (gelu, softplus, option):
        for size in (10**4, 10**6, 10**7):
            yield _elementwise(function, size)


def _elementwise(function: Callable[..., Any], size: int) -> harness.Row:
    x0 = np.random.default_rng(0).standard_normal(size).astype("float32")
    g0 = np.ones_like(x0)

    def ours(lib: Any, make: Callable[..., Any]) -> Job:
        x, g = make(x0, requires_grad=True), make(g0)

        def both() -> Any:
            y = function(lib, x)
            grad = lib.autograd_grad if lib is cr else lib.autograd.grad
            return y.detach(), grad(y, x, g)[0]

        return compiled(lib, both)

    def jitted() -> Job:
        @jax.jit
        def both(x: Any, g: Any) -> Any:
            y, pull = jax.vjp(lambda x: function(jnp, x), x)
            return y, pull(g)[0]

        return ready(both, x0, g0)

    out = np.empty_like(x0), np.empty_like(x0)

    def copies() -> None:
        np.copyto(out[0], x0)
        np.copyto(out[1], g0)

    jobs = {**jobs_of(ours, jitted), "floor": copies}
    bars = {"PyTorch": 0.6, "JAX jit": 0.65} | ({"floor": 3.0} if size >= 10**6 else {})
    name = f"{function.__name__} and gradient, {size:.0e}".replace("e+0", "e")
    return harness.measure(name, jobs, bars, rounds=9 if size > 10**6 else 15)


# --- 3: networks ----------------------------------------------------------------------------------


def mlp(optimiser: str) -> harness.Row:
    rng = np.random.default_rng(0)
    sizes = [784, 512, 512, 10]
    x0 = rng.standard_normal((256, 784)).astype("float32")
    labels = rng.integers(0, 10, 256)
    w0 = [
        (rng.standard_normal((m, n)) * m**-0.5).astype("float32")
        for m, n in itertools.pairwise(sizes)
    ]
    b0 = [np.zeros(n, "float32") for n in sizes[1:]]

    def ours(lib: Any, make: Callable[..., Any]) -> Job:
        x, y = make(x0), make(labels)
        ws = [make(w, requires_grad=True) for w in w0]
        bs = [make(b, requires_grad=True) for b in b0]
        optim = lib.optim if lib is not cr else cr.optim
        made = (optim.SGD if optimiser == "SGD" else optim.Adam)([*ws, *bs], lr=1e-3)

        def step() -> Any:
            h = x
            for w, b in zip(ws[:-1], bs[:-1], strict=True):
                h = (h @ w + b).relu()
            loss = lib.nn.functional.cross_entropy(h @ ws[-1] + bs[-1], y)
            made.zero_grad()
            loss.backward()
            made.step()
            return loss

        step()
        return compiled(lib, step)

    def jitted() -> Job:
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

        params = ([*w0], [*b0])
        zeros = jax.tree.map(np.zeros_like, params)
        state = (np.float32(0), zeros, zeros)
        step = jax.jit(sgd if optimiser == "SGD" else adam, donate_argnums=(0, 1))
        held = [jax.device_put((params, state))]
        x, y = jax.device_put((x0, labels))

        def job() -> Any:
            value, *held[0] = jax.block_until_ready(step(*held[0], x, y))
            return value

        return job

    bars = {"PyTorch": 0.65, "JAX jit": 0.85}
    name = f"MLP step, 256 × 784-512-512-10, {optimiser}"
    return harness.measure(name, jobs_of(ours, jitted), bars, rest=0.05)


def transformer() -> harness.Row:
    """A transformer block, 8 × 64 tokens of width 128, 4 heads: the gradient of all weights."""
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
        apart = x - x.mean(-1)[..., None]
        return apart / ((apart * apart).mean(-1)[..., None] + 1e-5) ** 0.5

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

    def ours(lib: Any, make: Callable[..., Any]) -> Job:
        x, w = make(x0), {name: make(a, requires_grad=True) for name, a in w0.items()}

        def gradient() -> Any:
            swapped, softmax = lib.swapaxes, lambda scores: scores.softmax(-1)
            loss = block(x, w, swapped, softmax, lib.tanh)
            grad = lib.autograd_grad if lib is cr else lib.autograd.grad
            return grad(loss, list(w.values()))

        return compiled(lib, gradient)

    def jitted() -> Job:
        def loss(w: Any, x: Any) -> Any:
            return block(x, w, jnp.swapaxes, jax.nn.softmax, jnp.tanh)

        return ready(jax.jit(jax.grad(loss)), w0, x0)

    bars = {"PyTorch": 0.65, "JAX jit": 0.85}
    return harness.measure("transformer block, gradient", jobs_of(ours, jitted), bars, rest=0.05)


# --- 4: many small operations ---------------------------------------------------------------------


def recurrent() -> harness.Row:
    """The gradient of an LSTM's loss: 2 layers of 14, 64 characters."""
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

    def ours(lib: Any, make: Callable[..., Any]) -> Job:
        x, w = make(x0), [make(a, requires_grad=True) for a in w0]
        zero = make(np.zeros(size, "float32"))

        def gradient() -> Any:
            states, loss = [(zero, zero), (zero, zero)], 0.0
            for t in range(length):
                h = x[t]
                for layer in range(2):
                    args = (lib.cat, lib.sigmoid, lib.tanh)
                    states[layer] = cell(w[layer], h, states[layer], *args)
                    h = states[layer][0]
                loss = loss + (h * h).sum()
            grad = lib.autograd_grad if lib is cr else lib.autograd.grad
            return grad(loss, w)

        return compiled(lib, gradient)

    def jitted() -> Job:
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

    jobs = jobs_of(ours, jitted)
    return harness.measure("LSTM gradient, 2 × 14, 64 characters", jobs, {"JAX jit": 1.0})


def differential() -> harness.Row:
    """The gradient of where an ODE of three equations ends after 1,000 explicit steps."""
    p0 = np.array([10.0, 28.0, 8 / 3])
    y0 = np.array([1.0, 1.0, 1.0])

    def field(y: Any, p: Any, stack: Any) -> Any:
        return stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])

    def ours(lib: Any, make: Callable[..., Any]) -> Job:
        start, p = make(y0), make(p0, requires_grad=True)

        def gradient() -> Any:
            y = start
            for _ in range(1000):
                y = y + 1e-3 * field(y, p, lib.stack)
            grad = lib.autograd_grad if lib is cr else lib.autograd.grad
            return grad(y.sum(), p)

        return compiled(lib, gradient)

    def jitted() -> Job:
        def end(p: Any, y: Any) -> Any:
            def body(y: Any, _: Any) -> Any:
                return y + 1e-3 * field(y, p, jnp.stack), None

            return jax.lax.scan(body, y, None, 1000)[0].sum()

        return ready(jax.jit(jax.grad(end)), p0, y0)

    jobs = jobs_of(ours, jitted)
    return harness.measure("ODE, 1,000 steps, gradient", jobs, {"JAX jit": 1.0}, rounds=5)


# --- 5: gradients of scientists -------------------------------------------------------------------


def gradient_row(
    name: str, function: Callable[..., Any], arrays: list[Any], bar: float, rounds: int = 15
) -> harness.Row:
    """Measure the gradient of a function with respect to the first of its arrays."""

    def ours(lib: Any, make: Callable[..., Any]) -> Job:
        first, *rest = (make(a) for a in arrays)
        first.requires_grad_()

        def gradient() -> Any:
            grad = lib.autograd_grad if lib is cr else lib.autograd.grad
            return grad(function(lib, first, *rest), first)[0]

        return compiled(lib, gradient)

    def jitted() -> Job:
        return ready(jax.jit(jax.grad(lambda *a: function(jnp, *a))), *arrays)

    bars = {"JAX jit": bar}
    return harness.measure(name, jobs_of(ours, jitted), bars, rounds=rounds, rest=0.05)


def logsumexp(lib: Any, x: Any) -> Any:
    return jax.nn.logsumexp(x, -1) if jax is not None and lib is jnp else lib.logsumexp(x, -1)


def mixture(lib: Any, means: Any, points: Any, weights: Any) -> Any:
    """The negative log-likelihood of a mixture of Gaussians of variance 1."""
    squares = (points * points).sum(-1)[:, None] + (means * means).sum(-1)[None, :]
    distances = squares - 2 * points @ means.T
    return -logsumexp(lib, weights - 0.5 * distances).sum()


def logistic(lib: Any, w: Any, x: Any, y: Any) -> Any:
    margins = y * (x @ w)
    return (lib.log1p(lib.exp(-lib.abs(margins))) + lib.maximum(-margins, 0 * margins)).mean()


def rosenbrock(lib: Any, x: Any) -> Any:
    a, b = x[:-1], x[1:]
    return (100 * (b - a * a) ** 2 + (1 - a) ** 2).sum()


def bodies(lib: Any, x: Any, masses: Any) -> Any:
    apart = x[:, None, :] - x[None, :, :]
    distances = lib.sqrt((apart * apart).sum(-1) + 1e-3)
    return -(masses[:, None] * masses[None, :] / distances).sum() / 2


def science() -> Iterator[harness.Row]:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return rng.standard_normal(shape).astype("float32")

    for n, d in ((1000, 10), (1000, 32), (10000, 10), (10000, 32)):
        arrays = [draw(25, d), draw(n, d), draw(25)]
        yield gradient_row(f"Gaussian mixture, n {n}, d {d}, k 25", mixture, arrays, 0.9)
    signs = np.sign(draw(5000)).astype("float32")
    yield gradient_row(
        "logistic regression, 5000 × 50", logistic, [draw(50), draw(5000, 50), signs], 0.9
    )
    yield gradient_row("Rosenbrock, 1e6", rosenbrock, [draw(10**6)], 0.9)
    yield gradient_row("N-body energy, 500", bodies, [draw(500, 3), np.abs(draw(500))], 0.9)


# --- 6: what a call costs -------------------------------------------------------------------------


def scalars() -> harness.Row:
    def ours(lib: Any, make: Callable[..., Any]) -> Job:
        x = make(np.float32(2.0))
        function = compiled(lib, lambda x: x * 3 + 1)
        return lambda: function(x)

    def jitted() -> Job:
        return ready(jax.jit(lambda x: x * 3 + 1), np.float32(2.0))

    x = np.float32(2.0) * np.ones(())

    def calls() -> Any:
        return x * 3 + 1

    jobs = {**jobs_of(ours, jitted), "floor": calls}
    return harness.measure("a compiled function of a scalar", jobs, {"JAX jit": 1.0})


def planning() -> str:
    """Return how long tracing and planning take, by the number of operations."""
    lines = ["| operations | trace and plan, ms | µs an operation |", "| --- | --- | --- |"]
    for count in (50, 500, 5000):

        def function(x: Any, w: Any, count: int = count) -> Any:
            for _ in range(count // 4):
                x = (x @ w).tanh() * 0.5 + x
            return x.sum()

        x, w = cr.ones(4, 4), cr.ones(4, 4)
        cr.compile(function)(x, w)
        start = time.perf_counter()
        cr.compile(function)(x, w)
        seconds = time.perf_counter() - start
        lines.append(f"| {count} | {seconds * 1e3:.1f} | {seconds / count * 1e6:.0f} |")
    return "\n".join(lines)


def rows() -> Iterator[harness.Row]:
    yield two_layers()
    yield from elementwise()
    yield mlp("SGD")
    yield mlp("Adam")
    yield transformer()
    yield recurrent()
    yield differential()
    yield from science()
    yield scalars()


def main() -> str:
    if torch is not None:
        torch.set_num_threads(2)
    modules = [module for module in (np, torch, jax) if module is not None]
    table = harness.table(list(rows()), PEERS)
    return f"{table}\n\n{planning()}\n\n{harness.versions(cr, *modules)}"


if __name__ == "__main__":
    print(main())
