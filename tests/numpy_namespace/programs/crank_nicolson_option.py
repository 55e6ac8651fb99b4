import numpy as np

# Down-and-out call by Crank-Nicolson in log-price; coefficients are constant in time.


def solve_tridiag(sub, main, sup, rhs, cp, x):
    n = rhs.shape[0]
    cp[0] = sup / main
    x[0] = rhs[0] / main
    for i in range(1, n):
        m = main - sub * cp[i - 1]
        cp[i] = sup / m
        x[i] = (rhs[i] - sub * x[i - 1]) / m
    for i in range(n - 2, -1, -1):
        x[i] -= cp[i] * x[i + 1]


def program(sigma, r, T):
    K = 100.0
    M, N = 30, 15
    z = np.linspace(np.log(60.0), np.log(220.0), M + 1)
    dz = z[1] - z[0]
    dt = T / N
    S = np.exp(z)

    a = 0.5 * sigma ** 2 / dz ** 2
    b = (r - 0.5 * sigma ** 2) / (2 * dz)
    lo, mid, hi = a - b, -2 * a - r, a + b

    V = np.clip(S - K, 0.0, None)
    V[0] = 0.0
    cp = np.zeros(M - 1)
    x = np.zeros(M - 1)
    for n in range(N):
        rhs = V[1:-1] + 0.5 * dt * (lo * V[:-2] + mid * V[1:-1] + hi * V[2:])
        V[-1] = S[-1] - K * np.exp(-r * (n + 1) * dt)
        rhs[-1] += 0.5 * dt * hi * V[-1]
        solve_tridiag(-0.5 * dt * lo, 1 - 0.5 * dt * mid, -0.5 * dt * hi, rhs, cp, x)
        V[1:-1] = x
    return np.interp(np.log(105.0), z, V)


ARGUMENTS = (0.25, 0.03, 0.75)
