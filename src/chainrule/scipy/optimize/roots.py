"""Roots of equations: `root`, `root_scalar` and `fixed_point`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import ArgumentError
from chainrule.implicit.examples import with_numbers
from chainrule.implicit.inverse import inverse_maker
from chainrule.implicit.solutions import check_count, differentiable, numbers_of, without_history
from chainrule.implicit.vectors import vector_of
from chainrule.interop.operands import arrays_of
from chainrule.scipy.error_texts import explaining
from chainrule.scipy.optimize.unknowns import (
    OPTIMIZE,
    Unknowns,
    as_args,
    check_first,
    check_recorded,
    joined,
    recording,
    scalar,
    warn_of_failure,
    without_rules,
)
from chainrule.transforms import grad, jacobian

__all__ = ["fixed_point", "root", "root_scalar"]


class System:
    """A system of equations: a user's function of a tree, and SciPy's of a vector."""

    def __init__(self, title: str, fun: Any, unknowns: Unknowns, args: tuple[Any, ...]) -> None:
        self.title, self.fun, self.unknowns, self.args = title, fun, unknowns, args

    def recorded(self, x: Tensor, args: Any = None) -> Tensor:
        """Return the equations at a vector, recorded."""
        result = self.fun(self.unknowns.recorded(x), *(self.args if args is None else args))
        vector = vector_of(f"{self.title}: the result of the function", result)
        check_count(self.title, self.fun, vector, self.unknowns.layout)
        check_recorded(self.title, self.fun, vector)
        return vector

    def of_numbers(self, args: Any) -> Callable[[Any], Any]:
        """Return the function of a vector of numbers."""
        calls = 0

        def function(v: Any) -> Any:
            nonlocal calls
            result = self.fun(self.unknowns.plain(v), *args)
            vector = vector_of(f"{self.title}: the result of the function", result)
            check_count(self.title, self.fun, vector, self.unknowns.layout)
            found = numbers_of(vector)
            if not calls:
                check_first(self.title, self.fun, found, args)
            calls += 1
            return found

        return function

    def solution(self, value: Any, linear_solver: str | None, equation: Any = None) -> Any:
        """Return the tree of the solution of an equation, which is differentiable."""
        unknowns = self.unknowns
        maker = inverse_maker(self.title, linear_solver, unknowns.size)
        settings = (unknowns.layout, unknowns.as_arrays)
        equation = equation or self.recorded

        def unrecorded() -> Any:
            return self.fun(unknowns.plain(value), *self.args)

        found = differentiable(self.title, equation, value, maker, *settings, unrecorded)
        return unknowns.result(value) if found is unknowns.layout.tree else found


@explaining("scipy.optimize.root")
def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Any = None,
    options: dict[str, Any] | None = None,
    *,
    linear_solver: str | None = None,
) -> Any:
    """Find a root of a function: `scipy.optimize.root`, with derivatives, of trees.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns as many numbers as `x` has, in any structure.
    x0 : array, number, Tensor, or dicts, lists, tuples, dataclasses of them
        The start. A list of numbers is an array, as in SciPy.
    args : tuple
        Further arguments, with respect to which the root is differentiable.
    method, tol, callback, options
        As in SciPy.
    jac : callable, bool or None, default None
        The Jacobian matrix, ``jac(x, *args)``; True if `fun` returns it as well; None for
        chainrule's. Methods without a Jacobian leave it out.
    linear_solver : "dense", "gmres", "cg" or None, default None
        As for `chainrule.implicit_function`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        Its `x` has the structure of `x0`, and is differentiable with respect to everything that
        `fun` depends on: `args`, and tensors that it closes over. The other fields are SciPy's
        numbers. There is no derivative with respect to the start.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError, AutogradError
        If x0 or the function at x0 is nan, the numbers of equations and unknowns differ, or the
        function doesn't depend on the unknowns.
    LinAlgError
        When a derivative is computed, if the Jacobian is singular.

    Warns
    -----
    UserWarning
        If it did not converge, and the result has derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def circle_and_line(p, radius):
    ...     return [p["x"] ** 2 + p["y"] ** 2 - radius**2, p["x"] - p["y"]]
    >>> def meet(radius):
    ...     return cr.scipy.optimize.root(circle_and_line, {"x": 1.0, "y": 2.0}, radius).x["x"]
    >>> round(float(meet(2.0)), 6), round(cr.grad(meet)(2.0), 6)
    (1.414214, 0.707107)
    """
    args, unknowns = as_args(args), Unknowns("root", x0)
    fun, jac = recording(fun) if jac is True else fun, recording(jac)
    system = System("root", _first_of(fun) if jac is True else fun, unknowns, args)
    results: list[Any] = []

    def numbers() -> list[Any]:
        plain = without_history(args)
        function = system.of_numbers(plain)

        def matrix(v: Any) -> Any:
            if jac is True:
                return _matrix(fun(unknowns.plain(v), *plain)[1], unknowns)
            if callable(jac):
                return _matrix(jac(unknowns.plain(v), *plain), unknowns)
            return jacobian(lambda x: system.recorded(x, plain))(make(v, None)).numpy()

        found = OPTIMIZE.root(
            function,
            unknowns.start(),
            method=method,
            jac=matrix if method in ("hybr", "lm") and jac is not False else None,
            tol=tol,
            callback=None if callback is None else lambda v, f: callback(unknowns.result(v), f),
            options=options,
        )
        results.append(found)
        return [found.x]

    (value,) = with_numbers("scipy.optimize.root", numbers)
    result = results[0] if len(results) == 1 else joined(results)
    result.x = system.solution(value, linear_solver)
    without_rules(result, unknowns.as_arrays, "cr.jacobian(fun)(result.x) has one")
    warn_of_failure("root", results, result.x)
    return result


def _first_of(fun: Any) -> Any:
    return lambda *given: fun(*given)[0]


def _matrix(given: Any, unknowns: Unknowns) -> Any:
    """Return the Jacobian that a user's function computed."""
    found = numbers_of(given) if isinstance(given, Tensor) else np.asarray(given, float)
    if found.size != unknowns.size**2:
        raise ArgumentError(
            f"{unknowns.title}: jac must return a matrix of {unknowns.size} rows and columns, got "
            f"the shape {list(found.shape)}: leave it out, and chainrule computes it"
        )
    return found.reshape(unknowns.size, unknowns.size)


@explaining("scipy.optimize.root_scalar")
def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a root of a function of one number: `scipy.optimize.root_scalar`, with derivatives.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns one number.
    args : tuple
        Further arguments, with respect to which the root is differentiable.
    fprime, fprime2 : callable, bool or None
        The first and second derivative, for the methods "newton" and "halley": None for
        chainrule's.
    method, bracket, x0, x1, xtol, rtol, maxiter, options
        As in SciPy. With `x0` alone the method is "newton".

    Returns
    -------
    scipy.optimize.RootResults
        Its `root` is differentiable with respect to everything that `f` depends on. There is no
        derivative with respect to start and bracket.

    Raises
    ------
    ArgumentError, AutogradError
        If the function doesn't return one number, or it doesn't depend on x.
    LinAlgError
        When a derivative is computed, at a multiple root, where f' is zero.

    Warns
    -----
    UserWarning
        If it did not converge, and the root has derivatives.

    Examples
    --------
    Kepler's equation, and the derivative of its solution by the eccentricity:

    >>> import numpy as np
    >>> import chainrule as cr
    >>> def anomaly(e):
    ...     kepler = lambda E: E - e * np.sin(E) - 1.0
    ...     return cr.scipy.optimize.root_scalar(kepler, bracket=(0, 3)).root
    >>> round(float(anomaly(0.5)), 6), round(cr.grad(anomaly)(0.5), 6)
    (1.498701, 1.034667)
    """
    title, args = "root_scalar", as_args(args)
    f = recording(f) if True in (fprime, fprime2) else f
    fprime, fprime2 = recording(fprime), recording(fprime2)
    unknowns = Unknowns(title, np.float64(0.0))  # only its structure counts
    results: list[Any] = []

    def value_at(x: Any, given: Any) -> Any:
        return scalar(title, f, f(x, *given))

    def numbers() -> list[Any]:
        plain = without_history(args)
        starts = [_numbers(each) for each in (bracket, x0, x1)]
        derivatives = _derivatives(f, plain, method, fprime, fprime2, starts)
        both = True in (fprime, fprime2)  # f returns its derivatives, too

        def function(x: Any) -> Any:
            return f(x, *plain) if both else float(_number(value_at(x, plain)))

        found = OPTIMIZE.root_scalar(
            function,
            (),
            method,
            starts[0],
            *derivatives,
            *starts[1:],
            xtol=xtol,
            rtol=rtol,
            maxiter=maxiter,
            options=options,
        )
        results.append(found)
        return [np.array([found.root], float)]

    def equation(x: Tensor) -> Tensor:
        first = f if True not in (fprime, fprime2) else _first_of(f)
        value: Tensor = scalar(title, f, first(unknowns.recorded(x), *args))[None]
        return value

    (value,) = with_numbers(f"scipy.optimize.{title}", numbers)
    maker = inverse_maker(title, "dense", 1)
    result, layout = results[0], unknowns.layout
    found = differentiable(title, equation, value, maker, layout, True, lambda: f(value[0], *args))
    result.root = float(result.root) if found is unknowns.x0 else found
    warn_of_failure(title, results, result.root)
    return result


def _number(value: Any) -> Any:
    return numbers_of(value) if isinstance(value, Tensor) else value


def _numbers(start: Any) -> Any:
    """Return a start or a bracket as numbers."""
    if start is None:
        return None
    found = np.asarray(arrays_of(start), float)
    if found.size > 2:
        raise ArgumentError(
            f"root_scalar: the unknown is one number, got a start of {found.size}: root() solves "
            "systems of equations"
        )
    return found.tolist() if found.size > 1 else found.item()


def _derivatives(
    f: Any, args: Any, method: str | None, fprime: Any, fprime2: Any, starts: list[Any]
) -> list[Any]:
    """Return the first and second derivative that a method needs."""

    def function(x: Any) -> Any:
        return scalar("root_scalar", f, f(x, *args))

    newton = method is None and starts[0] is None is starts[2]
    if fprime is None and (newton or method in ("newton", "halley")):
        fprime = grad(function)
    elif callable(fprime):
        fprime = _with(fprime, args)
    if fprime2 is None and method == "halley":
        fprime2 = grad(grad(function))
    elif callable(fprime2):
        fprime2 = _with(fprime2, args)
    return [fprime, fprime2]


def _with(function: Callable[..., Any], args: Any) -> Callable[[Any], Any]:
    return lambda x: function(x, *args)


@explaining("scipy.optimize.fixed_point")
def fixed_point(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    xtol: float = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
    *,
    linear_solver: str | None = None,
) -> Any:
    """Find x = f(x): `scipy.optimize.fixed_point`, with derivatives, of trees.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns the structure of `x`.
    x0 : array, number, Tensor, or dicts, lists, tuples, dataclasses of them
        The start of the iteration.
    args : tuple
        Further arguments, with respect to which the fixed point is differentiable.
    xtol, maxiter, method
        As in SciPy.
    linear_solver : "dense", "gmres", "cg" or None, default None
        As for `chainrule.implicit_function`.

    Returns
    -------
    as `x0`
        The fixed point, differentiable with respect to everything that `func` depends on.

    Raises
    ------
    RuntimeError
        If it did not converge.
    ShapeError, AutogradError
        If the result of `func` has another number of elements, or doesn't depend on x.
    LinAlgError
        When a derivative is computed, if the fixed point is not isolated.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def damped(c):
    ...     return cr.scipy.optimize.fixed_point(lambda x: np.cos(c * x), 0.5)
    >>> round(float(damped(1.0)), 6), round(cr.grad(damped)(1.0), 6)
    (0.739085, -0.297474)
    """
    title, args = "fixed_point", as_args(args)
    unknowns = Unknowns(title, x0)
    system = System(title, func, unknowns, args)

    def numbers() -> list[Any]:
        function = system.of_numbers(without_history(args))
        start = unknowns.start()
        found = OPTIMIZE.fixed_point(function, start, (), xtol, maxiter, method)
        return [np.array(found, start.dtype)]

    (value,) = with_numbers(f"scipy.optimize.{title}", numbers)
    return system.solution(value, linear_solver, lambda x: x - system.recorded(x))
