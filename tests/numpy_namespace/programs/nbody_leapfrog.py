import numpy as np

G = 1.0
SOFTENING = 0.1


def accelerations(pos, mass, acc=np.zeros((5, 3))):
    """Fill (and return) the work array acc."""
    acc.fill(0.0)
    n = pos.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            dr = pos[j] - pos[i]
            inv_r3 = (np.dot(dr, dr) + SOFTENING ** 2) ** -1.5
            acc[i] += G * mass[j] * inv_r3 * dr
            acc[j] -= G * mass[i] * inv_r3 * dr
    return acc


def program(x0, mass):
    pos = x0.copy()
    vel = np.zeros_like(pos)
    # rotate the cluster about z
    vel[:, 0] = -0.3 * pos[:, 1]
    vel[:, 1] = 0.3 * pos[:, 0]
    vel -= (mass[:, None] * vel).sum(axis=0) / mass.sum()

    dt = 0.02
    a = accelerations(pos, mass).copy()
    for _ in range(15):
        vel += 0.5 * dt * a
        pos += dt * vel
        a[...] = accelerations(pos, mass)
        vel += 0.5 * dt * a

    # pair-distance histogram, each distance shared between the two nearest bins
    i, j = np.triu_indices(len(mass), 1)
    sep = np.sqrt(((pos[i] - pos[j]) ** 2).sum(-1)) / 0.4
    low = sep.astype(int)
    hist = np.zeros(12)
    np.add.at(hist, low, 1 - (sep - low))
    np.add.at(hist, low + 1, sep - low)
    hist /= hist.sum()

    kinetic = 0.5 * (mass * (vel ** 2).sum(axis=1)).sum()
    radius = np.sqrt((pos ** 2).sum(axis=1)).max()
    return kinetic + 0.1 * radius - (hist ** 2).sum()


ARGUMENTS = (
    np.array([[1.0, 0.1, 0.0], [-0.8, 0.7, 0.2], [0.1, -1.3, -0.3],
              [0.5, 0.9, 0.4], [-0.4, -0.5, 0.1]]),
    np.array([1.0, 0.8, 1.3, 0.6, 1.1]),
)
