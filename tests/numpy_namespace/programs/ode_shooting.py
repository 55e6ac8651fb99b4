import numpy as np

# Ball with drag through an atmosphere given by a table; find the elevation that
# hits x = target by the secant method (shooting), then report the arrival speed.
ALT = np.array([0.0, 0.35, 0.9, 1.6, 2.6, 4.0])


def interp_table(z, table):
    i = int(np.clip(np.searchsorted(ALT, z) - 1, 0, len(ALT) - 2))
    w = (z - ALT[i]) / (ALT[i + 1] - ALT[i])
    return table[i] + w * (table[i + 1] - table[i])


def rhs(state, table, out):
    vx, vy = state[2], state[3]
    speed = np.hypot(vx, vy)
    k = interp_table(state[1], table)
    out[:2] = state[2:]
    out[2] = -k * speed * vx
    out[3] = -1.0 - k * speed * vy
    return out


def fly(theta, v0, table, n=16, h=0.11, work=np.zeros((4, 4))):
    traj = np.zeros((n + 1, 4))
    traj[0, 2:] = v0 * np.cos(theta), v0 * np.sin(theta)
    for k in range(n):
        y = traj[k]
        k1 = rhs(y, table, work[0])
        k2 = rhs(y + 0.5 * h * k1, table, work[1])
        k3 = rhs(y + 0.5 * h * k2, table, work[2])
        k4 = rhs(y + h * k3, table, work[3])
        traj[k + 1] = y + h / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
    return traj


def program(table, v0):
    target = 1.6
    a, b = 0.80, 0.95
    fa = fly(a, v0, table)[-1, 0] - target
    fb = fly(b, v0, table)[-1, 0] - target
    it = 0
    while it < 3:
        a, b, fa = b, b - fb * (b - a) / (fb - fa), fb
        traj = fly(b, v0, table)
        fb = traj[-1, 0] - target
        it += 1
    return b + np.hypot(*traj[-1, 2:]) + 0.1 * traj[:, 1].max()


ARGUMENTS = (np.array([0.31, 0.26, 0.2, 0.14, 0.09, 0.05]), 1.9)
