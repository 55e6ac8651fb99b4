"""Linear programs: `linprog`, whose solution is the corner where active constraints meet."""

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

__all__ = ["linprog"]

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
    if not are_known(given):
        raise AutogradError(
            "linprog looks at values, which a compiled function doesn't know, nor does vmap: call "
            "it outside, for each example in turn"
        )
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
        for name in _OF_SCIPY & part.keys():
            node = ErrorNode(_NO_RULE.format(name), (current_node(found.x),))
            part[name] = as_ndarrays(make(np.asarray(part[name], float), node))
    return found


_OF_SCIPY = frozenset(["slack", "con", "residual", "marginals"])
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
