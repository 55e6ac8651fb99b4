"""LU factorisation of stacks of matrices, which NumPy has only inside `solve`."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from chainrule.interrupts import errstate
from chainrule.kernels.matrices import inverses
from chainrule.kernels.triangular import solve_triangular

Array = Any

_BLOCK_COLUMNS = 32
"""Number of columns of a block; the columns after it are updated by matrix products."""


@errstate(all="ignore")
def factorize(xp: Any, x: Array, *, pivot: bool) -> tuple[Array, Array]:
    """Return L and U packed in one matrix, and zero-based row exchanges as in LAPACK.

    Where a column is all 0, so are its multipliers, as in LAPACK. Without pivoting, other
    multipliers are inf where the diagonal element is 0.
    """
    m, n = x.shape[-2:]
    stack = xp.array(x.reshape(prod(x.shape[:-2]), m, n))
    count = min(m, n)
    pivots = xp.empty((len(stack), count), dtype=np.int64)
    pivots[...] = xp.arange(count)
    for start in range(0, count, _BLOCK_COLUMNS):
        stop = min(start + _BLOCK_COLUMNS, count)
        for column in range(start, stop):
            if len(stack) == 1 and isinstance(stack, np.ndarray):
                _eliminate_single(stack[0], pivots[0], column, stop, pivot)
            else:
                _eliminate(xp, stack, pivots, column, stop, pivot)
        if stop < n:
            unit = xp.tril(stack[:, start:stop, start:stop], -1) + xp.eye(stop - start)
            upper = _solve_unit_lower(xp, unit.astype(x.dtype), stack[:, start:stop, stop:])
            stack[:, start:stop, stop:] = upper
            stack[:, stop:, stop:] -= xp.matmul(stack[:, stop:, start:stop], upper)
    return stack.reshape(x.shape), pivots.reshape(*x.shape[:-2], count)


def _solve_unit_lower(xp: Any, lower: Array, right: Array) -> Array:
    """Solve unit lower triangular systems, whose multipliers may be inf."""
    try:
        return xp.linalg.solve(lower, right)
    except np.linalg.LinAlgError:
        out = xp.array(right)
        for i in range(lower.shape[-1] - 1):
            out[:, i + 1 :] -= lower[:, i + 1 :, i, None] * out[:, i, None]
        return out


def _eliminate(xp: Any, stack: Array, pivots: Array, j: int, stop: int, pivot: bool) -> None:
    """Eliminate one column below the diagonal, in the columns before `stop`."""
    if pivot:
        below = stack[:, j:, j]
        size = xp.abs(below)
        if below.dtype.kind == "c":  # LAPACK's measure
            size = xp.abs(below.real) + xp.abs(below.imag)
        chosen = j + xp.argmax(size, axis=1)
        pivots[:, j] = chosen
        each = xp.arange(len(stack))
        rows = stack[each, chosen]
        stack[each, chosen] = stack[:, j]
        stack[:, j] = rows
    divisor = stack[:, j, j, None]
    below = stack[:, j + 1 :, j]
    stack[:, j + 1 :, j] = below / xp.where((divisor == 0) & (below == 0), 1, divisor)
    stack[:, j + 1 :, j + 1 : stop] -= stack[:, j + 1 :, j, None] * stack[:, j, None, j + 1 : stop]


def _eliminate_single(x: Array, pivots: Array, j: int, stop: int, pivot: bool) -> None:
    """Eliminate one column of a single matrix, in a third of the time of `_eliminate`."""
    if pivot:
        below = x[j:, j]
        size = abs(below.real) + abs(below.imag) if below.dtype.kind == "c" else abs(below)
        pivots[j] = chosen = j + int(size.argmax())
        if chosen != j:
            row = x[j].copy()
            x[j] = x[chosen]
            x[chosen] = row
    factors, divisor = x[j + 1 :, j], x[j, j]
    if divisor == 0:
        factors[factors != 0] /= divisor
    else:
        factors /= divisor
    x[j + 1 :, j + 1 : stop] -= factors[:, None] * x[j, j + 1 : stop]


def row_permutation(xp: Any, pivots: Array, m: int) -> Array:
    """Return the row permutation that a sequence of exchanges amounts to."""
    stack = pivots.reshape(prod(pivots.shape[:-1]), pivots.shape[-1])
    if isinstance(pivots, np.ndarray) and len(stack) <= _PYTHON_MAX_MATRICES:
        orders = [_exchange(list(range(m)), chosen) for chosen in stack.tolist()]
        return xp.array(orders, dtype=np.int64).reshape(*pivots.shape[:-1], m)
    order = xp.empty((len(stack), m), dtype=np.int64)
    order[...] = xp.arange(m)
    each = xp.arange(len(stack))
    for j in range(stack.shape[-1]):
        chosen = stack[:, j]
        rows = order[each, chosen]
        order[each, chosen] = order[:, j]
        order[:, j] = rows
    return order.reshape(*pivots.shape[:-1], m)


_PYTHON_MAX_MATRICES = 16
"""Number of matrices up to which exchanging in Python is faster than in NumPy."""


def _exchange(order: list[int], pivots: list[int]) -> list[int]:
    for j, chosen in enumerate(pivots):
        order[j], order[chosen] = order[chosen], order[j]
    return order


# --- functions of one matrix by its factors -------------------------------------------------------
#
# The factors are packed in `lu`: x[:, order] is its lower triangle times the unit upper one. They
# are the factors of the transpose, which is what LAPACK takes a matrix in C order for.


def lu_factor(xp: Any, x: Array) -> tuple[Array, Array]:
    """Return the factors of a matrix, and the order of its columns; zero pivots don't raise."""
    packed, pivots = factorize(xp, x.T, pivot=True)
    return packed.T, row_permutation(xp, pivots, len(x))


def lu_solve(
    xp: Any,
    lu: Array,
    order: Array,
    b: Array,
    *,
    transposed: bool,
    solve: Any = solve_triangular,
) -> Array:
    """Return y with x y = b, or xᵀ y = b, by the factors of x; raise if x is singular."""
    if transposed:
        inner = solve(lu.T, xp.take(b, order, axis=-2), upper=False, unit=True)
        return solve(lu.T, inner, upper=True, unit=False)
    inner = solve(lu, solve(lu, b, upper=False, unit=False), upper=True, unit=True)
    return xp.take(inner, xp.argsort(order), axis=-2)


def lu_inverse(
    xp: Any,
    lu: Array,
    order: Array,
    x: Array,
    *,
    transposed: bool,
    lenient: bool,
    solve: Any = solve_triangular,
) -> Array:
    """Return x⁻¹, or that of xᵀ, by the factors of x; `lenient`: of any x, as `inverses` does."""
    try:
        eye = xp.eye(len(x), dtype=x.dtype)
        return lu_solve(xp, lu, order, eye, transposed=transposed, solve=solve)
    except np.linalg.LinAlgError:
        if not lenient:
            raise
        return inverses(xp, x.T if transposed else x)


@errstate(all="ignore")  # the logarithm of 0 is -inf
def lu_slogdet(xp: Any, lu: Array, order: Array) -> tuple[Array, Array]:
    """Return the sign of det x and the logarithm of its size, by the factors of x."""
    pivots = lu.diagonal()
    sizes = xp.abs(pivots)
    if 0 in sizes:
        return xp.zeros((), lu.dtype), xp.full((), -xp.inf, sizes.dtype)
    sign = xp.prod(pivots / sizes)
    return sign if _is_even(order.tolist()) else -sign, xp.sum(xp.log(sizes))


def _is_even(order: list[int]) -> bool:
    """Return whether a permutation is made of an even number of exchanges."""
    cycles, seen = 0, [False] * len(order)
    for start in range(len(order)):
        cycles += not seen[start]
        while not seen[start]:
            seen[start] = True
            start = order[start]
    return (len(order) - cycles) % 2 == 0
