import numpy as np


def snell(n0, theta0, n):
    return np.sqrt(n ** 2 - (n0 * np.sin(theta0)) ** 2 + 0j)


def program(d, n_real, k_abs):
    """Mean reflectance of a multilayer coating, s-polarised, complex indices.

    d: thicknesses in nm, n_real: real index of each layer, k_abs: extinction
    coefficient of the last (metallic-ish) layer.
    """
    n_layers = len(d)
    n = np.zeros(n_layers + 2, dtype=complex)
    n[0] = 1.0
    n[1:-1] = n_real
    n[-2] += 1j * k_abs
    n[-1] = 1.52
    theta0 = np.deg2rad(20.0)

    wavelengths = np.array([450.0, 520.0, 590.0, 660.0])
    R = np.empty(wavelengths.size)
    phase = np.zeros_like(R)
    q = snell(1.0, theta0, n)
    for w, lam in enumerate(wavelengths):
        M = np.eye(2, dtype=complex)
        for j in range(1, n_layers + 1):
            delta = 2 * np.pi * q[j] * d[j - 1] / lam
            layer = np.empty((2, 2), dtype=complex)
            layer[0, 0] = layer[1, 1] = np.cos(delta)
            layer[0, 1] = -1j * np.sin(delta) / q[j]
            layer[1, 0] = -1j * np.sin(delta) * q[j]
            M = M.dot(layer)
        num = q[0] * M[0, 0] + q[0] * q[-1] * M[0, 1] - M[1, 0] - q[-1] * M[1, 1]
        den = q[0] * M[0, 0] + q[0] * q[-1] * M[0, 1] + M[1, 0] + q[-1] * M[1, 1]
        r = num / den
        R[w] = (r * r.conj()).real
        phase[w] = np.arctan2(r.imag, r.real)
    return R.mean() + 0.1 * np.cos(phase).sum()


ARGUMENTS = (np.array([95.0, 62.0, 110.0, 15.0]), np.array([1.38, 2.3, 1.45, 1.9]), 0.6)
