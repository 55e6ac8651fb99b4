import numpy as np


class Grid(object):
    """Yee grid, TM_z polarisation."""

    def __init__(self, nx, ny, eps):
        self.Ez = np.zeros((nx, ny))
        self.Hx = np.zeros((nx, ny))
        self.Hy = np.zeros((nx, ny))
        self.dz = np.zeros((nx, ny))
        self.ga = 1.0 / eps
        self.t = 0

    def step(self, source):
        Ez, Hx, Hy = self.Ez, self.Hx, self.Hy
        self.dz[1:, 1:] += 0.5 * (Hy[1:, 1:] - Hy[:-1, 1:] - Hx[1:, 1:] + Hx[1:, :-1])
        nx, ny = Ez.shape
        self.dz[nx // 2, ny // 3] += source
        Ez[:] = self.ga * self.dz
        # PEC walls
        Ez[0, :] = Ez[-1, :] = 0.0
        Ez[:, 0] = Ez[:, -1] = 0.0
        Hx[:, :-1] += 0.5 * (Ez[:, :-1] - Ez[:, 1:])
        Hy[:-1, :] += 0.5 * (Ez[1:, :] - Ez[:-1, :])
        self.t += 1


def program(rho):
    nx, ny = 18, 20
    eps = np.ones((nx, ny))
    eps[10:14, 11:15] += 3.0 * rho.reshape(4, 4)
    g = Grid(nx, ny, eps)
    total = 0.0
    while g.t < 40:
        pulse = np.exp(-0.5 * ((12.0 - g.t) / 4.0) ** 2)
        g.step(pulse)
        if g.t > 15:
            total += (g.Ez.swapaxes(0, 1)[5:15, 15] ** 2).sum()
    return total


ARGUMENTS = (np.linspace(0.1, 0.9, 16),)
