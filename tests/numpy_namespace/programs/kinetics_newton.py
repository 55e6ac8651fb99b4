import numpy as np


def program(log_k, y0):
    """Reversible chain A<->B, B+C->D, implicit Euler with Newton; hand-made Jacobian."""
    k1, k1r, k2 = 10.0 ** log_k
    S = np.zeros((4, 3))                # stoichiometry
    S[0, 0], S[1, 0] = -1, 1
    S[0, 1], S[1, 1] = 1, -1
    S[1:, 2] = [-1, -1, 1]

    y = np.copy(y0)
    h = 0.05
    nsteps = 8
    conc = np.zeros((nsteps + 1, 4))
    np.copyto(conc[0], y)
    rates = np.zeros(3)
    J = np.zeros((3, 4))
    for n in range(nsteps):
        yn = y.copy()
        err, it = 1.0, 0
        while err > 1e-10 and it < 20:
            rates[:] = k1 * yn[0], k1r * yn[1], k2 * yn[1] * yn[2]
            J[[0, 1], [0, 1]] = k1, k1r
            J[2, [1, 2]] = k2 * yn[2:0:-1]
            G = yn - y - h * S.dot(rates)
            A = -h * S.dot(J)
            A.flat[::5] += 1.0
            dy = np.linalg.solve(A, G)
            yn -= dy
            err = np.abs(dy).max()
            it += 1
        y = yn
        conc[n + 1] = y
    selectivity = y[3] / (y[1] + y[3])
    area = h * (conc[1:, 1] + conc[:-1, 1]).sum() / 2
    return selectivity + area


ARGUMENTS = (np.array([0.6, -0.2, 0.9]), np.array([1.0, 0.05, 0.7, 0.01]))
