import numpy as np


def softmin(vals, gamma):
    v = np.array(vals)
    v /= -gamma
    top = v.max()
    v -= top
    return -gamma * (top + np.log(np.exp(v).sum()))


def program(x, y, gap):
    """Needleman-Wunsch/DTW hybrid: soft-min alignment cost of two sequences."""
    n, m = len(x), len(y)
    D = np.empty((n + 1, m + 1))
    D[0, 0] = 0.0
    for i in range(1, n + 1):
        D[i, 0] = D[i - 1, 0] + gap
    for j in range(1, m + 1):
        D[0, j] = D[0, j - 1] + gap

    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = (x[i - 1] - y[j - 1]) ** 2
            D[i, j] = softmin([D[i - 1, j - 1] + cost,
                               D[i - 1, j] + gap,
                               D[i, j - 1] + gap], gamma=0.3)
    return D[n, m] / (n + m)


ARGUMENTS = (np.array([0.1, 0.9, 1.7, 1.1, 0.3]), np.array([0.2, 0.4, 1.5, 1.6, 0.9, 0.1]), 0.35)
