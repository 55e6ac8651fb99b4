"""SciPy's solvers with derivatives: of trees, by chainrule's gradients, differentiable themselves.

The other names of `scipy.optimize` are SciPy's own: functions take arrays of `chainrule.numpy`, and
have no derivative.
"""

from __future__ import annotations

from importlib import import_module
from inspect import isfunction
from typing import Any

from chainrule.interop.operands import arrays_of
from chainrule.scipy.optimize.curve_fitting import curve_fit
from chainrule.scipy.optimize.linear_least_squares import lsq_linear, nnls
from chainrule.scipy.optimize.linear_programs import isotonic_regression, linprog, milp
from chainrule.scipy.optimize.minimization import minimize
from chainrule.scipy.optimize.minimum_functions import (
    fmin,
    fmin_bfgs,
    fmin_cg,
    fmin_l_bfgs_b,
    fmin_ncg,
    fmin_powell,
    leastsq,
    minimize_scalar,
    rosen,
)
from chainrule.scipy.optimize.root_functions import bisect, brenth, brentq, fsolve, newton, ridder
from chainrule.scipy.optimize.roots import fixed_point, root, root_scalar
from chainrule.scipy.optimize.searches import MINIMA, ROOTS, search
from chainrule.scipy.optimize.sums_of_squares import least_squares
from chainrule.scipy.optimize.unknowns import OPTIMIZE, by_numbers

__all__ = [
    "bisect",
    "brenth",
    "brentq",
    "curve_fit",
    "fixed_point",
    "fmin",
    "fmin_bfgs",
    "fmin_cg",
    "fmin_l_bfgs_b",
    "fmin_ncg",
    "fmin_powell",
    "fsolve",
    "isotonic_regression",
    "least_squares",
    "leastsq",
    "linprog",
    "lsq_linear",
    "milp",
    "minimize",
    "minimize_scalar",
    "newton",
    "nnls",
    "ridder",
    "root",
    "root_scalar",
    "rosen",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in MINIMA or name in ROOTS:
        return search(name)
    if name == "elementwise":  # a module that SciPy's doesn't import
        return import_module(f"{__name__}.{name}")
    found = getattr(OPTIMIZE, name)
    if name == "linear_sum_assignment":  # whose results are indices
        return lambda *args, **kwargs: found(*arrays_of(args), **kwargs)
    return by_numbers(f"scipy.optimize.{name}", found) if isfunction(found) else found
