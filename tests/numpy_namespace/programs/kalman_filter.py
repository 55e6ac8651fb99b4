import numpy as np


def program(z, log_q, log_r):
    """Negative log likelihood of a constant-velocity Kalman filter."""
    dt = 0.5
    F = np.eye(2)
    F[0, 1] = dt
    H = np.zeros((1, 2))
    H[0, 0] = 1.0
    q = np.exp(log_q)
    Q = q * np.array([[dt ** 3 / 3, dt ** 2 / 2],
                      [dt ** 2 / 2, dt]])
    R = np.full((1, 1), np.exp(log_r))

    nobs = len(z)
    xs = np.zeros((nobs + 1, 2, 1))
    Ps = np.zeros((nobs + 1, 2, 2))
    innov = np.zeros(nobs)
    xs[0, 0, 0] = z[0]
    np.fill_diagonal(Ps[0], [1.0, 4.0])

    nll = 0.0
    for k in range(nobs):
        # predict
        x = F.dot(xs[k])
        P = F.dot(Ps[k]).dot(F.T) + Q
        # update
        y = z[k] - H.dot(x)
        S = H.dot(P).dot(H.T) + R
        K = P.dot(H.T) / S
        xs[k + 1] = x + K.dot(y)
        P -= K.dot(H).dot(P)
        Ps[k + 1] = 0.5 * (P + P.T)
        innov[k] = y.squeeze()
        nll += 0.5 * (np.log(2 * np.pi * S[0, 0]) + innov[k] ** 2 / S[0, 0])
    return nll + 0.01 * Ps[-1].trace()


ARGUMENTS = (np.array([0.1, 0.7, 0.9, 1.8, 2.2, 2.1, 3.3, 3.9]), -1.2, -0.7)
