import numpy as np


def lu_inplace(A):
    n = A.shape[0]
    perm = np.arange(n)
    sign = 1.0
    for k in range(n - 1):
        p = k + np.argmax(np.abs(A[k:, k]))
        if p != k:
            A[[k, p]] = A[[p, k]]
            perm[[k, p]] = perm[[p, k]]
            sign = -sign
        A[k + 1:, k] /= A[k, k]
        A[k + 1:, k + 1:] -= np.outer(A[k + 1:, k], A[k, k + 1:])
    return perm, sign


def program(A, b):
    LU = np.array(A, dtype=float)      # work on a copy
    perm, sign = lu_inplace(LU)
    n = b.shape[0]

    # forward substitution (unit lower triangle)
    y = np.take(b, perm)
    for i in range(1, n):
        y[i] -= LU[i, :i] @ y[:i]

    # back substitution
    x = y.copy()
    for i in reversed(range(n)):
        x[i] -= LU[i, i + 1:] @ x[i + 1:]
        x[i] /= LU[i, i]

    det = sign * LU.diagonal().prod()
    residual_scale = np.abs(LU).sum(axis=1).max()
    return x.dot(x) + np.log(np.abs(det)) + 0.01 * residual_scale


ARGUMENTS = (
    np.array([[0.3, 2.1, -1.0, 0.4],
              [4.0, -0.7, 0.6, 1.1],
              [1.2, 0.9, 3.3, -0.8],
              [-2.2, 1.7, 0.5, 2.9]]),
    np.array([1.0, -0.5, 2.0, 0.7]),
)
