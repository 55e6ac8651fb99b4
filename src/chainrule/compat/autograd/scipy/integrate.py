"""Solutions of ordinary differential equations, differentiated by the adjoint equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import scipy.integrate as _scipy

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.core import make_vjp
from chainrule.compat.autograd.extend import defvjp_argnums, primitive
from chainrule.compat.autograd.misc.flatten import flatten

__all__ = ["odeint"]

_odeint = primitive(_scipy.odeint)


def odeint(
    func: Callable[..., Any], y0: Any, t: Any, args: Sequence[Any] = (), **settings: Any
) -> Any:
    """Return the solution of dy/dt = func(y, t, *args) at the times `t`.

    Parameters
    ----------
    func : callable
        ``func(y, t, *args)``
    y0 : array, shape (n,)
        The state at ``t[0]``.
    t : array, shape (m,)
        Increasing or decreasing times.
    args : tuple of trees of arrays
        What the equation depends on.
    **settings
        Of `scipy.integrate.odeint`.

    Returns
    -------
    array, shape (m, n)
        Differentiable by `y0`, `t` and `args`, in reverse mode, to any order.

    Notes
    -----
    The cotangent λ of the state solves λ' = -λᵀ∂f/∂y backward in time, and jumps at the times `t`;
    the gradient by the arguments is ∫λᵀ∂f/∂p (L. S. Pontryagin, The Mathematical Theory of Optimal
    Processes, 1962). It is as accurate as the solver's tolerances.
    """
    return _odeint(func, y0, t, tuple(args), **settings)


def _vjp(argnums: Sequence[int], ans: Any, args: Any, settings: Any) -> Callable[[Any], list[Any]]:
    func, _, t, func_args = args
    vector, unflatten = flatten(func_args)
    n = np.shape(ans)[1]

    def of_flat(p: Any, time: Any) -> Any:
        return np.asarray(func(p[0], time, *unflatten(p[1])))

    def adjoint(state: Any, time: Any, vector: Any) -> Any:
        y, cotangent = state[:n], state[n : 2 * n]
        vjp, rate = make_vjp(lambda p: of_flat(p, time), (y, vector))
        return np.concatenate([rate, *[-part for part in vjp(cotangent)]])

    def vjp(g: Any) -> list[Any]:
        cotangent, of_args = g[-1], np.zeros(np.size(vector))
        of_times = []
        for i in range(len(t) - 1, 0, -1):
            of_times.append(np.dot(g[i], of_flat((ans[i], vector), t[i])))
            start = np.concatenate([ans[i], cotangent, of_args])
            times = np.stack([t[i], t[i - 1]])
            end = odeint(adjoint, start, times, (vector,), **settings)[1]
            cotangent, of_args = end[n : 2 * n] + g[i - 1], end[2 * n :]
        # A later start is a start at another state, by what the solution moves in between.
        of_times.append(-np.dot(cotangent - g[0], of_flat((ans[0], vector), t[0])))
        found = [None, cotangent, np.stack(of_times[::-1]), unflatten(of_args)]
        return [found[i] for i in argnums]

    return vjp


defvjp_argnums(_odeint, _vjp)
