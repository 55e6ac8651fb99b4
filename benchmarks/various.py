"""Programs for which nothing was tuned, beside JAX: value and gradient, in double precision.

Each is written as the users of its library write it: JAX with `lax.scan` and `.at`, chainrule with
`cr.scan`, Python loops and in-place writes. Results are compared before they are timed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import harness
import numpy as np
from programs import estimation, models, steps
from programs.peers import is_installed

import chainrule as cr

Array = Any
Job = Callable[[], Any]
RNG = np.random.default_rng(0)
DOUBLE = cr.float64


class Program:
    """The same loss in both libraries, and the arrays that it is differentiated by."""

    def __init__(
        self, loss: Callable[..., Any], peer: Callable[[], Callable[..., Any]], *arrays: Any
    ) -> None:
        self.loss, self.peer, self.arrays = loss, peer, [np.asarray(a, float) for a in arrays]
        self.argnums = tuple(range(len(arrays)))

    def job(self) -> Job:
        """Return a job of chainrule."""
        function = cr.compile(cr.value_and_grad(self.loss, self.argnums), verify=False)
        tensors = [cr.tensor(a) for a in self.arrays]
        return lambda: function(*tensors)

    def peer_job(self) -> Job:
        """Return a job of JAX."""
        import jax

        function = jax.jit(jax.value_and_grad(self.peer(), self.argnums))
        arrays = [jax.numpy.asarray(a) for a in self.arrays]
        return lambda: jax.block_until_ready(function(*arrays))


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape)


# --- time series ----------------------------------------------------------------------------------


def kalman() -> Program:
    """Log-likelihood of a Kalman filter: 500 steps, 4 states, 2 observed."""
    a, h, ys, eye = np.eye(4) + 0.1 * np.eye(4, k=2), np.eye(2, 4), normal(500, 2), np.eye(4)

    def step_of(xp: Any, q: Any, r: Any, a: Any, h: Any, eye: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            m, p, total = carry
            m, p = a @ m, a @ p @ a.T + q * eye
            s = h @ p @ h.T + r * eye[:2, :2]
            e = y - h @ m
            gain = xp.linalg.solve(s, h @ p).T
            total = total - 0.5 * (e @ xp.linalg.solve(s, e) + xp.linalg.slogdet(s)[1])
            return (m + gain @ e, p - gain @ h @ p, total), total

        return step

    at, ht, yt, et = map(cr.tensor, (a, h, ys, eye))

    def ours(q: Any, r: Any) -> Any:
        start = (cr.zeros(4, dtype=DOUBLE), et * 1, q * 0)
        return cr.scan(step_of(cr, q, r, at, ht, et), start, yt)[0][2]

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(q: Any, r: Any) -> Any:
            start = (jnp.zeros(4), jnp.asarray(eye), q * 0)
            return jax.lax.scan(step_of(jnp, q, r, a, h, eye), start, ys)[0][2]

        return loss

    return Program(ours, theirs, 0.1, 0.5)


def hidden_markov() -> Program:
    """Likelihood of 500 symbols under a hidden Markov model of 8 states."""
    symbols = RNG.integers(0, 20, 500)
    index = cr.tensor(symbols)

    def ours(a: Any, b: Any) -> Any:
        a, b = cr.log_softmax(a, 1), cr.log_softmax(b, 1).T[index]

        def step(alpha: Any, b: Any) -> Any:
            alpha = cr.logsumexp(alpha[:, None] + a, 0) + b
            return alpha, alpha[0]

        return -cr.logsumexp(cr.scan(step, b[0], b[1:])[0], 0)

    def theirs() -> Callable[..., Any]:
        import jax

        def loss(a: Any, b: Any) -> Any:
            a, b = jax.nn.log_softmax(a, 1), jax.nn.log_softmax(b, 1).T[symbols]

            def step(alpha: Any, b: Any) -> Any:
                return jax.nn.logsumexp(alpha[:, None] + a, 0) + b, None

            return -jax.nn.logsumexp(jax.lax.scan(step, b[0], b[1:])[0])

        return loss

    return Program(ours, theirs, normal(8, 8), normal(8, 20))


def particle_filter() -> Program:
    """Log-likelihood by 200 particles, resampled in each of 50 steps."""
    ys, noise, places = normal(50), normal(50, 200), (np.arange(200) + 0.5) / 200
    yt, nt, pt = map(cr.tensor, (ys, noise, places))

    def ours(a: Any, s: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            (p, total), (y, z) = carry, x
            p = a * p + s * z
            weights = -0.5 * (y - p) ** 2
            mean = cr.logsumexp(weights, 0)
            ends = cr.cumsum(cr.exp(weights - mean), 0).detach()
            chosen = cr.searchsorted(ends, pt).clamp(max=199)
            return (p[chosen], total + mean), mean

        return cr.scan(step, (nt[0] * 1, a * 0), (yt, nt))[0][1]

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(a: Any, s: Any) -> Any:
            def step(carry: Any, x: Any) -> Any:
                (p, total), (y, z) = carry, x
                p = a * p + s * z
                weights = -0.5 * (y - p) ** 2
                mean = jax.nn.logsumexp(weights)
                ends = jax.lax.stop_gradient(jnp.cumsum(jnp.exp(weights - mean)))
                chosen = jnp.clip(jnp.searchsorted(ends, places), max=199)
                return (p[chosen], total + mean), None

            start = (jnp.asarray(noise[0]), a * 0)
            return jax.lax.scan(step, start, (ys, noise))[0][1]

        return loss

    return Program(ours, theirs, 0.9, 0.5)


def alignment() -> Program:
    """Smooth dynamic time warping of two curves of 20 points, cell by cell."""
    n, b = 20, normal(20, 3)
    bt = cr.tensor(b)

    def ours(a: Any) -> Any:
        cost, far = ((a[:, None] - bt) ** 2).sum(-1), cr.tensor(1e10, dtype=DOUBLE)
        table = [[far] * (n + 1) for _ in range(n + 1)]
        table[0][0] = far * 0
        for i in range(n):
            for j in range(n):
                before = cr.stack([table[i][j], table[i][j + 1], table[i + 1][j]])
                table[i + 1][j + 1] = cost[i, j] - cr.logsumexp(-before, 0)
        return table[n][n]

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(a: Any) -> Any:
            cost = ((a[:, None] - b) ** 2).sum(-1)

            def row(above: Any, costs: Any) -> Any:
                def cell(left: Any, x: Any) -> Any:
                    c, corner, up = x
                    here = c - jax.nn.logsumexp(-jnp.stack([corner, up, left]))
                    return here, here

                _, cells = jax.lax.scan(cell, 1e10, (costs, above[:-1], above[1:]))
                return jnp.concatenate([jnp.array([1e10]), cells]), None

            first = jnp.concatenate([jnp.zeros(1), jnp.full(n, 1e10)])
            return jax.lax.scan(row, first, cost)[0][-1]

        return loss

    return Program(ours, theirs, normal(n, 3))


# --- graphs and words -----------------------------------------------------------------------------


def graph_layers() -> Program:
    """Two layers of messages along 10,000 edges between 2,000 nodes of 16 numbers."""
    source, target, h = RNG.integers(0, 2000, 10000), RNG.integers(0, 2000, 10000), normal(2000, 16)
    st, tt, ht = map(cr.tensor, (source, target, h))

    def ours(w: Any, u: Any) -> Any:
        out = ht
        for last in (False, True):
            messages = cr.relu(cr.cat([out[st], out[tt]], 1) @ w)
            total = cr.zeros(2000, 16, dtype=DOUBLE).index_add(0, tt, messages)
            out = total if last else cr.tanh(out @ u + total)
        return (out**2).mean()

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(w: Any, u: Any) -> Any:
            out = jnp.asarray(h)
            for last in (False, True):
                messages = jax.nn.relu(jnp.concatenate([out[source], out[target]], 1) @ w)
                total = jnp.zeros((2000, 16)).at[target].add(messages)
                out = total if last else jnp.tanh(out @ u + total)
            return (out**2).mean()

        return loss

    return Program(ours, theirs, normal(32, 16) * 0.2, normal(16, 16) * 0.2)


def bag_of_words() -> Program:
    """Cross-entropy of 64 texts of 50 words: means of embeddings, and one layer."""
    words, labels = RNG.integers(0, 5000, (64, 50)), RNG.integers(0, 10, 64)
    wt, lt = cr.tensor(words), cr.tensor(labels)

    def ours(e: Any, w: Any) -> Any:
        return cr.nn.functional.cross_entropy(e[wt].mean(1) @ w, lt)

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(e: Any, w: Any) -> Any:
            scores = jax.nn.log_softmax(e[words].mean(1) @ w, 1)
            return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

        return loss

    return Program(ours, theirs, normal(5000, 32), normal(32, 10))


# --- equations ------------------------------------------------------------------------------------


def newton() -> Program:
    """A fixed point of 6 equations by 8 Newton steps."""

    def loss_of(xp: Any, zeros: Any, eye: Any) -> Callable[..., Any]:
        def loss(a: Any, b: Any) -> Any:
            x = zeros
            for _ in range(8):
                y = xp.tanh(a @ x + b)
                x = x - xp.linalg.solve(eye - (1 - y**2)[:, None] * a, x - y)
            return (x**2).sum()

        return loss

    def theirs() -> Callable[..., Any]:
        import jax.numpy as jnp

        return loss_of(jnp, jnp.zeros(6), jnp.eye(6))

    ours = loss_of(cr, cr.zeros(6, dtype=DOUBLE), cr.eye(6, dtype=DOUBLE))
    return Program(ours, theirs, normal(6, 6) * 0.3, normal(6))


def heat() -> Program:
    """50 steps of the heat equation on 64 × 64 points, written in place."""

    def laplacian(u: Any) -> Any:
        return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]

    def ours(u: Any, k: Any) -> Any:
        u = u * 1
        for _ in range(50):
            change = k * laplacian(u)
            u = u.clone()
            u[1:-1, 1:-1] += change
        return (u**2).sum()

    def theirs() -> Callable[..., Any]:
        import jax

        def loss(u: Any, k: Any) -> Any:
            def step(_: Any, u: Any) -> Any:
                return u.at[1:-1, 1:-1].add(k * laplacian(u))

            return (jax.lax.fori_loop(0, 50, step, u) ** 2).sum()

        return loss

    return Program(ours, theirs, normal(64, 64), 0.1)


def waves() -> Program:
    """100 steps of waves on a staggered grid of 512 points."""
    start = np.exp(-(((np.arange(512) - 256) / 10.0) ** 2))

    def ours(c: Any) -> Any:
        p, v = cr.tensor(start), cr.zeros(511, dtype=DOUBLE)
        for _ in range(100):
            v = v - 0.3 * (p[1:] - p[:-1])
            p = p.clone()
            p[1:-1] -= 0.3 * c[1:-1] * (v[1:] - v[:-1])
        return (p**2).sum()

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(c: Any) -> Any:
            def step(_: Any, state: Any) -> Any:
                p, v = state
                v = v - 0.3 * (p[1:] - p[:-1])
                return p.at[1:-1].add(-0.3 * c[1:-1] * (v[1:] - v[:-1])), v

            state = (jnp.asarray(start), jnp.zeros(511))
            return (jax.lax.fori_loop(0, 100, step, state)[0] ** 2).sum()

        return loss

    return Program(ours, theirs, 1 + RNG.random(512))


def predator_prey() -> Program:
    """200 Runge–Kutta steps of two equations, as a loop of Python."""

    def step_of(stack: Any, p: Any) -> Any:
        def slope(y: Any) -> Any:
            both = y[0] * y[1]
            return stack([p[0] * y[0] - p[1] * both, p[2] * both - p[3] * y[1]])

        def step(y: Any) -> Any:
            a = slope(y)
            b = slope(y + 0.025 * a)
            c = slope(y + 0.025 * b)
            d = slope(y + 0.05 * c)
            return y + 0.05 / 6 * (a + 2 * b + 2 * c + d)

        return step

    start = np.array([1.0, 0.5])
    st = cr.tensor(start)

    def ours(p: Any) -> Any:
        y, total, step = st, 0.0, step_of(cr.stack, p)
        for _ in range(200):
            y = step(y)
            total = total + (y**2).sum()
        return total

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(p: Any) -> Any:
            step = step_of(jnp.stack, p)

            def both(y: Any, _: Any) -> Any:
                y = step(y)
                return y, (y**2).sum()

            return jax.lax.scan(both, jnp.asarray(start), None, 200)[1].sum()

        return loss

    return Program(ours, theirs, [1.0, 0.5, 0.3, 0.8])


def control() -> Program:
    """A linear-quadratic regulator: 60 steps of the Riccati recursion with 5 states."""
    q, r, eye = np.eye(5), 0.1 * np.eye(2), np.eye(5)

    def step_of(xp: Any, a: Any, b: Any, q: Any, r: Any) -> Any:
        def step(p: Any, _: Any) -> Any:
            gain = xp.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
            p = q + a.T @ p @ (a - b @ gain)
            return p, p[0, 0]

        return step

    qt, rt, et, steps = cr.tensor(q), cr.tensor(r), cr.tensor(eye), cr.zeros(60, dtype=DOUBLE)

    def ours(a: Any, b: Any) -> Any:
        return (cr.scan(step_of(cr, a, b, qt, rt), et * 1, steps)[0] ** 2).sum()

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(a: Any, b: Any) -> Any:
            step = step_of(jnp, a, b, q, r)
            return (jax.lax.scan(step, jnp.asarray(eye), None, 60)[0] ** 2).sum()

        return loss

    return Program(ours, theirs, 0.9 * np.eye(5) + 0.05 * normal(5, 5), normal(5, 2))


# --- statistics and finance -----------------------------------------------------------------------


def barrier() -> Program:
    """A barrier option by 2,000 simulated paths of 50 steps."""
    z = normal(2000, 50)
    zt = cr.tensor(z)

    def ours(s: Any, vol: Any) -> Any:
        moves = (0.02 - 0.5 * vol**2) / 50 + vol * 0.1414 * zt
        paths = s * cr.exp(cr.cumsum(moves, 1))
        alive = cr.prod(cr.sigmoid((1.4 - paths) * 50), 1)
        return (cr.relu(paths[:, -1] - 1) * alive).mean()

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(s: Any, vol: Any) -> Any:
            moves = (0.02 - 0.5 * vol**2) / 50 + vol * 0.1414 * z
            paths = s * jnp.exp(jnp.cumsum(moves, 1))
            alive = jnp.prod(jax.nn.sigmoid((1.4 - paths) * 50), 1)
            return (jax.nn.relu(paths[:, -1] - 1) * alive).mean()

        return loss

    return Program(ours, theirs, 1.0, 0.2)


def gaussian_process() -> Program:
    """Marginal likelihood of 100 points in three dimensions."""
    x, y = normal(100, 3), normal(100)
    xt, yt, et = cr.tensor(x), cr.tensor(y), cr.eye(100, dtype=DOUBLE)

    def ours(scale: Any, noise: Any) -> Any:
        distances = ((xt[:, None] - xt) ** 2 / scale**2).sum(-1)
        factor = cr.linalg.cholesky(cr.exp(-0.5 * distances) + noise * et)
        z = cr.linalg.solve_triangular(factor, yt[:, None], upper=False)
        return 0.5 * (z**2).sum() + cr.log(cr.diagonal(factor)).sum()

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(scale: Any, noise: Any) -> Any:
            distances = ((x[:, None] - x) ** 2 / scale**2).sum(-1)
            factor = jnp.linalg.cholesky(jnp.exp(-0.5 * distances) + noise * np.eye(100))
            z = jax.scipy.linalg.solve_triangular(factor, y[:, None], lower=True)
            return 0.5 * (z**2).sum() + jnp.log(jnp.diagonal(factor)).sum()

        return loss

    return Program(ours, theirs, np.ones(3), 0.3)


def spline() -> Program:
    """Least squares of a natural cubic spline with 16 knots at 300 points."""
    knots, q, t = np.linspace(0, 1, 16), RNG.random(300), normal(300)
    h = knots[1]
    system = np.eye(16) * 4 + np.eye(16, k=1) + np.eye(16, k=-1)
    system[[0, -1]] = np.eye(16)[[0, -1]]

    def loss_of(xp: Any, join: Any, zero: Any, arrays: Any) -> Callable[..., Any]:
        knots, q, t, system = arrays

        def loss(y: Any) -> Any:
            bends = 6 / h**2 * (y[2:] - 2 * y[1:-1] + y[:-2])
            m = xp.linalg.solve(system, join([zero, bends, zero]))
            i = xp.searchsorted(knots, q) - 1
            a, b = (knots[i + 1] - q) / h, (q - knots[i]) / h
            cubic = (a**3 - a) * m[i] + (b**3 - b) * m[i + 1]
            return ((a * y[i] + b * y[i + 1] + cubic * h**2 / 6 - t) ** 2).mean()

        return loss

    def theirs() -> Callable[..., Any]:
        import jax.numpy as jnp

        arrays = [jnp.asarray(a) for a in (knots, q, t, system)]
        return loss_of(jnp, jnp.concatenate, jnp.zeros(1), arrays)

    arrays = [cr.tensor(a) for a in (knots, q, t, system)]
    ours = loss_of(cr, cr.cat, cr.zeros(1, dtype=DOUBLE), arrays)
    return Program(ours, theirs, normal(16))


def mixture() -> Program:
    """A mixture of 5 Gaussians at 1,000 points in 4 dimensions."""
    x = normal(1000, 4)
    xt = cr.tensor(x)

    def ours(w: Any, mean: Any, scale: Any) -> Any:
        z = (xt[:, None] - mean) * cr.exp(-scale)
        parts = cr.log_softmax(w, 0) - 0.5 * (z**2).sum(-1) - scale.sum(-1)
        return -cr.logsumexp(parts, 1).sum()

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(w: Any, mean: Any, scale: Any) -> Any:
            z = (x[:, None] - mean) * jnp.exp(-scale)
            parts = jax.nn.log_softmax(w) - 0.5 * (z**2).sum(-1) - scale.sum(-1)
            return -jax.nn.logsumexp(parts, 1).sum()

        return loss

    return Program(ours, theirs, normal(5), normal(5, 4), normal(5, 4) * 0.1)


# --- images and networks --------------------------------------------------------------------------


def deconvolution() -> Program:
    """Deconvolution of an image of 128 × 128 pixels, with total variation."""
    y, x = normal(128, 128), normal(128, 128)
    distance = (np.arange(128) - 64) ** 2
    blur = np.fft.rfft2(np.exp(-np.add.outer(distance, distance) / 20))

    def loss_of(xp: Any, y: Any, blur: Any) -> Callable[..., Any]:
        def loss(x: Any) -> Any:
            rest = xp.fft.irfft2(xp.fft.rfft2(x) * blur) - y
            down, right = (x[1:] - x[:-1])[:, 1:], (x[:, 1:] - x[:, :-1])[1:]
            return (rest**2).sum() + 0.1 * xp.sqrt(down**2 + right**2 + 1e-3).sum()

        return loss

    def theirs() -> Callable[..., Any]:
        import jax.numpy as jnp

        return loss_of(jnp, jnp.asarray(y), jnp.asarray(blur))

    return Program(loss_of(cr, cr.tensor(y), cr.tensor(blur)), theirs, x)


def lens() -> Program:
    """The phase of a 64 × 64 hologram: two Fourier transforms and an intensity."""
    target = RNG.random((64, 64))

    def loss_of(xp: Any, target: Any) -> Callable[..., Any]:
        def loss(phase: Any) -> Any:
            field = xp.fft.fft2(xp.cos(phase) + 1j * xp.sin(phase)) / 64
            return ((xp.abs(field) ** 2 - target) ** 2).mean()

        return loss

    def theirs() -> Callable[..., Any]:
        import jax.numpy as jnp

        return loss_of(jnp, jnp.asarray(target))

    return Program(loss_of(cr, cr.tensor(target)), theirs, normal(64, 64))


def medium_network() -> Program:
    """A network of four layers of 32 units, 64 examples."""
    x, y = normal(64, 32), normal(64, 1)

    def loss_of(xp: Any, x: Any, y: Any) -> Callable[..., Any]:
        def loss(*weights: Any) -> Any:
            h = x
            for w in weights[:-1]:
                h = xp.tanh(h @ w)
            return ((h @ weights[-1] - y) ** 2).mean()

        return loss

    def theirs() -> Callable[..., Any]:
        import jax.numpy as jnp

        return loss_of(jnp, jnp.asarray(x), jnp.asarray(y))

    weights = [normal(32, 32) * 0.2 for _ in range(3)] + [normal(32, 1) * 0.2]
    return Program(loss_of(cr, cr.tensor(x), cr.tensor(y)), theirs, *weights)


def ensemble() -> Program:
    """50 small networks by vmap, 40 examples."""
    x, y = normal(40, 3), normal(40)
    xt, yt = cr.tensor(x), cr.tensor(y)

    def ours(a: Any, b: Any) -> Any:
        return cr.vmap(lambda a, b: ((cr.tanh(xt @ a) @ b - yt) ** 2).mean())(a, b).sum()

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def one(a: Any, b: Any) -> Any:
            return ((jnp.tanh(x @ a) @ b - y) ** 2).mean()

        return lambda a, b: jax.vmap(one)(a, b).sum()

    return Program(ours, theirs, normal(50, 3, 20), normal(50, 20))


def recurrent() -> Program:
    """Log-likelihood of 64 characters under a gated recurrent network, as a loop of Python."""
    symbols = RNG.integers(0, 20, 65)
    st = cr.tensor(symbols)

    def cell(sigmoid: Any, tanh: Any, h: Any, x: Any, u: Any) -> Any:
        gates = h @ u
        z, r = sigmoid(x[:16] + gates[:16]), sigmoid(x[16:32] + gates[16:32])
        return (1 - z) * h + z * tanh(x[32:] + r * gates[32:])

    def ours(e: Any, u: Any, v: Any) -> Any:
        h, total = cr.zeros(16, dtype=DOUBLE), 0.0
        for t in range(64):
            h = cell(cr.sigmoid, cr.tanh, h, e[st[t]], u)
            total = total - cr.log_softmax(h @ v, 0)[st[t + 1]]
        return total

    def theirs() -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def loss(e: Any, u: Any, v: Any) -> Any:
            def step(h: Any, pair: Any) -> Any:
                h = cell(jax.nn.sigmoid, jnp.tanh, h, e[pair[0]], u)
                return h, -jax.nn.log_softmax(h @ v)[pair[1]]

            pairs = (jnp.asarray(symbols[:-1]), jnp.asarray(symbols[1:]))
            return jax.lax.scan(step, jnp.zeros(16), pairs)[1].sum()

        return loss

    return Program(ours, theirs, normal(20, 48) * 0.3, normal(16, 48) * 0.3, normal(16, 20) * 0.3)


def of_steps(made: Callable[[], steps.Made]) -> Callable[[], Program]:
    """Return the maker of a program of `steps`."""

    def make() -> Program:
        loss, arrays = made()
        return Program(loss(steps.Steps("chainrule")), lambda: loss(steps.Steps("jax")), *arrays)

    make.__doc__ = made.__doc__
    return make


# --- the table ------------------------------------------------------------------------------------

PROGRAMS = (
    *(kalman, hidden_markov, particle_filter, alignment, graph_layers, bag_of_words),
    *(newton, heat, waves, predator_prey, control, barrier, gaussian_process, spline),
    *(mixture, deconvolution, lens, medium_network, ensemble, recurrent),
    *map(of_steps, (*steps.PROGRAMS, *models.PROGRAMS, *estimation.PROGRAMS)),
)


def flat(results: Any) -> list[Array]:
    """Return the arrays of nested results."""
    if isinstance(results, tuple | list):
        return [array for each in results for array in flat(each)]
    return [np.asarray(results.detach() if isinstance(results, cr.Tensor) else results)]


def first_call(job: Job) -> tuple[Any, float]:
    """Return the result of the first call, and its seconds."""
    start = time.perf_counter()
    return job(), time.perf_counter() - start


def row(make: Callable[[], Program]) -> tuple[harness.Row, float, float]:
    """Compare and measure one program; return also the seconds of the first calls."""
    program = make()
    ours, theirs = program.job(), program.peer_job()
    (found, seconds), (wanted, peer_seconds) = first_call(ours), first_call(theirs)
    for got, want in zip(flat(found), flat(wanted), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8 * np.abs(want).max())
    jobs = {"chainrule": ours, "JAX jit": theirs}
    name = (make.__doc__ or "").rstrip(".")
    return harness.measure(name, jobs, {"JAX jit": 1.0}), seconds, peer_seconds


def table() -> str:
    """Measure all programs."""
    head = ["µs", "chainrule", "JAX jit", "ratio", "first call, s", "JAX's, s"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    ratios = []
    for make in PROGRAMS:
        measured, seconds, peer_seconds = row(make)
        ours, theirs = (measured.median(name) * 1e6 for name in ("chainrule", "JAX jit"))
        ratios.append(ours / theirs)
        cells = [measured.name, f"{ours:.0f}", f"{theirs:.0f}", f"{ratios[-1]:.2f}"]
        lines.append("| " + " | ".join([*cells, f"{seconds:.2f}", f"{peer_seconds:.2f}"]) + " |")
    lines.append(f"\nMedian of the ratios: {np.median(ratios):.2f}.")
    return "\n".join(lines)


def main() -> str:
    if not is_installed("JAX jit"):
        return "JAX is not installed."
    import jax

    before = os.environ.get("CHAINRULE_CACHE")
    os.environ["CHAINRULE_CACHE"] = ""  # first calls compile
    jax.config.update("jax_enable_x64", True)
    try:
        return f"{table()}\n\n{harness.versions(cr, np, jax)}"
    finally:
        jax.config.update("jax_enable_x64", False)
        del os.environ["CHAINRULE_CACHE"]
        if before is not None:
            os.environ["CHAINRULE_CACHE"] = before


if __name__ == "__main__":
    print(main())
