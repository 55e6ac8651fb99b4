"""SciPy's solvers with derivatives: of trees, by chainrule's gradients, differentiable themselves.

The other names of `scipy.optimize` are SciPy's own: functions take arrays of `chainrule.numpy`, and
have no derivative.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from inspect import isfunction as _isfunction
from typing import Any

from chainrule.interop.operands import arrays_of as _arrays_of
from chainrule.scipy.dispatch import namespace_of as _namespace_of
from chainrule.scipy.optimize.curve_fitting import curve_fit as curve_fit
from chainrule.scipy.optimize.linear_least_squares import lsq_linear as lsq_linear
from chainrule.scipy.optimize.linear_least_squares import nnls as nnls
from chainrule.scipy.optimize.linear_programs import isotonic_regression as isotonic_regression
from chainrule.scipy.optimize.linear_programs import linprog as linprog
from chainrule.scipy.optimize.linear_programs import milp as milp
from chainrule.scipy.optimize.minimization import minimize as minimize
from chainrule.scipy.optimize.minimum_functions import fmin as fmin
from chainrule.scipy.optimize.minimum_functions import fmin_bfgs as fmin_bfgs
from chainrule.scipy.optimize.minimum_functions import fmin_cg as fmin_cg
from chainrule.scipy.optimize.minimum_functions import fmin_l_bfgs_b as fmin_l_bfgs_b
from chainrule.scipy.optimize.minimum_functions import fmin_ncg as fmin_ncg
from chainrule.scipy.optimize.minimum_functions import fmin_powell as fmin_powell
from chainrule.scipy.optimize.minimum_functions import leastsq as leastsq
from chainrule.scipy.optimize.minimum_functions import minimize_scalar as minimize_scalar
from chainrule.scipy.optimize.minimum_functions import rosen as rosen
from chainrule.scipy.optimize.root_functions import bisect as bisect
from chainrule.scipy.optimize.root_functions import brenth as brenth
from chainrule.scipy.optimize.root_functions import brentq as brentq
from chainrule.scipy.optimize.root_functions import fsolve as fsolve
from chainrule.scipy.optimize.root_functions import newton as newton
from chainrule.scipy.optimize.root_functions import ridder as ridder
from chainrule.scipy.optimize.roots import fixed_point as fixed_point
from chainrule.scipy.optimize.roots import root as root
from chainrule.scipy.optimize.roots import root_scalar as root_scalar
from chainrule.scipy.optimize.searches import MINIMA, ROOTS
from chainrule.scipy.optimize.searches import search as _search
from chainrule.scipy.optimize.sums_of_squares import least_squares as least_squares
from chainrule.scipy.optimize.unknowns import OPTIMIZE
from chainrule.scipy.optimize.unknowns import by_numbers as _by_numbers


def _find(name: str) -> Any:
    if name in MINIMA or name in ROOTS:
        return _search(name)
    if name == "elementwise":  # a module that SciPy's doesn't import
        return _import_module(f"{__name__}.{name}")
    found = getattr(OPTIMIZE, name)
    if name == "linear_sum_assignment":  # whose results are indices
        return lambda *args, **kwargs: found(*_arrays_of(args), **kwargs)
    return _by_numbers(f"scipy.optimize.{name}", found) if _isfunction(found) else found


__getattr__, __dir__ = _namespace_of("scipy.optimize", _find)
