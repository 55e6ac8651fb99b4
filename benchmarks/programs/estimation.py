"""Models of filters, codes, chaos, images and flows, written as those of `steps`."""

from __future__ import annotations

from typing import Any

import numpy as np

from programs.models import drawn
from programs.steps import Loss, Made, Steps


def total_variation() -> Made:
    """60 steps of ADMM for a piecewise constant signal, with one factorisation."""

    def make(lib: Steps) -> Loss:
        xp, a, d = lib.np, lib.array(drawn(60, 40)), lib.array(np.diff(np.eye(40), axis=0))

        def triangular(matrix: Any, b: Any, lower: bool) -> Any:
            if lib.is_jax:
                import jax

                return jax.scipy.linalg.solve_triangular(matrix, b, lower=lower)
            return xp.linalg.solve_triangular(matrix, b[:, None], upper=not lower)[:, 0]

        def loss(weight: Any, rho: Any, b: Any) -> Any:
            factor = xp.linalg.cholesky(a.T @ a + rho * d.T @ d)

            def step(carry: Any) -> Any:
                _, z, u = carry
                right = a.T @ b + rho * d.T @ (z - u)
                x = triangular(factor.T, triangular(factor, right, True), False)
                v = d @ x + u
                z = xp.sign(v) * xp.maximum(abs(v) - weight / rho, 0.0)
                return x, z, v - z

            x, *_ = lib.repeat(60, step, (lib.zeros(40), lib.zeros(39), lib.zeros(39)))
            return ((a @ x - b) ** 2).mean() + (x**2).sum()

        return loss

    return make, [0.5, 1.0, drawn(60)]


def lyapunov() -> Made:
    """Largest Lyapunov exponent of Lorenz's system, by 60 QR decompositions."""

    def make(lib: Steps) -> Loss:
        xp = lib.np
        rows = lib.array(np.array([[-1.0, 1, 0], [0, 0, 0], [0, 0, 0]]))

        def loss(sigma: Any, rho: Any, beta: Any) -> Any:
            zero = 0 * sigma

            def step(carry: Any) -> Any:
                (x, y, z), q, total = carry
                second = xp.stack([rho - z, zero - 1, -x])
                jacobian = sigma * rows + xp.stack([0 * second, second, xp.stack([y, x, -beta])])
                q, r = xp.linalg.qr(q + 0.01 * jacobian @ q)
                total = total + xp.log(abs(r[0, 0]))
                moved = sigma * (y - x), x * (rho - z) - y, x * y - beta * z
                return tuple(p + 0.01 * m for p, m in zip((x, y, z), moved, strict=True)), q, total

            start = (zero + 1, zero + 2, zero + 20), lib.array(np.eye(3)), zero
            return lib.repeat(60, step, start)[2] / 0.6

        return loss

    return make, [10.0, 28.0, 8 / 3]


def advected() -> Made:
    """20 steps of a dye in a flow, traced back and interpolated between 40 × 40 points."""
    y, x = np.mgrid[0:40, 0:40].astype(float)
    dye = np.exp(-((x - 20) ** 2 + (y - 12) ** 2) / 20)

    def make(lib: Steps) -> Loss:
        xp, rows, columns = lib.np, lib.array(y), lib.array(x)

        def whole(z: Any) -> Any:
            return z.astype(int) if lib.is_jax else z.long()

        def loss(c: Any, u: Any, v: Any) -> Any:
            def step(c: Any) -> Any:
                top, left = xp.floor(rows - v), xp.floor(columns - u)
                down, right = rows - v - top, columns - u - left
                i, j = whole(top) % 40, whole(left) % 40
                k, m = (i + 1) % 40, (j + 1) % 40
                above = (1 - right) * c[i, j] + right * c[i, m]
                below = (1 - right) * c[k, j] + right * c[k, m]
                return (1 - down) * above + down * below

            return (lib.repeat(20, step, c)[10:20, 10:20] ** 2).sum()

        return loss

    return make, [dye, 0.8 * np.sin(y / 6), 0.8 * np.cos(x / 6)]


def unscented() -> Made:
    """Likelihood of 40 observations of a swinging state by an unscented Kalman filter."""
    observed = np.cumsum(drawn(40)) / 10

    def make(lib: Steps) -> Loss:
        xp, eye = lib.np, lib.array(np.eye(3))
        weights = lib.array(np.array([0.4, *[0.1] * 6]))

        def points(mean: Any, cov: Any) -> Any:
            root = xp.linalg.cholesky(cov) * 5**0.5
            return lib.concat([mean[None], mean + root.T, mean - root.T])

        def loss(q: Any, r: Any, mean: Any) -> Any:
            def step(carry: Any, y: Any) -> Any:
                mean, cov = carry
                angle, speed, force = points(mean, cov).T
                speed, angle = speed + 0.1 * (force - xp.sin(angle)), angle + 0.1 * speed
                x = xp.stack([angle, speed, 0.95 * force], 1)
                mean = weights @ x
                cov = (x - mean).T @ ((x - mean) * weights[:, None]) + q * q * eye
                x = points(mean, cov)
                seen = xp.sin(x[:, 0]) + 0.1 * x[:, 2] ** 2
                rest = seen - weights @ seen
                variance = weights @ rest**2 + r * r
                gain, e = (weights * rest) @ (x - mean) / variance, y - weights @ seen
                cost = 0.5 * (xp.log(variance) + e * e / variance)
                return (mean + gain * e, cov - variance * gain[:, None] * gain), cost

            return lib.scan(step, (mean, 0.5 * eye), lib.array(observed))[1].sum()

        return loss

    return make, [0.1, 0.3, np.array([1.0, 0.1, 0.0])]


def decoded() -> Made:
    """Eight rounds of belief propagation along the edges of a parity-check code."""
    checks = np.repeat(np.arange(24), 6)
    rng = np.random.default_rng(0)
    bits = np.concatenate([rng.choice(48, 6, replace=False) for _ in range(24)])

    def make(lib: Steps) -> Loss:
        xp, check, bit = lib.np, lib.array(checks), lib.array(bits)

        def loss(prior: Any, weights: Any) -> Any:
            def step(carry: Any) -> Any:
                message, _ = carry
                t = xp.tanh(0.5 * message)
                size, odd = xp.log(abs(t) + 1e-12), xp.where(t < 0, 1.0, 0 * t)
                sizes = lib.add_at(lib.zeros(24), check, size)
                odds = lib.add_at(lib.zeros(24), check, odd)
                sign = 1 - 2 * ((odds[check] - odd) % 2)
                product = sign * xp.exp(sizes[check] - size)
                back = 2 * xp.arctanh(xp.clip(product, -0.999999, 0.999999)) * weights
                total = lib.add_at(prior, bit, back)
                return total[bit] - back, total

            _, total = lib.repeat(8, step, (prior[bit], prior))
            return xp.log1p(xp.exp(-total)).sum()

        return loss

    return make, [1 + drawn(48), np.ones(144)]


PROGRAMS = (total_variation, lyapunov, advected, unscented, decoded)
