"""Simulations and recursions of many steps, each as users of NumPy and of JAX write it.

A program is a function of a library that returns its loss, and the arrays that the loss is
differentiated by. `Steps` is how the library's users write loops and writes to parts of arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
Loss = Callable[..., Any]
Made = tuple[Callable[["Steps"], Loss], list[Array]]


class Steps:
    """A library: its namespace `np`, and loops and sums at indices in its style."""

    def __init__(self, library: str) -> None:
        self.is_jax = library == "jax"
        if self.is_jax:
            import jax

            self.np: Any = jax.numpy
            self.array, self.scan = jax.numpy.asarray, jax.lax.scan
            self.logaddexp = jax.numpy.logaddexp
        else:
            import chainrule as cr

            self.np, self.array, self.scan = cr, cr.tensor, self._scan
            self.logaddexp = cr.logaddexp
        self.zeros = lambda *shape: self.array(np.zeros(shape))

    def _scan(self, step: Any, carry: Any, xs: Any) -> Any:
        parts = zip(*xs, strict=True) if isinstance(xs, tuple) else xs
        found = []
        for x in parts:
            carry, y = step(carry, x)
            found.append(y)
        return carry, None if found[0] is None else self.np.stack(found)

    def repeat(self, count: int, step: Any, carry: Any) -> Any:
        """Return the carry after so many steps."""
        if self.is_jax:
            import jax

            return jax.lax.fori_loop(0, count, lambda _, c: step(c), carry)
        for _ in range(count):
            carry = step(carry)
        return carry

    def add_at(self, x: Any, index: Any, values: Any) -> Any:
        """Return `x` with values added at an index of its first axis."""
        return x.at[index].add(values) if self.is_jax else self.np.index_add(x, 0, index, values)

    def concat(self, parts: Any, axis: int = 0) -> Any:
        """Return arrays side by side."""
        return self.np.concatenate(parts, axis)


def heat_implicit() -> Made:
    """10 steps of Crank and Nicolson at 48 points, each by Thomas's algorithm."""
    n = 48

    def make(lib: Steps) -> Loss:
        xp = lib.np

        def solved(r: Any, right: Any) -> Any:
            def down(carry: Any, d: Any) -> Any:
                c, before = carry
                m = 1 + 2 * r + r * c
                c, after = -r / m, (d + r * before) / m
                return (c, after), xp.stack([c, after])

            _, rows = lib.scan(down, (lib.zeros(), lib.zeros()), right)

            def up(x: Any, row: Any) -> Any:
                x = row[1] - row[0] * x
                return x, x

            return xp.flip(lib.scan(up, lib.zeros(), xp.flip(rows, (0,)))[1], (0,))

        def loss(u: Any, conductivity: Any) -> Any:
            r = 0.1 * conductivity

            def step(u: Any) -> Any:
                left = lib.concat([lib.zeros(1), u[:-1]])
                right = lib.concat([u[1:], lib.zeros(1)])
                return solved(r, u + r * (left - 2 * u + right))

            return (lib.repeat(10, step, u) ** 2).sum()

        return loss

    return make, [np.sin(np.arange(n) / 5.0), np.array(1.0)]


def phase_field() -> Made:
    """40 steps of Cahn and Hilliard's equation on 32 × 32 points, by Fourier transforms."""
    k = 2 * np.pi * np.fft.fftfreq(32)
    squares = k[:, None] ** 2 + k[None] ** 2

    def make(lib: Steps) -> Loss:
        fft, k2 = lib.np.fft, lib.array(squares)

        def loss(u: Any, width: Any) -> Any:
            def step(spectrum: Any) -> Any:
                u = fft.ifft2(spectrum).real
                return (spectrum - 0.1 * k2 * fft.fft2(u**3 - u)) / (1 + 0.1 * width * k2**2)

            return (fft.ifft2(lib.repeat(40, step, fft.fft2(u))).real ** 4).sum()

        return loss

    return make, [0.1 * np.random.default_rng(0).standard_normal((32, 32)), np.array(0.5)]


def blurred() -> Made:
    """20 iterations of Richardson and Lucy on 64 × 64 pixels; the width of the blur."""
    image, axis = 0.1 + np.random.default_rng(0).random((64, 64)), np.arange(64) - 32.0

    def make(lib: Steps) -> Loss:
        xp, y, squares = lib.np, lib.array(image), lib.array(axis[:, None] ** 2 + axis**2)

        def loss(width: Any) -> Any:
            spot = xp.exp(-squares / (2 * width**2))
            filtered = xp.fft.rfft2(spot / spot.sum())

            def blur(x: Any, by: Any) -> Any:
                return xp.fft.irfft2(xp.fft.rfft2(x) * by, s=(64, 64))

            def step(u: Any) -> Any:
                return u * blur(y / (blur(u, filtered) + 1e-3), xp.conj(filtered))

            return (lib.repeat(20, step, y) ** 2).mean()

        return loss

    return make, [np.array(1.5)]


def wave_function() -> Made:
    """100 split steps of Schrödinger's equation at 256 points; height and width of a barrier."""
    x, k = np.linspace(-10, 10, 256, endpoint=False), 2 * np.pi * np.fft.fftfreq(256, 20 / 256)

    def make(lib: Steps) -> Loss:
        xp, places, turn = lib.np, lib.array(x), lib.array(np.exp(-0.01j * k**2))
        start = lib.array(np.exp(-((x + 3) ** 2) + 2j * x))

        def loss(height: Any, width: Any) -> Any:
            half = xp.exp(-0.01j * height * xp.exp(-(places**2) / width))

            def step(p: Any) -> Any:
                return half * xp.fft.ifft(turn * xp.fft.fft(half * p))

            return (xp.abs(lib.repeat(100, step, start)[128:]) ** 2).sum()

        return loss

    return make, [np.array(2.0), np.array(1.0)]


def lattice() -> Made:
    """30 steps of a lattice Boltzmann method, nine directions on 32 × 32 points."""
    moves = np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
    weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)

    def make(lib: Steps) -> Loss:
        xp, c, w = lib.np, lib.array(moves.astype(float)), lib.array(weights[:, None, None])

        def balanced(density: Any, u: Any) -> Any:
            along = xp.einsum("qd,dxy->qxy", c, u)
            return w * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * (u**2).sum(0))

        def loss(rate: Any, u: Any) -> Any:
            def step(f: Any) -> Any:
                f = xp.stack([xp.roll(f[q], (int(a), int(b)), (0, 1)) for q, (a, b) in turns])
                density = f.sum(0)
                u = xp.einsum("qd,qxy->dxy", c, f) / density
                return f + rate * (balanced(density, u) - f)

            turns = list(enumerate(moves))
            f = lib.repeat(30, step, balanced(lib.zeros(32, 32) + 1, u))
            return (xp.einsum("qd,qxy->dxy", c, f) ** 2).sum()

        return loss

    return make, [np.array(1.2), 0.05 * np.random.default_rng(0).standard_normal((2, 32, 32))]


def cloth() -> Made:
    """60 steps of a cloth of 100 masses and 261 springs that hangs by two corners."""
    grid = np.arange(100).reshape(10, 10)
    ends = [(grid[:, :-1], grid[:, 1:]), (grid[:-1], grid[1:]), (grid[:-1, :-1], grid[1:, 1:])]
    first, second = (np.concatenate([pair[i].ravel() for pair in ends]) for i in range(2))
    places = np.stack([*np.divmod(np.arange(100.0), 10), np.zeros(100)], 1) / 10
    lengths = np.linalg.norm(places[first] - places[second], axis=1)
    moving = np.ones((100, 1))
    moving[[0, 9]] = 0

    def make(lib: Steps) -> Loss:
        xp, i, j, rest = lib.np, lib.array(first), lib.array(second), lib.array(lengths)
        gravity, free = lib.array(np.array([0, 0, -9.8])), lib.array(moving)

        def loss(x: Any, stiffness: Any, friction: Any) -> Any:
            def step(state: Any) -> Any:
                x, v = state
                d = x[j] - x[i]
                size = xp.sqrt((d * d).sum(1))
                pull = (stiffness * (size - rest) / size)[:, None] * d
                force = lib.add_at(lib.add_at(xp.zeros_like(x), i, pull), j, -pull)
                v = (v + 0.003 * (force / 0.05 + gravity - friction * v)) * free
                return x + 0.003 * v, v

            return (lib.repeat(60, step, (x, xp.zeros_like(x)))[0][:, 2] ** 2).sum()

        return loss

    return make, [places + 0.001 * np.sin(np.arange(300.0)).reshape(100, 3), *np.array([30, 0.5])]


def labels() -> Made:
    """Connectionist temporal classification of 60 frames: 15 labels of 12."""
    rng = np.random.default_rng(0)
    wanted = np.zeros(31, int)
    wanted[1::2] = rng.integers(1, 12, 15)
    differs = np.zeros(31, bool)
    differs[3::2] = wanted[3::2] != wanted[1:-2:2]

    def make(lib: Steps) -> Loss:
        xp, places, skips = lib.np, lib.array(wanted), lib.array(differs)

        def loss(scores: Any) -> Any:
            scores = scores - xp.log(xp.exp(scores).sum(1))[:, None]
            frames, never = scores[:, places], lib.zeros(31) - 1e30

            def step(a: Any, frame: Any) -> Any:
                one = lib.concat([never[:1], a[:-1]])
                two = xp.where(skips, lib.concat([never[:2], a[:-2]]), never)
                return lib.logaddexp(lib.logaddexp(a, one), two) + frame, None

            a = lib.scan(step, lib.concat([frames[0, :2], never[:29]]), frames[1:])[0]
            return -lib.logaddexp(a[-1], a[-2])

        return loss

    return make, [rng.standard_normal((60, 12))]


def truss() -> Made:
    """Compliance of a truss of 12 joints and 21 bars, assembled bar by bar."""
    bars = [(i, i + 1) for i in range(11)] + [(i, i + 2) for i in range(10)]

    def make(lib: Steps) -> Loss:
        xp, load = lib.np, lib.array(np.tile([0, -1.0], 10))

        def loss(x: Any, areas: Any) -> Any:
            matrix = lib.zeros(24, 24)
            for bar, (i, j) in enumerate(bars):
                d = x[j] - x[i]
                length = xp.sqrt((d**2).sum())
                k = areas[bar] / length * xp.outer(d / length, d / length)
                k = lib.concat([lib.concat([k, -k], 1), lib.concat([-k, k], 1)])
                at = np.ix_(
                    [2 * i, 2 * i + 1, 2 * j, 2 * j + 1], [2 * i, 2 * i + 1, 2 * j, 2 * j + 1]
                )
                if lib.is_jax:
                    matrix = matrix.at[at].add(k)
                else:
                    matrix[at] += k
            stiff = matrix[4:, 4:] + 1e-6 * lib.array(np.eye(20))
            return load @ xp.linalg.solve(stiff, load) + 0.1 * areas.sum()

        return loss

    joints = np.stack([np.arange(12) * 0.5, np.arange(12) % 2], 1)
    return make, [joints + 0.01 * np.sin(np.arange(24.0)).reshape(12, 2), 1 + np.arange(21) / 21]


PROGRAMS = (labels, heat_implicit, phase_field, blurred, wave_function, lattice, cloth, truss)
