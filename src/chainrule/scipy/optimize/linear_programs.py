"""Linear programs, whose solution is the corner where active constraints meet.

Integers that are sought are constants, and isotonic regression has the means of constant blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule.autograd.node import ErrorNode
from chainrule.autograd.tensor import make
from chainrule.autograd.views import current_node
from chainrule.errors import AutogradError, LinAlgError
from chainrule.interop.operands import are_known, arrays_of, is_tracked
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import missing_rule
from chainrule.scipy.error_texts import explaining
from chainrule.scipy.optimize.unknowns import OPTIMIZE

__all__ = ["isotonic_regression", "linprog", "milp"]

_NEAR = 1e-7
"""Distance relative to the numbers of a constraint below which it holds as an equation."""


@explaining("scipy.optimize.linprog")
def linprog(
    c: Any,
    A_ub: Any = None,
    b_ub: Any = None,
    A_eq: Any = None,
    b_eq: Any = None,
    bounds: Any = (0, None),
    *args: Any,
    **settings: Any,
) -> Any:
    """Minimise a linear function: `scipy.optimize.linprog`, with derivatives.

    Parameters
    ----------
    c, A_ub, b_ub, A_eq, b_eq, bounds
        The program, of arrays or tensors.
    *args, **settings
        As in SciPy.

    Returns
    -------
    scipy.optimize.OptimizeResult
        Its `x` and `fun` are differentiable with respect to everything in the program. The
        derivative of the other numbers, `slack` and `marginals`, is an error.

    Raises
    ------
    AutogradError
        In a compiled function and under `vmap`, where numbers are unknown.
    LinAlgError
        If the active constraints don't determine the solution, which is no isolated corner, or
        more of them meet there than there are unknowns.

    Notes
    -----
    The constraints that hold as equations are constant; their solution is `x`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def best(limit):
    ...     return cr.scipy.optimize.linprog([-1.0, -2.0], [[1.0, 1.0], [0.0, 1.0]], limit).fun
    >>> limit = np.array([4.0, 3.0])
    >>> float(best(limit)), cr.grad(best)(limit)
    (-7.0, array([-1., -1.]))
    """
    given = (c, A_ub, b_ub, A_eq, b_eq, bounds)
    _check_known("linprog", given)
    found = OPTIMIZE.linprog(*arrays_of(given), *args, **settings)
    if not is_tracked(given) or found.x is None:
        return found
    if settings.get("integrality") is not None:
        raise missing_rule("scipy.optimize.linprog: of integers", "its solution jumps")
    rows, sides = _equations(found, given)
    n = len(found.x)
    if rows.shape[0] != n or np.linalg.matrix_rank(arrays_of(rows)) < n:
        raise LinAlgError(
            f"linprog: {rows.shape[0]} constraints hold as equations at the solution of {n} "
            "unknowns: it is no corner where as many meet, and has no derivative. Perturb the "
            "program a little, or pass x.detach()"
        )
    found.x = cnp.linalg.solve(rows, sides)
    found.fun = found.x @ cnp.asarray(as_ndarrays(c))
    for part in (found, found.ineqlin, found.eqlin, found.lower, found.upper):
        _forbid(part, found.x)
    return found


def _check_known(name: str, given: Any) -> None:
    if not are_known(given):
        raise AutogradError(
            f"{name} looks at values, which a compiled function doesn't know, nor does vmap: call "
            "it outside, for each example in turn"
        )


def _forbid(part: Any, x: Any) -> None:
    """Give numbers of SciPy's result an error for a derivative."""
    for name in _OF_SCIPY & part.keys():
        if part[name] is not None:
            node = ErrorNode(_NO_RULE.format(name), (current_node(x),))
            part[name] = as_ndarrays(make(np.asarray(part[name], float), node))


_OF_SCIPY = frozenset(["slack", "con", "residual", "marginals", "mip_dual_bound", "mip_gap"])
_NO_RULE = (
    "`{}` of the result, which SciPy computed, has no derivative: b_ub - A_ub @ x has one, and "
    "marginals are derivatives of `fun`, cr.grad of it"
)


def _equations(found: Any, given: Any) -> tuple[Any, Any]:
    """Return the rows and the right sides of the constraints that hold as equations."""
    A_ub, b_ub, A_eq, b_eq, bounds = as_ndarrays(given[1:])
    n, x = len(found.x), found.x
    rows, sides = [], []
    if A_eq is not None:
        rows.append(_dense(A_eq).reshape(-1, n))
        sides.append(cnp.ravel(cnp.asarray(b_eq)))
    if A_ub is not None:
        A_ub, b_ub = _dense(A_ub).reshape(-1, n), cnp.ravel(cnp.asarray(b_ub))
        scale = 1 + np.abs(arrays_of(A_ub)) @ np.abs(x)
        holds = found.slack <= _NEAR * scale
        rows.append(A_ub[holds])
        sides.append(b_ub[holds])
    for k, pair in enumerate(_pairs(bounds, n)):
        for end in pair:
            number = np.nan if end is None else float(arrays_of(end))
            if abs(x[k] - number) <= _NEAR * (1 + abs(x[k])):
                rows.append(np.eye(n)[k : k + 1])
                sides.append(cnp.ravel(cnp.asarray(end, dtype=float)))
                break
    return cnp.concatenate(rows), cnp.concatenate(sides)


def _dense(matrix: Any) -> Any:
    return cnp.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def _pairs(bounds: Any, n: int) -> Any:
    if bounds is None:
        return [(0, None)] * n
    single = len(bounds) == 2 and not any([np.ndim(arrays_of(e)) for e in bounds if e is not None])
    return [tuple(bounds)] * n if single else bounds


# --- programs with integers -----------------------------------------------------------------------


@explaining("scipy.optimize.milp")
def milp(
    c: Any,
    *,
    integrality: Any = None,
    bounds: Any = None,
    constraints: Any = None,
    options: Any = None,
) -> Any:
    """Minimise a linear function, also of integers: `scipy.optimize.milp`, with derivatives.

    Parameters
    ----------
    c, integrality, bounds, options
        As in SciPy.
    constraints : LinearConstraint, or (A, lb, ub), or a list of these
        Tensors are in tuples (A, lb, ub): SciPy's `LinearConstraint` takes numbers.

    Returns
    -------
    scipy.optimize.OptimizeResult
        Its `x` and `fun` are differentiable with respect to c, A, lb and ub. Integers are
        constants; the other unknowns are the solution of a linear program.

    Raises
    ------
    AutogradError, LinAlgError
        As `linprog`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def best(limit):
    ...     rows = ([[1.0, 1.0]], -np.inf, limit)
    ...     return cr.scipy.optimize.milp([-2.0, -1.0], integrality=[1, 0], constraints=rows).fun
    >>> limit = np.array([3.5])
    >>> float(best(limit)), cr.grad(best)(limit)
    (-6.5, array([-1.]))
    """
    rows = [_parts(each) for each in _listed(constraints)]
    given = (c, rows)
    _check_known("milp", given)
    settings = {"integrality": integrality, "bounds": bounds, "options": options}
    found = OPTIMIZE.milp(arrays_of(c), constraints=arrays_of(rows) or None, **settings)
    if not is_tracked(given) or found.x is None:
        return found
    n = len(found.x)
    kinds = np.broadcast_to(0 if integrality is None else integrality, n)
    fixed = (kinds == 1) | (kinds == 3) | ((kinds == 2) & (np.abs(found.x) <= _NEAR))
    c = cnp.asarray(as_ndarrays(c), dtype=float)
    x = cnp.asarray(np.where(fixed, np.round(found.x), found.x))
    if not fixed.all():
        rest = _without(fixed, x[fixed], as_ndarrays(rows), c)
        ends = (np.zeros(n), np.full(n, np.inf)) if bounds is None else (bounds.lb, bounds.ub)
        pairs = np.stack([np.broadcast_to(end, n)[~fixed] for end in ends], 1)
        # What is only allowed to be 0 or more than its lower bound is an unknown as the others.
        x[~fixed] = linprog(c[~fixed], *rest, pairs).x
    found.x, found.fun = x, x @ c
    _forbid(found, found.fun)
    return found


def _listed(constraints: Any) -> Any:
    if constraints is None:
        return []
    single = hasattr(constraints, "lb") or not (
        isinstance(constraints, list | tuple)
        and all(hasattr(each, "lb") or isinstance(each, list | tuple) for each in constraints)
        and not (len(constraints) == 3 and np.ndim(arrays_of(constraints[1])) == 0)
    )
    return [constraints] if single else constraints


def _parts(constraint: Any) -> Any:
    is_object = hasattr(constraint, "lb")
    parts = (constraint.A, constraint.lb, constraint.ub) if is_object else tuple(constraint)
    return (*parts, *[-np.inf, np.inf][len(parts) - 1 :])


def _without(fixed: Any, values: Any, rows: Any, c: Any) -> Any:
    """Return the inequalities and equations that a linear program has for the other unknowns."""
    n = len(fixed)
    less: list[list[Any]] = [[np.zeros((0, n - fixed.sum()))], [np.zeros(0)]]
    same: list[list[Any]] = [[np.zeros((0, n - fixed.sum()))], [np.zeros(0)]]
    for A, low, high in rows:
        A = _dense(A).reshape(-1, n)
        matrix, moved = A[:, ~fixed], A[:, fixed] @ values
        low, high = (cnp.broadcast_to(cnp.asarray(end, dtype=float), len(A)) for end in (low, high))
        ends, matters = arrays_of((low, high)), arrays_of(matrix).any(1)
        equal = matters & (ends[0] == ends[1])
        for sign, end, number in ((1, high, ends[1]), (-1, low, ends[0])):
            used = matters & ~equal & np.isfinite(number)
            less[0].append(sign * matrix[used])
            less[1].append(sign * (end[used] - moved[used]))
        same[0].append(matrix[equal])
        same[1].append(low[equal] - moved[equal])
    return [cnp.concatenate(part) for part in (*less, *same)]


# --- isotonic regression --------------------------------------------------------------------------


@explaining("scipy.optimize.isotonic_regression")
def isotonic_regression(y: Any, *, weights: Any = None, increasing: bool = True) -> Any:
    """Find the nearest monotonic sequence: `scipy.optimize.isotonic_regression`, with derivatives.

    Parameters
    ----------
    y, weights, increasing
        As in SciPy.

    Returns
    -------
    scipy.optimize.OptimizeResult
        Its `x` and `weights` are differentiable with respect to y and weights: they are the means
        of blocks, which are constant.

    Raises
    ------
    AutogradError
        In a compiled function and under `vmap`, where numbers are unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def third(y):
    ...     return cr.scipy.optimize.isotonic_regression(y).x[2]
    >>> cr.grad(third)(np.array([1.0, 3.0, 2.0, 4.0]))
    array([0. , 0.5, 0.5, 0. ])
    """
    given = (y, weights)
    _check_known("isotonic_regression", given)
    numbers, factors = arrays_of(given)
    found = OPTIMIZE.isotonic_regression(numbers, weights=factors, increasing=increasing)
    if not is_tracked(given):
        return found
    y = cnp.asarray(as_ndarrays(y))
    factors = cnp.ones_like(y) if weights is None else cnp.asarray(as_ndarrays(weights))
    place = np.repeat(np.arange(len(found.blocks) - 1), np.diff(found.blocks))
    total = cnp.bincount(place, factors)
    found.x = (cnp.bincount(place, factors * y) / total)[place]
    found.weights = total
    return found
