"""Boundary value problems of ordinary differential equations: `solve_bvp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.errors import ArgumentError
from chainrule.implicit import implicit_function
from chainrule.interop.operands import array_of, arrays_of, is_tracked
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import missing_rule
from chainrule.scipy.own_code import run_again

_scipys = LazyModule("scipy.integrate", SCIPY)


def solve_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: Any,
    y: Any,
    p: Any = None,
    S: Any = None,
    fun_jac: Callable[..., Any] | None = None,
    bc_jac: Callable[..., Any] | None = None,
    **settings: Any,
) -> Any:
    """Solve a boundary value problem: `scipy.integrate.solve_bvp`, with derivatives.

    Parameters
    ----------
    fun, bc : callable
        ``fun(x, y)`` or ``fun(x, y, p)`` returns the slopes, ``bc(ya, yb)`` or ``bc(ya, yb, p)``
        what is zero at the ends.
    x, y, p
        The mesh, and the starts of the solution and of unknown parameters.
    S, fun_jac, bc_jac, **settings
        As in SciPy.

    Returns
    -------
    scipy.integrate.BVPResult
        Its `sol`, `y`, `yp` and `p` are differentiable with respect to everything that `fun` and
        `bc` depend on: tensors that they close over.

    Raises
    ------
    MissingRuleError
        If the mesh or S is differentiated.
    AutogradError, LinAlgError
        As for `chainrule.implicit_function`.

    Notes
    -----
    The derivative is that of the equations of collocation on the mesh that SciPy ends with: a dense
    system of as many unknowns as `y` has numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def middle(load):
    ...     bending = lambda x, y: [y[1], -load * np.ones_like(x)]
    ...     ends = lambda ya, yb: [ya[0], yb[0]]
    ...     x = np.linspace(0, 1, 5)
    ...     return cr.scipy.integrate.solve_bvp(bending, ends, x, np.zeros((2, 5))).sol(0.5)[0]
    >>> round(float(middle(8.0)), 6), round(cr.grad(middle)(8.0), 6)
    (1.0, 0.125)
    """
    if is_tracked(x, S):
        raise missing_rule(
            "scipy.integrate.solve_bvp: the derivative by the mesh or S",
            "scale x in the equations, so that the mesh is constant",
        )
    x, y, p, S = arrays_of([x, y, p, S])

    results: list[Any] = []

    def solver() -> tuple[Any, Any]:
        functions = [_of_numbers(f) for f in (fun, bc, fun_jac, bc_jac)]
        found = _scipys.solve_bvp(*functions[:2], x, y, p, S, *functions[2:], **settings)
        results.append(found)
        return {"y": found.y, "p": np.zeros(0) if found.p is None else found.p}, None

    def parts(unknowns: Any) -> tuple[Any, ...]:
        """Return the slopes, the residuals of collocation and those at the ends."""
        code, found = run_again("scipy.integrate._bvp"), results[0]
        D = None if S is None else np.linalg.pinv(np.eye(len(S)) - S)
        size, kind = len(unknowns["p"]), found.y.dtype.type
        f, ends, *_ = code.wrap_functions(
            _stacking(fun), _stacking(bc), None, None, size, found.x[0], S, D, kind
        )
        y, p = unknowns["y"], unknowns["p"]
        rest, _, slopes, _ = code.collocation_fun(f, y, p, found.x, np.diff(found.x))
        return slopes, rest, ends(y[:, 0], y[:, -1], p)

    def residual(unknowns: Any) -> Any:
        return parts(unknowns)[1:]

    # Iterations converge badly, for each node depends on its neighbours alone.
    solved, _ = implicit_function(solver, residual, has_aux=True, linear_solver="dense")()
    if len(results) > 1:
        raise ArgumentError(
            f"solve_bvp: a result is of one mesh, got {len(results)} problems under vmap: call it "
            "for each example in turn"
        )
    (found,) = results
    if not is_tracked(solved):
        return found
    solved = as_ndarrays(solved)
    found.y, found.yp = solved["y"], parts(solved)[0]
    if found.p is not None:
        found.p = solved["p"]
    spline = run_again("scipy.integrate._bvp").create_spline
    found.sol = spline(found.y, found.yp, found.x, np.diff(found.x))
    return found


def _stacking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose lists of arrays become one."""

    def stacked(*args: Any) -> Any:
        found = function(*args)
        return cnp.stack([*found]) if isinstance(found, list | tuple) else found

    return stacked


def _of_numbers(function: Any) -> Any:
    return None if function is None else lambda *args: arrays_of(_arrays(function(*args)))


def _arrays(found: Any) -> Any:
    return tuple(map(array_of, found)) if isinstance(found, tuple) else array_of(found)
