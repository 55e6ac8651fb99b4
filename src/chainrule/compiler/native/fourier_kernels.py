"""Passes of fast Fourier transforms, in the subset of Python that becomes machine code.

A transform of n points is one pass for each factor of n, between two arrays in turn: the algorithm
of Stockham, whose results are in order (C. Van Loan, Computational Frameworks for the Fast Fourier
Transform, 1992, 1.7). Real and imaginary parts are in arrays of their own: `x` and `u` are read,
`y` and `v` written, each from an index on. They hold `blocks` of r · m · s points, for the factor
r; the innermost loop is over the `s` transforms that are interleaved, as neighbouring columns are.

`w` holds cos and sin of 2πpk/n for all p of each k: cosines of all k first. An exchange of real and
imaginary parts, of arguments and results, gives the inverse transform.
"""

from __future__ import annotations

from typing import Any

from numpy import int64 as i8
from numpy import uint64 as u8

Array = Any

SINE_3 = 0.8660254037844386  # of 2π/3
COSINE_5 = 0.30901699437494745  # of 2π/5
SINE_5 = 0.9510565162951535
COSINE_10 = -0.8090169943749475  # of 4π/5
SINE_10 = 0.5877852522924731


def fourier_2(
    x: Array, x_at: Any, u: Array, u_at: Any, y: Array, y_at: Any, v: Array, v_at: Any,
    w: Array, w_at: Any, blocks: Any, m: Any, s: Any,
) -> Any:  # fmt: skip
    """Run a pass of factor 2."""
    size = m * s
    for b in range(blocks):
        for p in range(m):
            c, d = w[w_at + p], w[w_at + m + p]
            of, to = u8(2) * b * size + p * s, u8(2) * (b * size + p * s)
            for q in range(s):
                a0, e0 = x[x_at + of + q], u[u_at + of + q]
                a1, e1 = x[x_at + of + size + q], u[u_at + of + size + q]
                a, e = a0 - a1, e0 - e1
                y[y_at + to + q] = a0 + a1
                v[v_at + to + q] = e0 + e1
                y[y_at + to + s + q] = a * c + e * d
                v[v_at + to + s + q] = e * c - a * d
    return i8(0)


def fourier_3(
    x: Array, x_at: Any, u: Array, u_at: Any, y: Array, y_at: Any, v: Array, v_at: Any,
    w: Array, w_at: Any, blocks: Any, m: Any, s: Any,
) -> Any:  # fmt: skip
    """Run a pass of factor 3."""
    size = m * s
    for b in range(blocks):
        for p in range(m):
            c1, c2 = w[w_at + p], w[w_at + m + p]
            d1, d2 = w[w_at + u8(2) * m + p], w[w_at + u8(3) * m + p]
            of, to = u8(3) * b * size + p * s, u8(3) * (b * size + p * s)
            for q in range(s):
                a0, e0 = x[x_at + of + q], u[u_at + of + q]
                a1, e1 = x[x_at + of + size + q], u[u_at + of + size + q]
                a2, e2 = x[x_at + of + u8(2) * size + q], u[u_at + of + u8(2) * size + q]
                a, e = a1 + a2, e1 + e2
                f, g = a0 - 0.5 * a, e0 - 0.5 * e
                h, k = SINE_3 * (e1 - e2), SINE_3 * (a1 - a2)
                y[y_at + to + q] = a0 + a
                v[v_at + to + q] = e0 + e
                y[y_at + to + s + q] = (f + h) * c1 + (g - k) * d1
                v[v_at + to + s + q] = (g - k) * c1 - (f + h) * d1
                y[y_at + to + u8(2) * s + q] = (f - h) * c2 + (g + k) * d2
                v[v_at + to + u8(2) * s + q] = (g + k) * c2 - (f - h) * d2
    return i8(0)


def fourier_4(
    x: Array, x_at: Any, u: Array, u_at: Any, y: Array, y_at: Any, v: Array, v_at: Any,
    w: Array, w_at: Any, blocks: Any, m: Any, s: Any,
) -> Any:  # fmt: skip
    """Run a pass of factor 4."""
    size = m * s
    for b in range(blocks):
        for p in range(m):
            c1, c2, c3 = w[w_at + p], w[w_at + m + p], w[w_at + u8(2) * m + p]
            d1, d2 = w[w_at + u8(3) * m + p], w[w_at + u8(4) * m + p]
            d3 = w[w_at + u8(5) * m + p]
            of, to = u8(4) * b * size + p * s, u8(4) * (b * size + p * s)
            for q in range(s):
                a0, e0 = x[x_at + of + q], u[u_at + of + q]
                a1, e1 = x[x_at + of + size + q], u[u_at + of + size + q]
                a2, e2 = x[x_at + of + u8(2) * size + q], u[u_at + of + u8(2) * size + q]
                a3, e3 = x[x_at + of + u8(3) * size + q], u[u_at + of + u8(3) * size + q]
                f0, g0, f1, g1 = a0 + a2, e0 + e2, a0 - a2, e0 - e2
                f2, g2, f3, g3 = a1 + a3, e1 + e3, e1 - e3, a1 - a3
                y[y_at + to + q] = f0 + f2
                v[v_at + to + q] = g0 + g2
                y[y_at + to + s + q] = (f1 + f3) * c1 + (g1 - g3) * d1
                v[v_at + to + s + q] = (g1 - g3) * c1 - (f1 + f3) * d1
                y[y_at + to + u8(2) * s + q] = (f0 - f2) * c2 + (g0 - g2) * d2
                v[v_at + to + u8(2) * s + q] = (g0 - g2) * c2 - (f0 - f2) * d2
                y[y_at + to + u8(3) * s + q] = (f1 - f3) * c3 + (g1 + g3) * d3
                v[v_at + to + u8(3) * s + q] = (g1 + g3) * c3 - (f1 - f3) * d3
    return i8(0)


def fourier_5(
    x: Array, x_at: Any, u: Array, u_at: Any, y: Array, y_at: Any, v: Array, v_at: Any,
    w: Array, w_at: Any, blocks: Any, m: Any, s: Any,
) -> Any:  # fmt: skip
    """Run a pass of factor 5."""
    size = m * s
    for b in range(blocks):
        for p in range(m):
            c1, c2 = w[w_at + p], w[w_at + m + p]
            c3, c4 = w[w_at + u8(2) * m + p], w[w_at + u8(3) * m + p]
            d1, d2 = w[w_at + u8(4) * m + p], w[w_at + u8(5) * m + p]
            d3, d4 = w[w_at + u8(6) * m + p], w[w_at + u8(7) * m + p]
            of, to = u8(5) * b * size + p * s, u8(5) * (b * size + p * s)
            for q in range(s):
                a0, e0 = x[x_at + of + q], u[u_at + of + q]
                a1, e1 = x[x_at + of + size + q], u[u_at + of + size + q]
                a2, e2 = x[x_at + of + u8(2) * size + q], u[u_at + of + u8(2) * size + q]
                a3, e3 = x[x_at + of + u8(3) * size + q], u[u_at + of + u8(3) * size + q]
                a4, e4 = x[x_at + of + u8(4) * size + q], u[u_at + of + u8(4) * size + q]
                f1, g1, f2, g2 = a1 + a4, e1 + e4, a2 + a3, e2 + e3
                f3, g3, f4, g4 = a1 - a4, e1 - e4, a2 - a3, e2 - e3
                h1, k1 = a0 + COSINE_5 * f1 + COSINE_10 * f2, e0 + COSINE_5 * g1 + COSINE_10 * g2
                h2, k2 = a0 + COSINE_10 * f1 + COSINE_5 * f2, e0 + COSINE_10 * g1 + COSINE_5 * g2
                h3, k3 = SINE_5 * g3 + SINE_10 * g4, SINE_5 * f3 + SINE_10 * f4
                h4, k4 = SINE_10 * g3 - SINE_5 * g4, SINE_10 * f3 - SINE_5 * f4
                y[y_at + to + q] = a0 + f1 + f2
                v[v_at + to + q] = e0 + g1 + g2
                y[y_at + to + s + q] = (h1 + h3) * c1 + (k1 - k3) * d1
                v[v_at + to + s + q] = (k1 - k3) * c1 - (h1 + h3) * d1
                y[y_at + to + u8(2) * s + q] = (h2 + h4) * c2 + (k2 - k4) * d2
                v[v_at + to + u8(2) * s + q] = (k2 - k4) * c2 - (h2 + h4) * d2
                y[y_at + to + u8(3) * s + q] = (h2 - h4) * c3 + (k2 + k4) * d3
                v[v_at + to + u8(3) * s + q] = (k2 + k4) * c3 - (h2 - h4) * d3
                y[y_at + to + u8(4) * s + q] = (h1 - h3) * c4 + (k1 + k3) * d4
                v[v_at + to + u8(4) * s + q] = (k1 + k3) * c4 - (h1 - h3) * d4
    return i8(0)


def fourier_lines(
    x: Array, x_at: Any, u: Array, u_at: Any, y: Array, y_at: Any, v: Array, v_at: Any,
    w: Array, w_at: Any, blocks: Any, m: Any, s: Any,
) -> Any:  # fmt: skip
    """Run the first pass of factor 4 along rows, for which `s` is 1.

    The loop that becomes vectors in `fourier_4` would have one turn: it takes up to twice as long.
    """
    for b in range(blocks):
        for p in range(m):
            of, to = u8(4) * b * m + p, u8(4) * (b * m + p)
            a0, e0 = x[x_at + of], u[u_at + of]
            a1, e1 = x[x_at + of + m], u[u_at + of + m]
            a2, e2 = x[x_at + of + u8(2) * m], u[u_at + of + u8(2) * m]
            a3, e3 = x[x_at + of + u8(3) * m], u[u_at + of + u8(3) * m]
            c1, c2, c3 = w[w_at + p], w[w_at + m + p], w[w_at + u8(2) * m + p]
            d1, d2 = w[w_at + u8(3) * m + p], w[w_at + u8(4) * m + p]
            d3 = w[w_at + u8(5) * m + p]
            f0, g0, f1, g1 = a0 + a2, e0 + e2, a0 - a2, e0 - e2
            f2, g2, f3, g3 = a1 + a3, e1 + e3, e1 - e3, a1 - a3
            y[y_at + to] = f0 + f2
            v[v_at + to] = g0 + g2
            y[y_at + to + u8(1)] = (f1 + f3) * c1 + (g1 - g3) * d1
            v[v_at + to + u8(1)] = (g1 - g3) * c1 - (f1 + f3) * d1
            y[y_at + to + u8(2)] = (f0 - f2) * c2 + (g0 - g2) * d2
            v[v_at + to + u8(2)] = (g0 - g2) * c2 - (f0 - f2) * d2
            y[y_at + to + u8(3)] = (f1 - f3) * c3 + (g1 + g3) * d3
            v[v_at + to + u8(3)] = (g1 + g3) * c3 - (f1 - f3) * d3
    return i8(0)


def fourier_any(
    x: Array, x_at: Any, u: Array, u_at: Any, y: Array, y_at: Any, v: Array, v_at: Any,
    w: Array, w_at: Any, blocks: Any, m: Any, s: Any, r: Any,
) -> Any:  # fmt: skip
    """Run a pass of factor `r`; `w` holds cosines and sines of 2πj/n for all j."""
    size, n = m * s, m * r
    for b in range(blocks):
        for p in range(m):
            for k in range(r):
                of, to = r * b * size + p * s, r * (b * size + p * s) + k * s
                for q in range(s):
                    y[y_at + to + q] = x[x_at + of + q]
                    v[v_at + to + q] = u[u_at + of + q]
                for j in range(u8(1), r):
                    # the sum over j of x[p + m j] times the root of k (p + m j), less that of k p
                    turn = (k * m * j) % n
                    c, d = w[w_at + turn], w[w_at + n + turn]
                    for q in range(s):
                        a, e = x[x_at + of + j * size + q], u[u_at + of + j * size + q]
                        y[y_at + to + q] += a * c + e * d
                        v[v_at + to + q] += e * c - a * d
                c, d = w[w_at + (k * p) % n], w[w_at + n + (k * p) % n]
                for q in range(s):
                    a, e = y[y_at + to + q], v[v_at + to + q]
                    y[y_at + to + q] = a * c + e * d
                    v[v_at + to + q] = e * c - a * d
    return i8(0)
