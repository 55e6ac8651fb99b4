import numpy as np


def cholesky(A):
    n = A.shape[0]
    L = np.zeros((n, n))
    for j in range(n):
        L[j, j] = np.sqrt(A[j, j] - np.sum(L[j, :j] ** 2))
        for i in range(j + 1, n):
            L[i, j] = (A[i, j] - np.sum(L[i, :j] * L[j, :j])) / L[j, j]
    return L


def program(theta, y):
    """Gaussian-process log marginal likelihood with a hand-written factorisation."""
    length, amp, noise = np.exp(theta)
    x = np.linspace(0, 1, y.shape[0])
    K = amp ** 2 * np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / length ** 2)
    # add noise on the diagonal, through a flat view
    n = len(x)
    d = K.reshape(-1)
    d[::n + 1] += noise ** 2

    L = cholesky(K)

    alpha = y - y.mean()
    for i in range(n):
        if i:
            alpha[i] -= L[i, :i].dot(alpha[:i])
        alpha[i] /= L[i, i]
    logdet = 2 * np.log(L.diagonal()).sum()
    return -0.5 * (alpha ** 2).sum() - 0.5 * logdet - 0.5 * n * np.log(2 * np.pi)


ARGUMENTS = (np.array([-1.3, 0.1, -1.6]), np.array([0.2, 0.9, 1.1, 0.4, -0.5, -0.9, -0.3]))
