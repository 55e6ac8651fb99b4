import numpy as np


def program(V, target):
    """Modified Gram-Schmidt done in place on the rows of a copy (through views)."""
    Q = V.astype(float)
    k = len(Q)
    R = np.zeros((k, k))
    for i in range(k):
        row = Q[i]
        R[i, i] = np.sqrt(row.dot(row))
        row /= R[i, i]
        for j in range(i + 1, k):
            other = Q[j]
            R[i, j] = row.dot(other)
            other -= R[i, j] * row

    coeff = Q.dot(target)
    projection = np.zeros_like(target)
    for ci, qi in zip(coeff, Q):
        projection += ci * qi
    distance = np.linalg.norm(target - projection)

    # Householder-style sign convention: make R's trace an objective, too
    volume = R.diagonal().copy()
    np.log(volume, out=volume)
    upper = R[np.triu_indices(k, 1)]
    return distance + volume.sum() + 0.1 * np.tanh(upper).sum()


ARGUMENTS = (
    np.array([[1.0, 0.4, -0.2, 0.7, 0.1],
              [0.3, 1.5, 0.6, -0.4, 0.2],
              [-0.5, 0.2, 1.1, 0.9, -0.8]]),
    np.array([0.9, -0.3, 0.5, 1.2, 0.4]),
)
