import numpy as np

OBS = [0, 2, 1, 1, 0, 2, 2, 1]


def logsumexp(x, axis):
    m = x.max(axis=axis)
    return m + np.log(np.exp(x - np.expand_dims(m, axis)).sum(axis))


def program(logits_A, logits_B):
    """Forward-backward in log space; expected count of state-0 visits minus log Z."""
    K = logits_A.shape[0]
    log_A = logits_A - logsumexp(logits_A, 1)[:, np.newaxis]
    log_B = logits_B - logsumexp(logits_B, 1)[:, np.newaxis]

    # stationary start: power the transition matrix
    # (with a slightly lazy chain)
    P = np.exp(log_A)
    np.fill_diagonal(P, P.diagonal() + 0.05)
    P /= P.sum(axis=1, keepdims=True)
    for _ in range(5):
        P = P @ P
    pi = P.mean(axis=0)

    T = len(OBS)
    alpha = np.full((T, K), -np.inf)
    beta = np.zeros((T, K))
    alpha[0] = np.log(pi) + log_B[:, OBS[0]]
    for t in range(1, T):
        for k in range(K):
            alpha[t, k] = logsumexp(alpha[t - 1] + log_A[:, k], 0)
        alpha[t] += log_B[:, OBS[t]]
    for t in range(T - 2, -1, -1):
        beta[t] = logsumexp(log_A + (log_B[:, OBS[t + 1]] + beta[t + 1])[None, :], 1)

    log_Z = logsumexp(alpha[-1], 0)
    gamma = alpha + beta
    gamma -= log_Z
    np.exp(gamma, out=gamma)
    counts = np.zeros((K, log_B.shape[1]))
    np.add.at(counts, (slice(None), OBS), gamma.T)
    return counts[0, 2] + 0.5 * counts[1].prod() - log_Z


ARGUMENTS = (
    np.array([[1.2, 0.1, -0.4], [0.3, 0.8, 0.0], [-0.2, 0.5, 1.0]]),
    np.array([[0.5, -0.1, 0.9], [0.0, 1.1, 0.2], [0.7, 0.3, -0.6]]),
)
