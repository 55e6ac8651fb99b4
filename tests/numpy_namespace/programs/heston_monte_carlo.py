import numpy as np


def halton(n, base):
    out = np.zeros(n)
    for k in range(n):
        f, i = 1.0, k + 1
        while i > 0:
            f /= base
            out[k] += f * (i % base)
            i //= base
    return out


def program(params):
    v0, kappa, theta, xi, rho = params
    n_paths, n_steps = 64, 8
    dt = 1.0 / n_steps

    # quasi-random normals by Box-Muller, the same at every call
    u1, u2 = halton(n_paths * n_steps, 2), halton(n_paths * n_steps, 3)
    z = np.empty((2, n_steps, n_paths))
    z[0].flat = np.sqrt(-2 * np.log(u1)) * np.cos(2 * np.pi * u2)
    z[1].flat = np.sqrt(-2 * np.log(u1)) * np.sin(2 * np.pi * u2)

    logS = np.full(n_paths, np.log(100.0))
    var = np.array([v0]).repeat(n_paths)
    running = np.zeros(n_paths)
    for t in range(n_steps):
        dw1 = z[0, t]
        dw2 = rho * z[0, t] + np.sqrt(1 - rho ** 2) * z[1, t]
        vpos = var.clip(1e-4)
        logS += -0.5 * vpos * dt + np.sqrt(vpos * dt) * dw1
        var += kappa * (theta - vpos) * dt
        var += xi * np.sqrt(vpos * dt) * dw2
        running += np.exp(logS)
    running /= n_steps
    payoff = running - 98.0
    payoff[payoff < 0] = 0.0
    payoff[running > 112.0] *= 0.95     # fee on large gains
    return payoff.mean() + payoff.std(ddof=1) / np.sqrt(n_paths)


ARGUMENTS = (np.array([0.04, 1.5, 0.05, 0.3, -0.6]),)
