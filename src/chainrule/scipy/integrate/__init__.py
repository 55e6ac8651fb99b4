"""`scipy.integrate` over tensors: integrals of samples and of functions.

Given arrays and functions of numbers, a function is SciPy's own; see `docs/stats.md` for the
derivatives.

>>> import numpy as np
>>> import chainrule as cr
>>> integrate = cr.scipy.integrate
>>> round(cr.grad(lambda b: integrate.quad(lambda x: b * x**2, 0.0, 3.0)[0])(2.0), 9)
9.0
>>> cr.grad(lambda y: integrate.simpson(y, dx=0.5))(np.array([1.0, 2.0, 4.0]))
array([0.16666667, 0.66666667, 0.16666667])
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from chainrule.scipy.integrate import quadrature, sums
from chainrule.scipy.integrate.quadrature import scipy_integrate
from chainrule.scipy.tensor_functions import namespace

_SAMPLES = {
    name: getattr(sums, name)
    for name in ("trapezoid", "cumulative_trapezoid", "simpson", "cumulative_simpson", "romb")
}


class _OfFunctions:
    """A function of an integrand, which may return tensors even if no argument is one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


_FUNCTIONS = {
    name: _OfFunctions(getattr(quadrature, name))
    for name in ("fixed_quad", "quad", "quad_vec", "nquad", "dblquad", "tplquad")
}

_SOLUTION = (
    "solutions of differential equations are differentiated by stepping with tensors: "
    "chainrule.scan, or chainrule.compat.autograd.scipy.integrate.odeint, whose gradient is that "
    "of the adjoint equation"
)

__getattr__, __dir__ = namespace(
    __name__,
    scipy_integrate,
    {**_SAMPLES, **_FUNCTIONS},
    dict.fromkeys(["odeint", "solve_ivp", "solve_bvp"], _SOLUTION),
)
