import numpy as np


def thomas(a, b, c, d):
    """Solve a tridiagonal system; b and d are overwritten."""
    n = len(d)
    for i in range(1, n):
        w = a[i - 1] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    d[-1] /= b[-1]
    for i in range(n - 2, -1, -1):
        d[i] = (d[i] - c[i] * d[i + 1]) / b[i]
    return d


def program(x, y):
    """Bending energy plus mid-point values of the natural spline through (x, y)."""
    n = x.size
    h = np.diff(x)
    slope = np.diff(y) / h

    M = np.zeros(n)
    lower = h[1:-1].copy()
    upper = h[1:-1].copy()
    diag = 2.0 * (h[:-1] + h[1:])
    rhs = 6.0 * (slope[1:] - slope[:-1])
    M[1:-1] = thomas(lower, diag, upper, rhs)

    mid = 0.5 * (x[:-1] + x[1:])
    s = np.empty(n - 1)
    for i in range(n - 1):
        dxl = mid[i] - x[i]
        dxr = x[i + 1] - mid[i]
        s[i] = (M[i] * dxr ** 3 + M[i + 1] * dxl ** 3) / (6 * h[i])
        s[i] += (y[i] / h[i] - M[i] * h[i] / 6) * dxr
        s[i] += (y[i + 1] / h[i] - M[i + 1] * h[i] / 6) * dxl
    energy = (h / 3.0 * (M[:-1] ** 2 + M[:-1] * M[1:] + M[1:] ** 2)).sum()
    return energy + s.prod()


ARGUMENTS = (
    np.array([0.0, 0.8, 1.9, 2.5, 3.7, 4.4, 5.5]),
    np.array([1.0, 1.6, 0.7, 1.1, 1.9, 1.3, 0.9]),
)
