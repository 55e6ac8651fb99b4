import numpy as np


def van_leer(r):
    return (r + np.abs(r)) / (1.0 + np.abs(r))


def program(q0, speed):
    """Finite-volume advection with ghost cells and a flux limiter, periodic."""
    n = q0.size
    nu = speed * 0.4
    q = np.zeros(n + 4)
    q[2:-2] = q0
    F = np.zeros(n + 1)
    traj = []
    for _ in range(6):
        q[:2] = q[-4:-2]
        np.put(q, [n + 2, n + 3], q[2:4])
        dq = q[1:] - q[:-1]
        denom = dq[1:-1].copy()
        small = np.abs(denom) < 1e-8
        denom[small] = 1e-8
        r = dq[:-2] / denom
        phi = van_leer(r)
        F[:] = nu * q[1:-2] + 0.5 * nu * (1 - nu) * phi * dq[1:-1]
        q[2:-2] -= F[1:] - F[:-1]
        traj.append(q[2:-2].copy())
    traj = np.vstack(traj)
    weights = np.linspace(0.5, 1.5, n) ** 2
    return (traj ** 2).dot(weights).mean() + traj.var()


ARGUMENTS = (np.array([0.12, 0.23, 0.55, 1.1, 1.63, 1.9, 1.72, 1.31, 0.8, 0.46, 0.27, 0.15]), 0.9)
