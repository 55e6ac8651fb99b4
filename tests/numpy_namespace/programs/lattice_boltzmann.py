import numpy as np

# D2Q9 lattice Boltzmann, body-force driven channel with a solid block
c = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
w = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
opposite = [0, 3, 4, 1, 2, 7, 8, 5, 6]


def equilibrium(rho, ux, uy, feq):
    usq = 1.5 * (ux ** 2 + uy ** 2)
    for i in range(9):
        cu = 3.0 * (c[i, 0] * ux + c[i, 1] * uy)
        feq[i] = rho * w[i] * (1.0 + cu + 0.5 * cu ** 2 - usq)


def program(tau, force):
    nx, ny = 12, 9
    solid = np.zeros((nx, ny), dtype=bool)
    solid[:, 0] = solid[:, -1] = True
    solid[4:6, 3:5] = True

    f = np.empty((9, nx, ny))
    feq = np.empty_like(f)
    f[...] = w[:, None, None]

    for t in range(12):
        rho = f.sum(axis=0)
        ux = np.tensordot(c[:, 0], f, axes=1) / rho
        uy = np.tensordot(c[:, 1], f, axes=1) / rho
        ux[~solid] += tau * force
        ux[solid] = 0.0
        uy[solid] = 0.0
        equilibrium(rho, ux, uy, feq)
        bounced = f[opposite][:, solid]
        f -= (f - feq) / tau
        f[:, solid] = bounced
        for i in range(1, 9):
            f[i] = np.roll(np.roll(f[i], c[i, 0], axis=0), c[i, 1], axis=1)

    flow = ux[~solid].mean()
    return 1e3 * flow + 1e4 * uy.var() + rho.ravel().std()


ARGUMENTS = (0.8, 1e-3)
