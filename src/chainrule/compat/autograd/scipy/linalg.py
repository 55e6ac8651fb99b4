"""Linear algebra: the names of `scipy.linalg`, some with rules.

Rules of X in AX + XB = Q, and of roots and banded and triangular systems, follow from the
differentials of their equations (M. Giles, An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation, 2008).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import scipy.linalg as _scipy

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.extend import (
    defjvp,
    defjvp_argnums,
    defvjp,
    defvjp_argnums,
    primitive,
)

globals().update(
    {
        name: value
        for name in _scipy.__all__
        if not isinstance(value := getattr(_scipy, name), types.ModuleType)
    }
)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


sqrtm = primitive(_scipy.sqrtm)
solve_sylvester = primitive(_scipy.solve_sylvester)
solve_triangular = primitive(_scipy.solve_triangular)
solve_banded = primitive(_scipy.solve_banded)

Vjp = Callable[[Any], Any]


# --- Sylvester's equation, square roots -----------------------------------------------------------


def _sqrtm_vjp(ans: Any, a: Any, **_: Any) -> Vjp:
    return lambda g: np.real(solve_sylvester(ans.T, ans.T, g))


defvjp(sqrtm, _sqrtm_vjp)
defjvp(sqrtm, lambda g, ans, a, **_: solve_sylvester(ans, ans, g))


def _sylvester_vjp(argnums: Sequence[int], ans: Any, args: Any, _: Any) -> Vjp:
    a, b, _q = args

    def vjp(g: Any) -> list[Any]:
        q = solve_sylvester(np.transpose(a), np.transpose(b), g)
        found = [-np.dot(q, ans.T), -np.dot(ans.T, q), q]
        return [found[i] for i in argnums]

    return vjp


def _sylvester_jvp(argnums: Sequence[int], gs: Sequence[Any], ans: Any, args: Any, _: Any) -> Any:
    a, b, _q = args
    terms = {0: lambda g: -np.dot(g, ans), 1: lambda g: -np.dot(ans, g), 2: lambda g: g}
    right = sum(terms[i](g) for i, g in zip(argnums, gs, strict=True))
    return solve_sylvester(a, b, right)


defvjp_argnums(solve_sylvester, _sylvester_vjp)
defjvp_argnums(solve_sylvester, _sylvester_jvp)


# --- triangular systems ---------------------------------------------------------------------------


def _is_transposed(trans: Any) -> bool:
    return trans not in (0, "N")


def _adjoint_solution(a: Any, g: Any, trans: Any, settings: Any) -> Any:
    return solve_triangular(a, g, trans="N" if _is_transposed(trans) else "T", **settings)


def _triangular_vjp_of_a(ans: Any, a: Any, b: Any, trans: Any = 0, **settings: Any) -> Vjp:
    def vjp(g: Any) -> Any:
        left, right = _adjoint_solution(a, g, trans, settings), ans
        if _is_transposed(trans):
            left, right = right, left
        found = -np.outer(left, right) if np.ndim(ans) == 1 else -np.dot(left, right.T)
        k = 1 if settings.get("unit_diagonal") else 0
        return np.tril(found, -k) if settings.get("lower") else np.triu(found, k)

    return vjp


def _triangular_vjp_of_b(ans: Any, a: Any, b: Any, trans: Any = 0, **settings: Any) -> Vjp:
    return lambda g: _adjoint_solution(a, g, trans, settings)


defvjp(solve_triangular, _triangular_vjp_of_a, _triangular_vjp_of_b)


# --- banded systems -------------------------------------------------------------------------------
#
# Row r of the band holds the elements (r - u + j, j) of the matrix.


def _rows(bands: Any, lower: int, upper: int, n: int) -> tuple[Any, Any]:
    """Return the rows of the matrix that the elements of a band are in, and which exist."""
    rows = np.arange(lower + upper + 1)[:, None] - upper + np.arange(n)
    return np.clip(rows, 0, n - 1), (rows >= 0) & (rows < n)


def _transposed(bands: Any, lower: int, upper: int) -> Any:
    rows, exist = _rows(bands, upper, lower, np.shape(bands)[1])
    source = np.arange(lower + upper, -1, -1)[:, None]
    return np.where(exist, bands[source, rows], 0.0)


def _banded_vjp_of_a(ans: Any, l_and_u: Any, a: Any, b: Any) -> Vjp:
    lower, upper = l_and_u

    def vjp(g: Any) -> Any:
        left = solve_banded((upper, lower), _transposed(a, lower, upper), g)
        rows, exist = _rows(a, lower, upper, np.shape(a)[1])
        products = left[rows] * ans
        if np.ndim(ans) == 2:
            products = np.sum(products, -1)
        return np.where(exist, -products, 0.0)

    return vjp


def _banded_vjp_of_b(ans: Any, l_and_u: Any, a: Any, b: Any) -> Vjp:
    lower, upper = l_and_u
    return lambda g: solve_banded((upper, lower), _transposed(a, lower, upper), g)


defvjp(solve_banded, _banded_vjp_of_a, _banded_vjp_of_b, argnums=[1, 2])
