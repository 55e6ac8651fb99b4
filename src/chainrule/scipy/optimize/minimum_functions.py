"""SciPy's other names for minima: `minimize_scalar`, `fmin` and its relatives, and `leastsq`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.implicit.examples import with_numbers
from chainrule.interop.operands import arrays_of
from chainrule.scipy.dispatch import has_tensors
from chainrule.scipy.error_texts import explaining
from chainrule.scipy.optimize.minimization import Problem, Run
from chainrule.scipy.optimize.sums_of_squares import least_squares
from chainrule.scipy.optimize.unknowns import (
    OPTIMIZE,
    as_args,
    by_rows,
    has_history,
    in_common,
    lacks_rank,
    vector_start,
)
from chainrule.transforms import jacobian

__all__ = [
    "fmin",
    "fmin_bfgs",
    "fmin_cg",
    "fmin_l_bfgs_b",
    "fmin_ncg",
    "fmin_powell",
    "leastsq",
    "minimize_scalar",
    "rosen",
]


@explaining("scipy.optimize.minimize_scalar")
def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: Any = None,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Minimise a function of one number: `scipy.optimize.minimize_scalar`, with derivatives.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns one real number.
    bracket, method, tol, options
        As in SciPy.
    bounds : pair of numbers, optional
        The ends of the interval, by which `x` is differentiable where it is one of them.
    args : tuple
        Further arguments, with respect to which the minimum is differentiable.

    Returns
    -------
    scipy.optimize.OptimizeResult
        As of `minimize`: `x` and `fun` are differentiable with respect to all that `fun` depends
        on.

    Raises
    ------
    ArgumentError, AutogradError, LinAlgError
        As for `minimize`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def lowest(a):
    ...     return cr.scipy.optimize.minimize_scalar(lambda x: np.cosh(x - a) + x**2).x
    >>> round(float(lowest(1.0)), 5), round(cr.grad(lowest)(1.0), 5)
    (0.34899, 0.37879)
    """
    limits = None if bounds is None else [tuple(bounds)]
    problem = Problem(fun, 0.0, args, False, limits, ())
    results: list[Any] = []

    def numbers() -> list[Any]:
        run = Run(problem, None, (None, None, None))
        ends, start = arrays_of([bounds, bracket])
        settings = {"method": method, "tol": tol, "options": options}
        if ends is not None:
            settings["bounds"] = [float(end) for end in ends]

        def function(x: Any) -> Any:
            return run.value(np.array([x], float))

        found = OPTIMIZE.minimize_scalar(function, start, **settings)
        results.append(found)
        at_vector = OPTIMIZE.OptimizeResult(x=np.array([found.x], float))
        return run.solution(at_vector)

    value, *held = with_numbers("scipy.optimize.minimize_scalar", numbers)
    plain = results[0].x
    results[0].x = np.array([plain], float)
    result = problem.finish(value, held, results, None)
    if len(results) == 1 and not has_history(result.x):
        result.x = plain
    return result


# --- fmin and its relatives -----------------------------------------------------------------------


class _Call:
    """A call of an older function of SciPy's: the problem, and the rest of the arguments."""

    def __init__(self, name: str, slope: str | None, given: dict[str, Any]) -> None:
        self.name, self.slope = name, slope
        objective = given.pop("func" if "func" in given else "f")
        numeric = given.pop("approx_grad", False)
        self.jac = given.pop(slope, None) if slope else None
        is_pair = name == "fmin_l_bfgs_b" and self.jac is None and not numeric
        start, bounds, args = given.pop("x0"), given.pop("bounds", None), given.pop("args")
        self.problem = Problem(objective, start, args, is_pair, bounds, ())
        self.rest = given
        self.found: list[Any] = []  # what SciPy returns, for each example of a vmap
        self.results: list[Any] = []  # the same with the names of `minimize`

    def numbers(self) -> list[Any]:
        """Call SciPy's function."""
        run = Run(self.problem, None, (self.jac, self.rest.get("fhess"), self.rest.get("fhess_p")))
        settings = dict(self.rest)
        if self.slope is not None:
            settings[self.slope] = run.gradient
        if settings.get("fhess") is not None:
            settings["fhess"] = run.hessian
        elif "fhess_p" in settings:
            settings["fhess_p"] = run.product
        if self.problem.bounds is not None:
            settings["bounds"] = list(zip(*self.problem.bounds.numbers(), strict=True))
        keeps = self.slope is not None and self.jac is None
        function = run.value_and_keep if keeps else run.value
        found = getattr(OPTIMIZE, self.name)(function, run.unknowns.start(), **settings)
        self.found.append(found)
        first = found[0] if isinstance(found, tuple) else found
        x = np.array(first, float).reshape(run.unknowns.size)
        result = OPTIMIZE.OptimizeResult(x=x, fun=None, success=True, message="")
        if self.name == "fmin_bfgs" and self.rest["full_output"]:
            result.jac, result.hess_inv = found[2:4]
        self.results.append(result)
        return run.solution(result)

    def in_kind(self) -> Any:
        """Return what SciPy returned, with derivatives where there are any."""
        value, *held = with_numbers(f"scipy.optimize.{self.name}", self.numbers)
        result = self.problem.finish(value, held, self.results, None)
        found, several = in_common(self.found), len(self.found) > 1
        if not isinstance(found, tuple):
            return result.x
        rest = list(found[1:])
        has_value = self.rest.get("full_output") or self.name == "fmin_l_bfgs_b"
        if has_value and (several or has_history(result.x)):
            rest[0] = result.fun
            if "hess_inv" in result:
                rest[1:3] = result.jac, result.hess_inv
        return (result.x, *rest)


def _older(name: str, slope: str | None = "fprime") -> Callable[..., Any]:
    """Return the differentiable form of an older function of SciPy's, given its gradient's name.

    Its first results are the minimum and, with `full_output`, the value there.
    """
    full = f"scipy.optimize.{name}"

    @explaining(full)
    def function(*arguments: Any, **settings: Any) -> Any:
        bound = inspect.signature(getattr(OPTIMIZE, name)).bind(*arguments, **settings)
        bound.apply_defaults()
        return _Call(name, slope, dict(bound.arguments)).in_kind()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Minimise a function: `{full}`, with derivatives of the minimum.

    Its arguments are SciPy's, and gradients that are left out are chainrule's; see `minimize`,
    whose results have names.
    """
    return function


fmin = _older("fmin", None)
fmin_powell = _older("fmin_powell", None)
fmin_cg = _older("fmin_cg")
fmin_bfgs = _older("fmin_bfgs")
fmin_ncg = _older("fmin_ncg")
fmin_l_bfgs_b = _older("fmin_l_bfgs_b")


def leastsq(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    Dfun: Callable[..., Any] | None = None,
    full_output: bool = False,
    col_deriv: bool = False,
    ftol: float = 1.49012e-8,
    xtol: float = 1.49012e-8,
    gtol: float = 0.0,
    maxfev: int = 0,
    epsfcn: float | None = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """Minimise a sum of squares: `scipy.optimize.leastsq`, with derivatives.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns the residuals.
    x0 : array or number
        The start.
    args : tuple
        Further arguments, with respect to which the solution is differentiable.
    Dfun : callable, optional
        The Jacobian matrix, transposed with `col_deriv`; chainrule's without.
    full_output, ftol, xtol, gtol, maxfev
        As in SciPy; `epsfcn`, `factor` and `diag` have no effect.

    Returns
    -------
    tuple
        The parameters and a flag, which is 1 to 4 at success; with `full_output` the parameters,
        ``inv(J.T @ J)``, a dictionary, a message and the flag. Parameters and matrix are
        differentiable with respect to everything that `func` depends on.

    Raises
    ------
    ArgumentError, ShapeError, AutogradError, LinAlgError
        As for `least_squares`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> def rate(y):
    ...     residuals = lambda p, y: p[0] * np.exp(-p[1] * t) - y
    ...     return cr.scipy.optimize.leastsq(residuals, [1.0, 1.0], y)[0][1]
    >>> data = 2.0 * np.exp(-3.0 * t)
    >>> round(float(rate(data)), 4), cr.grad(rate)(data)[:3].round(3)
    (3.0, array([0.743, 0.395, 0.134]))
    """
    args = as_args(args)
    found = least_squares(
        func,
        vector_start(x0),
        by_rows(Dfun, col_deriv),
        method="lm",
        args=args,
        ftol=ftol,
        xtol=xtol,
        gtol=max(gtol, float(np.finfo(float).eps)),
        max_nfev=maxfev or None,
    )
    flag = found.status if found.status > 0 else 5
    if not full_output:
        return found.x, flag
    info = {"nfev": found.get("nfev"), "fvec": found.fun}
    return found.x, _inverse_square(func, found, args), info, found.message, flag


def _inverse_square(func: Callable[..., Any], found: Any, args: tuple[Any, ...]) -> Any:
    """Return ``inv(J.T @ J)``, or None if it is singular."""
    slopes = jacobian(lambda x: func(x, *args))(found.x)
    if lacks_rank("scipy.optimize.leastsq", slopes):
        return None
    square = slopes.T @ slopes
    return np.linalg.inv(square)


def rosen(x: Any) -> Any:
    """Return Rosenbrock's function: `scipy.optimize.rosen`, which records.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([1.3, 0.7, 0.8])
    >>> np.allclose(cr.grad(cr.scipy.optimize.rosen)(x), cr.scipy.optimize.rosen_der(x))
    True
    """
    if not has_tensors(x):
        return OPTIMIZE.rosen(x)
    x = np.stack(x) if isinstance(x, list | tuple) else x
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0, axis=0)
