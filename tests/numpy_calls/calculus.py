"""Calls for differences, interpolation, convolution, polynomials and numpy.lib.scimath."""

from __future__ import annotations

import numpy as np
from numpy.lib import scimath
from numpy.polynomial import polynomial
from numpy.polynomial.polynomial import polygrid2d, polyval2d

from numpy_calls.arrays import gaps

CALCULUS = {
    np.diff: [
        lambda v: np.diff(v),
        lambda f: np.diff(f, 2, axis=0),
        lambda a, o: np.diff(a, prepend=o, append=0.0),
        lambda a, d: np.diff(a, axis=0, append=d[None]),
        lambda a: np.diff(a, n=0),
    ],
    np.ediff1d: [
        lambda a: np.ediff1d(a),
        lambda v, o: np.ediff1d(v, to_begin=o, to_end=[1.0, 2.0]),
    ],
    np.gradient: [
        lambda v: np.gradient(v),
        lambda v: np.gradient(v, 2.0, edge_order=2),
        lambda f: np.gradient(f),
        lambda f, q, w: np.gradient(f, np.cumsum(np.abs(w)), q),
        lambda f, q: np.gradient(f, q, axis=1, edge_order=2),
        lambda f, o: np.gradient(f, o, 0.5, axis=(1, 0)),
    ],
    np.trapezoid: [
        lambda v: np.trapezoid(v),
        lambda f, q: np.trapezoid(f, q),
        lambda f, w: np.trapezoid(f, w, axis=0),
        lambda f: np.trapezoid(f, dx=0.5, axis=0),
        lambda a, b: np.trapezoid(a, x=b),
    ],
    np.interp: [
        lambda a, q, v: np.interp(a + 3, q, v),
        lambda d, v: np.interp(d, [-1.0, -0.5, 0.0, 0.5, 1.0], v, left=-9.0, right=9.0),
        lambda d, q, v: np.interp(10 * d, q, v, period=4.0),
        lambda d, v: np.interp(d * 5, [0.0], v[:1]),
        lambda q, v: np.interp(1.7, q, v),
    ],
    np.convolve: [
        *[lambda v, w, m=m: np.convolve(v, w, m) for m in ("full", "same", "valid")],
        *[lambda d, u, m=m: np.convolve(d, u, mode=m) for m in ("full", "same", "valid")],
        lambda z, d: np.convolve(z, d),
        lambda v: np.convolve(v, [1.0, -1.0]),
    ],
    np.correlate: [
        *[lambda v, w, m=m: np.correlate(v, w, m) for m in ("full", "same", "valid")],
        *[lambda d, u, m=m: np.correlate(d, u, mode=m) for m in ("full", "same", "valid")],
        *[lambda w, u, m=m: np.correlate(w, u, mode=m) for m in ("full", "same", "valid")],
        *[lambda u, w, m=m: np.correlate(u, w, mode=m) for m in ("full", "same", "valid")],
        lambda z, d: np.correlate(z, d, "full"),
        lambda d, z: np.correlate(d, z, "full"),
    ],
    np.unwrap: [
        lambda v: np.unwrap(5 * v),
        lambda f: np.unwrap(4 * f, axis=0),
        lambda f: np.unwrap(4 * f, period=3.0, discont=2.0),
    ],
    np.angle: [lambda c: np.angle(c), lambda c: np.angle(c, deg=True), lambda a: np.angle(a)],
    np.real: [lambda c: np.real(c), lambda a: np.real(a)],
    np.imag: [lambda c: np.imag(c), lambda a: a + np.imag(a)],
    np.real_if_close: [
        lambda c: np.real_if_close(c),
        lambda c: np.real_if_close(np.real(c) + 1e-15j * np.imag(c)),
        lambda a: np.real_if_close(a),
    ],
    np.nan_to_num: [
        lambda g: np.nan_to_num(gaps(g)),
        lambda g: np.nan_to_num(gaps(g), nan=2.0, posinf=3.0, copy=True),
    ],
    np.round: [lambda a: np.round(a), lambda a: np.round(a, 1)],
    np.around: [lambda a: np.around(a, decimals=2)],
    np.fix: [lambda a: np.fix(a)],
    np.i0: [lambda a: np.i0(a)],
    np.sinc: [lambda a: np.sinc(a)],
    np.vander: [
        lambda d: np.vander(d),
        lambda d: np.vander(d, 2),
        lambda d: np.vander(d, N=5, increasing=True),
    ],
}

POLYNOMIALS = {
    np.poly: [
        lambda d: np.poly(d),
        lambda m: np.poly(m + np.diag([0.0, 5.0, 10.0])),
        lambda z: np.poly(z),
        lambda z: np.poly(np.concatenate([z[:1], np.conj(z[:1])])),
    ],
    np.roots: [
        lambda v: np.sort_complex(np.roots(v)),
        lambda w: np.sort_complex(np.roots(np.concatenate([[0.0], w, [0.0]]))),
        lambda d: np.roots(np.poly(np.cumsum(np.abs(d) + 1))),
    ],
    np.polyval: [
        lambda d, a: np.polyval(d, a),
        lambda w: np.polyval(w, 2.0),
        lambda a: np.polyval([1, 2], a),
    ],
    np.polyadd: [lambda d, w: np.polyadd(d, w), lambda d: np.polyadd(d, [1.0])],
    np.polysub: [lambda d, w: np.polysub(d, w), lambda w, d: np.polysub(w, d)],
    np.polymul: [lambda d, w: np.polymul(d, w)],
    np.polydiv: [
        lambda u, d: np.polydiv(u, d),
        lambda d, w: np.polydiv(d, w),
        lambda d, w: np.polydiv(np.polymul(d, w), w),
        lambda v: np.polydiv(v, 2.0),
    ],
    np.polyder: [lambda v: np.polyder(v), lambda v: np.polyder(v, 2), lambda v: np.polyder(v, m=0)],
    np.polyint: [
        lambda v: np.polyint(v),
        lambda v: np.polyint(v, m=2, k=[1.0, 2.0]),
        lambda v, o: np.polyint(v, k=o),
    ],
    polyval2d: [
        lambda a, m: polyval2d(a, 2.0 * a, m),
        lambda o, t: polyval2d(o, 1.5, t),
    ],
    polygrid2d: [lambda d, w, a: polygrid2d(d, w, a), lambda a, o, t: polygrid2d(a, o, t)],
    np.polyfit: [
        lambda q, v: np.polyfit(q, v, 2),
        lambda q, v: np.polyfit(q, v, 1, w=[1.0, 2.0, 1.0, 3.0, 1.0]),
        lambda q, f: np.polyfit(q, f.T, 2),
        lambda q, v: np.polyfit(q, v, 2, cov=True),
        lambda q, f: np.polyfit(q, f.T, 1, cov=True),
        lambda q, f: np.polyfit(q, f.T, 1, cov="unscaled"),
        lambda q, v: np.polyfit(q, v, 2, full=True),
    ],
}

if hasattr(polynomial, "polyvalnd"):  # since NumPy 2.5
    POLYNOMIALS[polynomial.polyvalnd] = [
        lambda a, m: polynomial.polyvalnd((a,), m),
        lambda a, m: polynomial.polyvalnd([a, 2.0 * a], m),
        lambda o, t: polynomial.polyvalnd((o, 1.5, 2.0), t),
    ]

SCIMATH = {
    scimath.sqrt: [lambda a: scimath.sqrt(a), lambda p: scimath.sqrt(p), lambda c: scimath.sqrt(c)],
    scimath.log: [lambda a: scimath.log(a), lambda p: scimath.log(p)],
    scimath.log2: [lambda a: scimath.log2(a)],
    scimath.log10: [lambda a: scimath.log10(a)],
    scimath.logn: [lambda a: scimath.logn(2.0, a), lambda p, a: scimath.logn(p, a)],
    scimath.power: [
        lambda a: scimath.power(a, 0.5),
        lambda p, a: scimath.power(p, a),
        lambda a: scimath.power(a, 2),
        lambda a: scimath.power(a, -2),
    ],
    scimath.arccos: [lambda a: scimath.arccos(2 * a), lambda a: scimath.arccos(a / 9)],
    scimath.arcsin: [lambda a: scimath.arcsin(2 * a), lambda a: scimath.arcsin(a / 9)],
    scimath.arctanh: [lambda a: scimath.arctanh(2 * a), lambda a: scimath.arctanh(a / 9)],
}
