"""SciPy's older names for roots: `fsolve`, `newton`, `brentq` and the other bracketing methods."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.location import user_stack_level
from chainrule.errors import ArgumentError
from chainrule.implicit.examples import with_numbers
from chainrule.implicit.solutions import without_history
from chainrule.scipy.optimize.roots import System, root, root_scalar
from chainrule.scipy.optimize.unknowns import (
    OPTIMIZE,
    Unknowns,
    as_args,
    by_rows,
    has_history,
    recording,
    vector_start,
)

__all__ = ["bisect", "brenth", "brentq", "fsolve", "newton", "ridder"]

RTOL = 4 * float(np.finfo(float).eps)


def brentq(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    xtol: float = 2e-12,
    rtol: float = RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Find a root in a bracket by Brent's method: `scipy.optimize.brentq`, with derivatives.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns one number.
    a, b : float
        The ends of the bracket, where `f` has different signs.
    args : tuple
        Further arguments, with respect to which the root is differentiable.
    xtol, rtol, maxiter
        As in SciPy.
    full_output : bool, default False
        Whether to return the pair of root and `scipy.optimize.RootResults`.
    disp : bool, default True
        Whether to raise if it did not converge.

    Returns
    -------
    float
        The root, a 0-d Tensor where it has a history: see `root_scalar`.

    Raises
    ------
    RuntimeError
        If it did not converge, with `disp`.
    ValueError
        If `f` has the same sign at both ends.
    ArgumentError, AutogradError, LinAlgError
        As for `root_scalar`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def angle(height):
    ...     return cr.scipy.optimize.brentq(lambda x: np.sin(x) - height, 0, 1.5)
    >>> round(float(angle(0.5)), 6), round(cr.grad(angle)(0.5), 6)
    (0.523599, 1.154701)
    """
    return _in_bracket("brentq", f, a, b, args, xtol, rtol, maxiter, full_output, disp)


@functools.wraps(brentq, assigned=())
def brenth(*arguments: Any, **settings: Any) -> Any:
    """Find a root in a bracket by Brent's method with hyperbolic extrapolation: as `brentq`."""
    return _by_method("brenth", arguments, settings)


@functools.wraps(brentq, assigned=())
def ridder(*arguments: Any, **settings: Any) -> Any:
    """Find a root in a bracket by Ridder's method: as `brentq`."""
    return _by_method("ridder", arguments, settings)


@functools.wraps(brentq, assigned=())
def bisect(*arguments: Any, **settings: Any) -> Any:
    """Find a root in a bracket by bisection: as `brentq`."""
    return _by_method("bisect", arguments, settings)


_BRACKETED = inspect.signature(brentq)


def _by_method(method: str, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    given = _BRACKETED.bind(*arguments, **settings)
    given.apply_defaults()
    return _in_bracket(method, *given.args)


def _in_bracket(
    method: str,
    f: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any,
    xtol: float,
    rtol: float,
    maxiter: int,
    full_output: bool,
    disp: bool,
) -> Any:
    found = root_scalar(f, args, method, (a, b), xtol=xtol, rtol=rtol, maxiter=maxiter)
    if disp and not found.converged:
        raise RuntimeError(f"{method}: failed to converge after {found.iterations} iterations")
    return (found.root, found) if full_output else found.root


def newton(
    func: Callable[..., Any],
    x0: Any,
    fprime: Callable[..., Any] | None = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Callable[..., Any] | None = None,
    x1: Any = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
    *,
    linear_solver: str | None = None,
) -> Any:
    """Find roots near `x0`, of each element alone: `scipy.optimize.newton`, with derivatives.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns the shape of `x`. Each element depends on that of `x` alone.
    x0 : number or array
        The start.
    fprime, fprime2 : callable, optional
        The first and second derivative, elementwise, for the methods of Newton and Halley;
        without, the secant method, as in SciPy.
    args : tuple
        Further arguments, with respect to which the roots are differentiable.
    tol, maxiter, x1, rtol
        As in SciPy.
    full_output : bool, default False
        Whether to return, after the roots, `scipy.optimize.RootResults` for a number `x0`, and for
        an array two arrays: where it converged, and where the derivative was zero.
    disp : bool, default True
        Whether to raise if it did not converge.
    linear_solver : "dense", "gmres", "cg" or None, default None
        As for `chainrule.implicit_function`.

    Returns
    -------
    as `x0`
        The roots, differentiable with respect to everything that `func` depends on.

    Raises
    ------
    RuntimeError
        If it did not converge, with `disp`.
    ShapeError, AutogradError, LinAlgError
        As for `root`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def cube_root(a):
    ...     return cr.scipy.optimize.newton(lambda x: x**3 - a, 1.5)
    >>> round(float(cube_root(8.0)), 6), round(cr.grad(cube_root)(8.0), 6)
    (2.0, 0.083333)
    """
    args = tuple(args) if isinstance(args, list) else as_args(args)
    unknowns = Unknowns("newton", x0)
    system = System("newton", func, unknowns, args)
    reports: list[Any] = []

    def numbers() -> list[Any]:
        plain = without_history(args)
        slopes = [
            None if f is None else System("newton", recording(f), unknowns, plain).of_numbers(plain)
            for f in (fprime, fprime2)
        ]
        second = None if x1 is None else Unknowns("newton", x1).start()
        function, start = system.of_numbers(plain), unknowns.start()
        settings = {"fprime2": slopes[1], "x1": second, "rtol": rtol}
        settings |= {"full_output": full_output, "disp": disp}
        found = OPTIMIZE.newton(function, start, slopes[0], (), tol, maxiter, **settings)
        found, *report = found if full_output else (found,)
        reports.append(report)
        return [np.array(found, start.dtype)]

    (value,) = with_numbers("scipy.optimize.newton", numbers)
    solution = system.solution(value, linear_solver)
    return _with_report(solution, reports) if full_output else solution


def _with_report(solution: Any, reports: list[Any]) -> Any:
    """Return the roots and what SciPy reports of its run."""
    if len(reports) != 1:
        raise ArgumentError(
            f"newton: full_output=True reports one run, got {len(reports)} under vmap or in a "
            "compiled function: leave it out"
        )
    (report,) = reports
    if hasattr(report[0], "root"):
        report[0].root = solution
    return solution, *report


def fsolve(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    fprime: Callable[..., Any] | None = None,
    full_output: bool = False,
    col_deriv: bool = False,
    xtol: float = 1.49012e-8,
    maxfev: int = 0,
    band: Any = None,
    epsfcn: float | None = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """Find a root of a function: `scipy.optimize.fsolve`, with derivatives.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns as many numbers as `x` has.
    x0 : number or array
        The start; the function gets an array for a number, as in SciPy. A tree is taken, too.
    args : tuple
        Further arguments, with respect to which the root is differentiable.
    fprime : callable, optional
        The Jacobian matrix, transposed with `col_deriv`; chainrule's without.
    full_output, xtol, maxfev, band, epsfcn, factor, diag
        As in SciPy.

    Returns
    -------
    array, Tensor or as `x0`
        The root, differentiable with respect to everything that `func` depends on. With
        `full_output` also a dictionary, a flag, which is 1 at success, and a message.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError, AutogradError, LinAlgError
        As for `root`.

    Warns
    -----
    RuntimeWarning
        If it did not converge, without `full_output`. It is a UserWarning, as that of `root`, if
        the result has derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def meet(radius):
    ...     def equations(p):
    ...         x, y = p
    ...         return [x**2 + y**2 - radius**2, x - y]
    ...     return cr.scipy.optimize.fsolve(equations, [1.0, 2.0])
    >>> meet(2.0).round(6), cr.jacobian(meet)(2.0).round(6)
    (array([1.414214, 1.414214]), array([0.707107, 0.707107]))
    """
    options = {"xtol": xtol, "maxfev": maxfev, "band": band, "factor": factor, "diag": diag}
    jac = by_rows(fprime, col_deriv)
    found = root(func, vector_start(x0), args, jac=jac, options={**options, "eps": epsfcn})
    if full_output:
        info = {name: found.get(name) for name in ("nfev", "njev", "fjac", "r", "qtf")}
        info["fvec"] = found.get("fun")
        return found.x, info, found.status, found.message
    if not found.success and not has_history(found.x):
        warnings.warn(found.message, RuntimeWarning, stacklevel=user_stack_level())
    return found.x
