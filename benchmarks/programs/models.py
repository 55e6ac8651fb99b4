"""Models of control, mechanics, molecules, gases and quanta, written as those of `steps`."""

from __future__ import annotations

from typing import Any

import numpy as np

from programs.steps import Loss, Made, Steps


def drawn(*shape: int) -> Any:
    """Return numbers that are the same in each run."""
    return np.random.default_rng(len(shape)).standard_normal(shape)


def cart_pole() -> Made:
    """Two iterations of an LQR with 25 steps of a pole on a cart, linearised by differences."""
    cost, dt, eps = np.diag([1.0, 10.0, 0.1, 0.1]), 0.04, 1e-4

    def make(lib: Steps) -> Loss:
        xp, q, r, eye = lib.np, lib.array(cost), lib.array(np.eye(1) / 10), lib.array(np.eye(4))
        begin = lib.array(np.array([0.0, 0.3, 0.0, 0.0]))

        def loss(forces: Any, mass: Any, length: Any) -> Any:
            def moved(x: Any, u: Any) -> Any:
                angle, turn = x[1], x[3]
                s, c = xp.sin(angle), xp.cos(angle)
                total = 1 + mass * s * s
                push = u[0] + mass * s * (length * turn * turn + 9.8 * c)
                swing = -u[0] * c - mass * length * turn * turn * c * s - (1 + mass) * 9.8 * s
                rates = [x[2], turn, push / total, swing / (length * total)]
                return x + dt * xp.stack(rates)

            def back(carry: Any, at: Any) -> Any:
                (v, slope), (x, u) = carry, at
                columns = [moved(x + eps * e, u) - moved(x - eps * e, u) for e in eye]
                a = xp.stack(columns, 1) / (2 * eps)
                b = ((moved(x, u + eps) - moved(x, u - eps)) / (2 * eps))[:, None]
                of_x, of_u = q @ x + a.T @ slope, r @ u + b.T @ slope
                uu, ux = r + b.T @ v @ b, b.T @ v @ a
                gain, shift = -xp.linalg.solve(uu, ux), -xp.linalg.solve(uu, of_u)
                carry = q + a.T @ v @ a + ux.T @ gain, of_x + ux.T @ shift
                return carry, lib.concat([gain[0], shift])

            def forward(x: Any, at: Any) -> Any:
                before, u, gain = at
                u = u + 0.5 * gain[4:] + gain[None, :4] @ (x - before)
                return moved(x, u), u

            def path(forces: Any) -> Any:
                return lib.scan(lambda x, u: (moved(x, u), x), begin, forces)

            for _ in range(2):
                end, states = path(forces)
                later = xp.flip(states, (0,)), xp.flip(forces, (0,))
                gains = xp.flip(lib.scan(back, (q, q @ end), later)[1], (0,))
                forces = lib.scan(forward, begin, (states, forces, gains))[1]
            states = path(forces)[1]
            return xp.einsum("ti,ij,tj->", states, q, states) + 0.1 * (forces**2).sum()

        return loss

    return make, [0.1 * drawn(25, 1), np.array(0.3), np.array(0.5)]


def molecules() -> Made:
    """20 steps of 36 molecules in a periodic box, whose forces end at a distance."""
    x, y = np.divmod(np.arange(36.0), 6)

    def make(lib: Steps) -> Loss:
        xp, alone = lib.np, lib.array(np.eye(36, dtype=bool))

        def loss(places: Any, speeds: Any, depth: Any, size: Any) -> Any:
            def force(x: Any) -> Any:
                d = x[:, None] - x[None]
                d = d - 7.2 * xp.round(d / 7.2)
                squares = xp.where(alone, 1.0, (d * d).sum(-1))
                near = (squares < 6.25) & ~alone
                sixth = (size**2 / squares) ** 3
                pull = 24 * depth * (2 * sixth * sixth - sixth) / squares
                return (xp.where(near, pull, 0.0)[..., None] * d).sum(1)

            def step(state: Any) -> Any:
                x, v, f = state
                v = v + 0.0025 * f
                x = x + 0.005 * v
                x = x - 7.2 * xp.floor(x / 7.2)
                f = force(x)
                return x, v + 0.0025 * f, f

            _, v, f = lib.repeat(20, step, (places, speeds, force(places)))
            return (v**2).sum() + 0.1 * (f**2).mean()

        return loss

    places = 1.2 * np.stack([x, y], 1) + 0.05 * drawn(36, 2)
    return make, [places, 0.3 * drawn(36, 2), np.array(1.0), np.array(1.0)]


def shock_tube() -> Made:
    """50 steps of a gas of 80 cells: limited slopes, and fluxes of Harten, Lax and van Leer."""
    left = np.arange(80) < 40
    begin = np.stack([np.where(left, 1, 0.125), np.zeros(80), np.where(left, 2.5, 0.25)])

    def make(lib: Steps) -> Loss:
        xp = lib.np

        def limited(a: Any, b: Any) -> Any:
            return xp.where(a * b > 0, xp.where(xp.abs(a) < xp.abs(b), a, b), 0.0)

        def loss(gas: Any, gamma: Any, ratio: Any) -> Any:
            def state(q: Any) -> Any:
                u = q[1] / q[0]
                p = (gamma - 1) * (q[2] - 0.5 * q[0] * u * u)
                return u, xp.sqrt(gamma * p / q[0]), xp.stack([q[1], q[1] * u + p, u * (q[2] + p)])

            def step(q: Any) -> Any:
                slope = limited(q[:, 1:-1] - q[:, :-2], q[:, 2:] - q[:, 1:-1])
                a, b = q[:, 1:-2] + 0.5 * slope[:, :-1], q[:, 2:-1] - 0.5 * slope[:, 1:]
                (u, c, f), (v, d, g) = state(a), state(b)
                low, high = xp.minimum(u - c, v - d), xp.maximum(u + c, v + d)
                middle = (high * f - low * g + low * high * (b - a)) / (high - low)
                flux = xp.where(low > 0, f, xp.where(high < 0, g, middle))
                change = ratio * (flux[:, 1:] - flux[:, :-1])
                if lib.is_jax:
                    return q.at[:, 2:-2].add(-change)
                q = q.clone()
                q[:, 2:-2] -= change
                return q

            q = lib.repeat(50, step, gas)
            return (q[0] ** 2).sum() + (q[2] ** 2).mean()

        return loss

    return make, [begin + 0.01 * np.abs(drawn(3, 80)), np.array(1.4), np.array(0.2)]


def robot_arm() -> Made:
    """Inverse kinematics of six joints: four damped steps, with products of 4 × 4 matrices."""
    table = [(0, 0.3, 1), (0.4, 0, 0), (0.35, 0.1, 0), (0, 0.2, 1), (0, 0.1, -1), (0, 0.05, 0)]

    def make(lib: Steps) -> Loss:
        xp, eye = lib.np, lib.array(np.eye(3))
        cross = xp.cross if lib.is_jax else xp.linalg.cross

        def link(q: Any, a: float, d: float, twist: int) -> Any:
            c, s, zero = xp.cos(q), xp.sin(q), q * 0
            ct, st = float(twist == 0), float(twist)
            rows = [
                xp.stack([c, -s * ct, s * st, a * c]),
                xp.stack([s, c * ct, -c * st, a * s]),
                xp.stack([zero, zero + st, zero + ct, zero + d]),
            ]
            return xp.stack([*rows, xp.stack([zero, zero, zero, zero + 1])])

        def pose(q: Any) -> Any:
            t, axes, joints = lib.array(np.eye(4)), [], []
            for i, parts in enumerate(table):
                axes.append(t[:3, 2])
                joints.append(t[:3, 3])
                t = t @ link(q[i], *parts)
            end = t[:3, 3]
            turned = [cross(z, end - p) for z, p in zip(axes, joints, strict=True)]
            return t[:3, :3], end, xp.stack(turned, 1)

        def loss(q: Any, goal: Any, damping: Any) -> Any:
            for _ in range(4):
                _, end, j = pose(q)
                q = q + j.T @ xp.linalg.solve(j @ j.T + damping * eye, goal - end)
            turn, end, _ = pose(q)
            return ((end - goal) ** 2).sum() + 0.1 * ((turn - eye) ** 2).sum()

        return loss

    return make, [0.3 * drawn(6), np.array([0.4, 0.2, 0.5]), np.array(0.1)]


def qubits() -> Made:
    """A circuit of five qubits, three layers of turns and controlled negations."""
    signs = 1 - 2 * (np.arange(32)[:, None] >> np.arange(5) & 1)
    energies = (signs * np.roll(signs, -1, 1)).sum(1) * 1.0
    orders = []
    for q in range(5):
        state, other = np.arange(32), 1 << (4 - (q + 1) % 5)
        orders.append(np.where(state >> (4 - q) & 1, state ^ other, state))

    def make(lib: Steps) -> Loss:
        xp, levels = lib.np, lib.array(energies)

        def loss(angles: Any) -> Any:
            state = lib.array(np.eye(1, 32, dtype=complex)[0])
            for layer in range(3):
                for q in range(5):
                    tilt, phase = angles[layer, q, 0] / 2, angles[layer, q, 1] / 2
                    c, s, e = xp.cos(tilt), xp.sin(tilt), xp.exp(1j * phase)
                    gate = xp.stack([xp.stack([c / e, -s / e]), xp.stack([s * e, c * e])])
                    parts = state.reshape(2**q, 2, 2 ** (4 - q))
                    state = xp.einsum("ab,xby->xay", gate, parts).reshape(-1)
                for q in range(5):
                    state = state[orders[q]]
            halves = state.reshape(2, -1)
            return (xp.abs(state) ** 2 * levels).sum() + (xp.conj(halves[0]) * halves[1]).real.sum()

        return loss

    return make, [drawn(3, 5, 2)]


def smoother() -> Made:
    """A Kalman filter of 50 steps, and Rauch, Tung and Striebel's pass back through its states."""
    seen, advance = drawn(50, 2), np.eye(4) + 0.1 * np.eye(4, k=2)

    def make(lib: Steps) -> Loss:
        xp, y, h, eye = lib.np, lib.array(seen), lib.array(np.eye(2, 4)), lib.array(np.eye(4))
        a = lib.array(advance)

        def loss(q: Any, r: Any) -> Any:
            def ahead(carry: Any, y: Any) -> Any:
                m, p = carry
                m, p = a @ m, a @ p @ a.T + q * eye
                gain = xp.linalg.solve(h @ p @ h.T + r * eye[:2, :2], h @ p).T
                after = m + gain @ (y - h @ m), p - gain @ h @ p
                kept = [m[:, None], p, after[0][:, None], after[1]]
                return after, lib.concat(kept, 1)

            def back(carry: Any, kept: Any) -> Any:
                (m, p), (here, later) = carry, kept
                gain = xp.linalg.solve(later[:, 1:5], a @ here[:, 6:]).T
                m = here[:, 5] + gain @ (m - later[:, 0])
                p = here[:, 6:] + gain @ (p - later[:, 1:5]) @ gain.T
                return (m, p), (m**2).sum() + xp.diagonal(p).sum()

            end, kept = lib.scan(ahead, (lib.zeros(4), eye * 1.0), y)
            pairs = xp.flip(kept[:-1], (0,)), xp.flip(kept[1:], (0,))
            return lib.scan(back, end, pairs)[1].sum()

        return loss

    return make, [np.array(0.1), np.array(0.5)]


PROGRAMS = (molecules, shock_tube, robot_arm, qubits, smoother, cart_pole)
