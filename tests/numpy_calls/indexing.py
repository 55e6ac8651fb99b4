"""Calls that select elements and that write to them."""

from __future__ import annotations

import numpy as np

from numpy_calls.arrays import TRUE, written

PICKING = {
    np.take: [
        lambda a: np.take(a, [5, 0, 0]),
        lambda a: np.take(a, [[0, 2], [1, 1]], axis=1),
        lambda a: np.take(a, -1, axis=0),
        lambda a: np.take(a, [7, -2], mode="wrap"),
        lambda a: np.take(a, [7, -2], axis=1, mode="clip"),
    ],
    np.take_along_axis: [
        lambda a: np.take_along_axis(a, np.array([[2, 0], [1, 1]]), axis=1),
        lambda a: np.take_along_axis(a, np.array([[2], [0]]), -1),
        lambda a: np.take_along_axis(a, np.array([4, 0]), axis=None),
        lambda a: np.take_along_axis(a, np.argsort(a, axis=0), axis=0),
    ],
    np.compress: [
        lambda a: np.compress([True, False, True], a, axis=1),
        lambda a: np.compress([False, True], a),
    ],
    np.extract: [lambda a: np.extract(TRUE, a)],
    np.where: [
        lambda a, b: np.where(a > b, a, b),
        lambda a: np.where(TRUE, a, 0.0),
        lambda d: np.where(TRUE, [[1.0], [2.0]], d),
        lambda a: np.where(a > 0) and a,
    ],
    np.select: [
        lambda a, b: np.select([a > 1, a > 0], [a, b]),
        lambda a, o: np.select([TRUE, ~TRUE & (np.arange(3) > 1)], [a, 2.0], default=o),
    ],
    np.choose: [
        lambda a, b: np.choose([[0, 1, 0], [1, 0, 1]], [a, b]),
        lambda d, e: np.choose(np.array([[0, 3, 1], [-1, 0, 1]]), (d, e), mode="clip"),
        lambda d, e: np.choose([0, 3, 1], (d, e, 1.0), mode="wrap"),
        lambda d: np.choose([[0], [0]], (d,)),
    ],
    np.piecewise: [
        lambda a: np.piecewise(a, [a < 0, a >= 0], [lambda x: x * x, lambda x, **k: 3 * x]),
        lambda d: np.piecewise(d, [[True, False, False]], [lambda x, y: y * x, 5.0], 2.0),
        lambda d: np.piecewise(d, [True, False, True], [np.sin]),
        lambda a: np.piecewise(a, [a > 99], [lambda x: 1 / x, np.exp]),
    ],
    np.clip: [
        lambda a: np.clip(a, -0.5, 0.5),
        lambda a: np.clip(a, None, 0.1),
        lambda a: np.clip(a, min=0.0),
        lambda a, d: np.clip(a, d - 1, a_max=d + 1),
        lambda a: np.clip(a, a_min=[-0.1, 0.0, 0.1], a_max=None),
    ],
    np.sort: [
        lambda a: np.sort(a),
        lambda a: np.sort(a, axis=0),
        lambda a: np.sort(a, axis=None),
        lambda a: np.sort(a, stable=True),
        lambda a: np.sort(a, kind="mergesort"),
    ],
    np.sort_complex: [lambda z: np.sort_complex(z), lambda a: np.sort_complex(a)],
    np.partition: [
        lambda u: np.sort(np.partition(u, 2)[:2]),
        lambda u: np.partition(u, 3)[3],
        lambda f: np.partition(f, 0, axis=0)[0],
        lambda a: np.partition(a, [0, 5], axis=None)[[0, 5]],
    ],
    np.unique: [
        lambda a: np.unique(a),
        lambda a: np.unique(np.append(a, a), True, True, True),
        lambda a: np.unique(np.concatenate([a, a]), axis=0),
        lambda a: np.unique(a, return_counts=True, axis=1),
        lambda a: np.sort(np.unique(a, equal_nan=False)),
    ],
    np.unique_all: [lambda a: np.unique_all(np.append(a, a))],
    np.unique_counts: [lambda a: np.unique_counts(np.append(a, a))],
    np.unique_inverse: [lambda a: np.unique_inverse(a)],
    np.unique_values: [lambda a: np.sort(np.unique_values(np.append(a, a)))],
    np.intersect1d: [
        lambda a: np.intersect1d(a, np.reshape(a, (6,))[1:4]),
        lambda a: np.intersect1d(np.ravel(a)[1:], np.ravel(a)[:4], True, return_indices=True),
    ],
    np.union1d: [lambda a, d: np.union1d(a, d), lambda d: np.union1d(d, [0.0, 1.0])],
    np.setdiff1d: [
        lambda a: np.setdiff1d(a, np.ravel(a)[:2]),
        lambda a: np.setdiff1d(a, np.ravel(a)[3:], assume_unique=True),
    ],
    np.setxor1d: [
        lambda a, d: np.setxor1d(np.append(a, d), a),
        lambda u: np.setxor1d(u[:4], u[2:], assume_unique=True),
    ],
    np.apply_along_axis: [
        lambda a: np.apply_along_axis(np.sum, 0, a),
        lambda t: np.apply_along_axis(lambda row: row[:2] * row[2:], 2, t),
        lambda t: np.apply_along_axis(lambda r, k, *, m: np.outer(r, r) * k + m, 1, t, 2.0, m=1.0),
    ],
    np.apply_over_axes: [
        lambda t: np.apply_over_axes(np.sum, t, [0, 2]),
        lambda t: np.apply_over_axes(np.cumsum, t, 1),
    ],
    np.put: [
        lambda a, d: written(np.put, a, [0, 4], d),
        lambda a, o: written(np.put, a, [[0, -1], [2, 3]], o),
        lambda a, d: written(np.put, a, [9, -3], d, mode="clip"),
        lambda a, d: written(np.put, a, [8, -8], d, mode="wrap"),
    ],
    np.place: [
        lambda a, d: written(np.place, a, TRUE, d),
        lambda a, u: written(np.place, a, a > 0, u),
    ],
    np.putmask: [
        lambda a, b: written(np.putmask, a, TRUE, b),
        lambda a, d: written(np.putmask, a, a < 0, d[:2]),
    ],
    np.put_along_axis: [
        lambda a, d: written(np.put_along_axis, a, np.array([[1], [2]]), d[:2, None], 1),
        lambda a, o: written(np.put_along_axis, a, np.array([[1, 0, 1]]), o, axis=0),
        lambda a, d: written(np.put_along_axis, a, np.array([4, 0, 1]), d, axis=None),
    ],
    np.copyto: [
        lambda a, b: written(np.copyto, a, b),
        lambda a, d: written(np.copyto, a, d, where=TRUE),
        lambda a: written(np.copyto, a, 3.0, where=[True, False, True]),
    ],
    np.fill_diagonal: [
        lambda a, o: written(np.fill_diagonal, a, o),
        lambda r, d: written(np.fill_diagonal, r, d[:2]),
        lambda r, o: written(np.fill_diagonal, np.concatenate([r, r]), o, wrap=True),
    ],
}
