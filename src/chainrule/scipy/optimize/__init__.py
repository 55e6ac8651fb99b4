"""SciPy's solvers with derivatives: of trees, by chainrule's gradients, differentiable themselves.

The other names of `scipy.optimize` are SciPy's own.
"""

from __future__ import annotations

from typing import Any

from chainrule.scipy.optimize.curve_fitting import curve_fit
from chainrule.scipy.optimize.minimization import minimize
from chainrule.scipy.optimize.root_functions import bisect, brenth, brentq, fsolve, newton, ridder
from chainrule.scipy.optimize.roots import fixed_point, root, root_scalar
from chainrule.scipy.optimize.sums_of_squares import least_squares
from chainrule.scipy.optimize.unknowns import OPTIMIZE

__all__ = [
    "bisect",
    "brenth",
    "brentq",
    "curve_fit",
    "fixed_point",
    "fsolve",
    "least_squares",
    "minimize",
    "newton",
    "ridder",
    "root",
    "root_scalar",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(OPTIMIZE, name)
