"""Triangular systems in terms of NumPy's general solver, where there is no LAPACK to call."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def solve_triangular(a: Array, b: Array, *, upper: bool, unit: bool) -> Array:
    """Return x with a x = b, reading one triangle of a: by halves, in products of matrices."""
    n = a.shape[-1]
    if not upper:  # reversing rows and columns makes a lower triangular matrix an upper one
        a, b = np.flip(a, axis=(-2, -1)), np.flip(b, axis=-2)
        return np.flip(solve_triangular(a, b, upper=True, unit=unit), axis=-2).copy()
    if n <= 64:  # in an upper triangular matrix the general solver eliminates nothing
        triangle = np.triu(a)
        if unit:
            triangle[..., np.arange(n), np.arange(n)] = 1
        return np.linalg.solve(triangle, b)
    half = n // 2
    last = solve_triangular(a[..., half:, half:], b[..., half:, :], upper=True, unit=unit)
    rest = b[..., :half, :] - np.matmul(a[..., :half, half:], last)
    first = solve_triangular(a[..., :half, :half], rest, upper=True, unit=unit)
    return np.concatenate([first, last], axis=-2)
