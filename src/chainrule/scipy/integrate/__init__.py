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
from functools import wraps
from typing import Any

from chainrule.backend.extensions import SCIPY
from chainrule.scipy.dispatch import Table
from chainrule.scipy.error_texts import explaining
from chainrule.scipy.integrate import boundary_values, initial_value, quadrature, sums
from chainrule.scipy.own_code import compose as _compose
from chainrule.scipy.own_code import compose_others as _compose_others

_TABLE = Table("scipy.integrate", SCIPY)
for _name in ("trapezoid", "cumulative_trapezoid", "simpson", "cumulative_simpson", "romb"):
    _TABLE.function(_name, "linear")(getattr(sums, _name))
# Their integrands may return tensors even if no argument is one.
_SOLVERS = (
    *(quadrature.fixed_quad, quadrature.quad, quadrature.quad_vec, quadrature.nquad),
    *(quadrature.dblquad, quadrature.tplquad, initial_value.solve_ivp, initial_value.odeint),
    boundary_values.solve_bvp,
)
_TABLE.objects = {f.__name__: explaining(f"scipy.integrate.{f.__name__}")(f) for f in _SOLVERS}


def _by_double_exponentials(name: str) -> Callable[..., Any]:
    """Return SciPy's function, whose own code runs on an integrand without far nodes."""
    own = _TABLE.find(name)

    def integrate(f: Callable[..., Any], *args: Any, **settings: Any) -> Any:
        return own(quadrature.without_far_nodes(name, f), *args, **settings)

    return wraps(own)(integrate)


_DOUBLE_EXPONENTIALS = ("tanhsinh", "nsum")
_compose(_TABLE, _DOUBLE_EXPONENTIALS)
_compose_others(_TABLE)
_TABLE.objects |= {name: _by_double_exponentials(name) for name in _DOUBLE_EXPONENTIALS}

__getattr__, __dir__ = _TABLE.namespace()
