import numpy as np

# 1-D FDTD, free space then a dielectric slab; soft source, Mur absorbing ends.
# Objective: energy that reaches the probe behind the slab.

NX = 60
NSTEPS = 150
SRC = 10
PROBE = 50


def program(eps_slab, pulse_width):
    ez = np.zeros(NX)
    hy = np.zeros(NX - 1)
    eps = np.ones(NX)
    eps[25:35] = eps_slab
    courant = 0.5

    probe = np.empty(NSTEPS)
    mur = (courant - 1.0) / (courant + 1.0)

    for n in range(NSTEPS):
        hy += courant * np.diff(ez)
        before_left, before_right = ez[1], ez[-2]
        ez[1:-1] += courant / eps[1:-1] * (hy[1:] - hy[:-1])
        ez[SRC] += np.exp(-((n - 25.0) / pulse_width) ** 2)

        # first-order Mur
        ez[0], ez[-1] = (before_left + mur * (ez[1] - ez[0]),
                         before_right + mur * (ez[-2] - ez[-1]))

        probe[n] = ez[PROBE]

    return np.sum(probe ** 2) + 0.1 * (ez[0] ** 2 + ez[-1] ** 2)


ARGUMENTS = (2.3, 7.0)
