"""Calls of linear algebra, Fourier transforms and array creation."""

from __future__ import annotations

import numpy as np
from numpy.lib import NumpyVersion

from numpy_calls.arrays import like


def _signless(factors):
    """Return factors that do not depend on the signs of the vectors."""
    return [np.abs(factor) for factor in factors]


PLANAR = [  # deprecated, then removed
    lambda r, w: np.cross(r[:, :2], w[:2]),
    lambda a, r: np.cross(a[:, :2], r[:2], axisc=0),
    lambda a, r: np.cross(a.T, r.T[:, :2], axisa=0, axisb=0, axisc=0),
]

ALGEBRA = {
    np.dot: [
        lambda a, m: np.dot(a, m),
        lambda d, e: np.dot(d, e),
        lambda a, d: np.dot(a, d),
        lambda a, o: np.dot(a, o),
        lambda a, s: np.dot(a, s),
        lambda d: np.dot([[1.0, 2.0, 3.0]], d),
        lambda d: np.dot(3.0, d),
    ],
    np.vdot: [lambda a, b: np.vdot(a, b), lambda c, a: np.vdot(c, a)],
    np.inner: [
        lambda d, e: np.inner(d, e),
        lambda a, m: np.inner(a, m),
        lambda a: np.inner(a, 2.0),
    ],
    np.outer: [lambda d, w: np.outer(d, w), lambda a, d: np.outer(a, d)],
    np.kron: [lambda a, d: np.kron(a, d), lambda a, m: np.kron(a, m)],
    np.cross: [
        lambda d, e: np.cross(d, e),
        lambda a, b: np.cross(a, b),
        lambda a, r: np.cross(a.T, r.T[:, :2], axisa=0, axisb=0, axisc=0),
        lambda m: np.cross(m, [1.0, 2.0, 3.0], axis=0),
        *([] if NumpyVersion(np.__version__) >= "2.5.0" else PLANAR),
    ],
    np.tensordot: [
        lambda a, m: np.tensordot(a, m, axes=1),
        lambda t, a: np.tensordot(t, a, ([0, 1], [0, 1])),
        lambda a, b: np.tensordot(a, b),
    ],
    np.einsum: [
        lambda a, m: np.einsum("ij,jk->ik", a, m),
        lambda m: np.einsum("ii", m),
        lambda a, d: np.einsum(a, [0, 1], d, [1], [0], optimize=True),
        lambda a: np.einsum("ij,j", a, [1.0, 2.0, 3.0]),
    ],
    np.trace: [lambda m: np.trace(m), lambda t: np.trace(t, 1, axis1=1, axis2=2)],
    np.linalg.matmul: [lambda a, m: np.linalg.matmul(a, m)],
    np.linalg.outer: [lambda d, w: np.linalg.outer(d, w)],
    np.linalg.cross: [
        lambda a, b: np.linalg.cross(a, b),
        lambda m: np.linalg.cross(m, np.eye(3), axis=0),
    ],
    np.linalg.tensordot: [lambda a, m: np.linalg.tensordot(a, m, axes=1)],
    np.linalg.vecdot: [
        lambda a, b: np.linalg.vecdot(a, b),
        lambda c, a: np.linalg.vecdot(c, a, axis=0),
    ],
    np.linalg.multi_dot: [lambda a, m, r: np.linalg.multi_dot([a, m, r.T])],
    np.linalg.matrix_transpose: [lambda t: np.linalg.matrix_transpose(t)],
    np.linalg.diagonal: [
        lambda s: np.linalg.diagonal(s),
        lambda s: np.linalg.diagonal(s, offset=1),
    ],
    np.linalg.trace: [lambda s: np.linalg.trace(s), lambda t: np.linalg.trace(t, offset=-1)],
    np.linalg.matrix_power: [
        lambda m: np.linalg.matrix_power(m, 3),
        lambda s: np.linalg.matrix_power(s, -2),
        lambda m: np.linalg.matrix_power(m, 1),
    ],
    np.linalg.det: [lambda m: np.linalg.det(m), lambda s: np.linalg.det(s)],
    np.linalg.slogdet: [lambda s: np.linalg.slogdet(s)],
    np.linalg.inv: [lambda s: np.linalg.inv(s)],
    np.linalg.pinv: [
        lambda a: np.linalg.pinv(a),
        lambda r: np.linalg.pinv(r, rcond=1e-10),
        lambda a: np.linalg.pinv(a, rtol=1e-12),
        lambda h: np.linalg.pinv(h + h.T, hermitian=True),
    ],
    np.linalg.solve: [
        lambda m, d: np.linalg.solve(m, d),
        lambda s, r: np.linalg.solve(s, r.T),
        lambda s, d: np.linalg.solve(s, d),
    ],
    np.linalg.lstsq: [
        lambda r, w: np.linalg.lstsq(r, w),
        lambda r, f: np.linalg.lstsq(r, f, rcond=1e-9),
        lambda m, d: np.linalg.lstsq(m, d, None),
    ],
    np.linalg.tensorinv: [
        lambda m: np.linalg.tensorinv(np.reshape(m, (3, 3, 1))[:, :, 0], ind=1),
        lambda h, f: np.linalg.tensorinv(np.reshape(np.kron(np.eye(2), h), (2, 3, 6))),
    ],
    np.linalg.tensorsolve: [
        lambda h, a: np.linalg.tensorsolve(np.reshape(np.kron(np.eye(2), h), (2, 3, 2, 3)), a),
        lambda h, u: np.linalg.tensorsolve(np.reshape(np.kron(np.eye(2), h), (2, 6, 3)), u, (0,)),
    ],
    np.linalg.cholesky: [
        lambda h: np.linalg.cholesky(h @ h.T),
        lambda h: np.linalg.cholesky(h @ h.T, upper=True),
    ],
    np.linalg.qr: [
        lambda r: np.linalg.qr(r),
        lambda r: np.linalg.qr(r, mode="r"),
        lambda m: np.linalg.qr(m, "complete"),
    ],
    np.linalg.svd: [
        lambda a: _signless(np.linalg.svd(a, full_matrices=False)),
        lambda a: np.linalg.svd(a, compute_uv=False),
        lambda m: _signless(np.linalg.svd(m)),
    ],
    np.linalg.svdvals: [lambda a: np.linalg.svdvals(a)],
    np.linalg.eig: [
        lambda m: np.sort_complex(np.linalg.eig(m).eigenvalues),
        lambda h: _signless(np.linalg.eig((h + h.T) / 2 + np.diag([0.0, 1.0, 2.0]))),
    ],
    np.linalg.eigvals: [
        lambda m: np.sort_complex(np.linalg.eigvals(m)),
        lambda h: np.linalg.eigvals((h + h.T) / 2),
    ],
    np.linalg.eigh: [
        lambda h: _signless(np.linalg.eigh((h + h.T) / 2)),
        lambda h: _signless(np.linalg.eigh((h + h.T) / 2, UPLO="U")),
    ],
    np.linalg.eigvalsh: [lambda h: np.linalg.eigvalsh((h + h.T) / 2, "U")],
    np.linalg.norm: [
        lambda a: np.linalg.norm(a),
        lambda d: np.linalg.norm(d, 3),
        lambda a: np.linalg.norm(a, 1),
        lambda a: np.linalg.norm(a, ord=2),
        lambda a: np.linalg.norm(a, "nuc"),
        lambda a: np.linalg.norm(a, "fro", keepdims=True),
        lambda a: np.linalg.norm(a, np.inf, axis=1),
        lambda t: np.linalg.norm(t, axis=(0, 2)),
        lambda t: np.linalg.norm(t),
        lambda d: np.linalg.norm(d, -np.inf),
    ],
    np.linalg.vector_norm: [
        lambda a: np.linalg.vector_norm(a),
        lambda a: np.linalg.vector_norm(a, axis=0, ord=1, keepdims=True),
    ],
    np.linalg.matrix_norm: [
        lambda s: np.linalg.matrix_norm(s),
        lambda s: np.linalg.matrix_norm(s, ord=1, keepdims=True),
    ],
    np.linalg.cond: [
        lambda m: np.linalg.cond(m),
        lambda m: np.linalg.cond(m, 1),
        lambda m: np.linalg.cond(m, "fro"),
    ],
}

TRANSFORMS = {
    np.fft.fft: [lambda v: np.fft.fft(v), lambda c: np.fft.fft(c, n=4, axis=0, norm="ortho")],
    np.fft.ifft: [lambda z: np.fft.ifft(z)],
    np.fft.rfft: [lambda v: np.fft.rfft(v), lambda a: np.fft.rfft(a, 2, axis=1)],
    np.fft.irfft: [lambda z: np.fft.irfft(z), lambda z: np.fft.irfft(z, n=5)],
    np.fft.hfft: [lambda z: np.fft.hfft(z, 7)],
    np.fft.ihfft: [lambda v: np.fft.ihfft(v, norm="forward")],
    np.fft.fft2: [lambda a: np.fft.fft2(a)],
    np.fft.ifft2: [lambda c: np.fft.ifft2(c, axes=(1, 0))],
    np.fft.rfft2: [lambda t: np.fft.rfft2(t)],
    np.fft.irfft2: [
        lambda c: np.fft.irfft2(c, s=(2, 4), axes=(0, 1)),
        lambda t: np.fft.irfft2(t, axes=None),
    ],
    np.fft.fftn: [lambda t: np.fft.fftn(t)],
    np.fft.ifftn: [lambda c: np.fft.ifftn(c, norm="ortho")],
    np.fft.rfftn: [lambda a: np.fft.rfftn(a, axes=(0, 1))],
    np.fft.irfftn: [lambda c: np.fft.irfftn(c)],
    np.fft.fftshift: [lambda a: np.fft.fftshift(a), lambda a: np.fft.fftshift(a, axes=1)],
    np.fft.ifftshift: [lambda v: np.fft.ifftshift(v)],
}

CREATING = {
    np.array: [
        lambda a: like(np.array, a),
        lambda a: like(np.array, a, np.float32),
        lambda d: like(np.array, d, ndmin=2),
    ],
    np.asarray: [lambda a: like(np.asarray, a)],
    np.asanyarray: [lambda a: like(np.asanyarray, a, dtype=np.float64)],
    np.ascontiguousarray: [
        lambda a: like(np.ascontiguousarray, a.T),
        lambda o: like(np.ascontiguousarray, o),
    ],
    np.asfortranarray: [lambda a: like(np.asfortranarray, a)],
    np.require: [lambda a: like(np.require, a)],
    np.fromiter: [lambda d: like(np.fromiter, d, np.float64, 2)],
    np.fromfunction: [
        lambda o: (
            like(np.fromfunction, lambda i, j, k: i * o + j, (2, 3), k=o)
            if isinstance(o, np.ndarray | np.generic)
            else np.fromfunction(lambda i, j, k: i * o + j, (2, 3), k=o, like=o)
        ),
    ],
    np.arange: [
        lambda o: like(np.arange, o, 4.0, 0.5),
        lambda q: (
            np.arange(q[0], 5.0, q[0], like=q) if hasattr(q, "grad") else np.arange(q[0], 5.0, q[0])
        ),
    ],
    np.copy: [lambda a: np.copy(a)],
    np.astype: [
        lambda a: np.astype(a, np.float64),
        lambda a: np.astype(a, np.complex128, copy=False),
    ],
    np.full: [
        lambda o: np.full((2, 3), o, like=o) if hasattr(o, "grad") else np.full((2, 3), o),
        lambda o: np.full(2, o, dtype=np.float64, like=o) if hasattr(o, "grad") else np.full(2, o),
    ],
    np.full_like: [lambda a, o: np.full_like(a, o), lambda a, o: np.full_like(a, o, shape=4)],
    np.linspace: [
        lambda o: np.linspace(o, 2.0, 5),
        lambda d, e: np.linspace(d, e, num=4, endpoint=False, axis=1),
        lambda o: np.linspace(0, o, 3, retstep=True),
        lambda d: np.linspace(d, 1, 1),
    ],
    np.logspace: [
        lambda o: np.logspace(o, 2.0, 4),
        lambda d, e: np.logspace(d, e, 3, base=2.0, endpoint=False, axis=-1),
        lambda d, q: np.logspace(d, 1.0, 3, base=q[:3]),
    ],
    np.geomspace: [
        lambda p: np.geomspace(p, 9.0, 4),
        lambda d: np.geomspace(-1.0, -np.exp(d), 3, endpoint=False, axis=1),
    ],
}
