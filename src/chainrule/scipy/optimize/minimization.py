"""Minima of functions: `minimize`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.conversions import DifferentiatedError
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.implicit.examples import with_numbers
from chainrule.implicit.inverse import inverse_maker
from chainrule.implicit.solutions import differentiable, numbers_of, without_history
from chainrule.interop.operands import arrays_of
from chainrule.ops import cat, where
from chainrule.scipy.error_texts import explaining
from chainrule.scipy.optimize.bounds import (
    BoundVectors,
    Constraint,
    bounds_of_pairs,
    constraints_of,
    for_scipy,
    held_by_bounds,
    multipliers,
    replaced,
    stacked,
    warn_of_doubtful,
)
from chainrule.scipy.optimize.unknowns import (
    OPTIMIZE,
    Unknowns,
    as_args,
    check_first,
    joined,
    recording,
    scalar,
    warn_of_failure,
    without_rules,
)
from chainrule.transforms import grad, hessian, hvp, value_and_grad

__all__ = ["minimize"]

WITHOUT_GRADIENT = {"nelder-mead", "powell", "cobyla", "cobyqa"}
WITH_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
WITH_HESSIAN = {"dogleg", "trust-exact"}


@explaining("scipy.optimize.minimize")
def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Any = None,
    options: dict[str, Any] | None = None,
    *,
    linear_solver: str | None = None,
) -> Any:
    """Minimise a function: `scipy.optimize.minimize`, with derivatives, of trees.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns one real number.
    x0 : array, number, Tensor, or dicts, lists, tuples, dataclasses of them
        The start, whose structure `x` has. A list of numbers is an array, as in SciPy.
    args : tuple
        Further arguments, with respect to which the minimum is differentiable.
    method, tol, options
        As in SciPy.
    jac : callable, bool, str or None, default None
        The gradient, ``jac(x, *args)`` in the structure of `x`; True if `fun` returns the pair of
        value and gradient, such as ``cr.compile(cr.value_and_grad(f))``; None for chainrule's; a
        name of SciPy's for differences.
    hess, hessp : callable, or what else SciPy takes, default None
        The Hessian matrix, and its product with a vector ``hessp(x, p, *args)``: None for
        chainrule's, where the method uses one of them.
    bounds : pairs (low, high), or `Bounds`, optional
        A pair for each unknown, None for no bound; for a tree, the structure of `x0` with a pair
        for each leaf. Bounds may be tensors, by which `x` is differentiable.
    constraints : dicts, `LinearConstraint`, `NonlinearConstraint`, or a list of them
        As in SciPy; functions get the structure of `x0`, and derivatives are chainrule's.
    callback : callable, optional
        As in SciPy: gets x in the structure of `x0`.
    linear_solver : "dense", "gmres", "cg" or None, default None
        As for `chainrule.implicit_function`; the matrix is the Hessian.

    Returns
    -------
    scipy.optimize.OptimizeResult
        Its `x`, in the structure of `x0`, and its `fun` are differentiable with respect to
        everything that the function depends on: `args`, tensors that it closes over, bounds. The
        derivative of `jac`, `hess`, `hess_inv` and `multipliers` is an error, and the other fields
        are SciPy's numbers. There is no derivative with respect to the start.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError, AutogradError
        If the function doesn't return one real number, doesn't depend on the unknowns, or is nan
        at x0, or bounds and constraints don't fit.
    LinAlgError
        When a derivative is computed, if the Hessian is singular: the minimum is not isolated.

    Warns
    -----
    UserWarning
        If the result has derivatives, and the method did not converge, or the solution touches a
        bound or constraint that doesn't push it, so that the derivative is one-sided.

    Notes
    -----
    The derivative is that of the conditions of Karush, Kuhn and Tucker: at a minimum the gradient
    of the Lagrangian is zero; unknowns that a bound holds move with the bound. See
    `chainrule.implicit_function`; a second derivative needs third derivatives of `fun`.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def loss(p, y):
    ...     return ((p["mean"] - y) ** 2).sum() + p["offset"] ** 2
    >>> y = np.array([1.0, 2.0, 6.0])
    >>> fit = cr.scipy.optimize.minimize(loss, {"mean": 0.0, "offset": 1.0}, y)
    >>> round(fit.x["mean"], 4)
    3.0
    >>> start = {"mean": 0.0, "offset": 1.0}
    >>> cr.grad(lambda y: cr.scipy.optimize.minimize(loss, start, y).x["mean"])(y).round(4)
    array([0.3333, 0.3333, 0.3333])
    """
    if isinstance(fun, dict):
        raise ArgumentTypeError(
            "minimize: expected a function, got a dict, such as Objective.problem() returns: its "
            "entries are arguments, minimize(**problem, x0=start)"
        )
    problem = Problem(fun, x0, args, jac is True, bounds, constraints)
    derivatives = (jac, hess, hessp)
    results: list[Any] = []

    def numbers() -> list[Any]:
        run = Run(problem, method, derivatives)
        settings = {"tol": tol, "callback": run.callback(callback), "options": options}
        results.append(run.minimize(settings))
        return run.solution(results[-1])

    value, *held = with_numbers("scipy.optimize.minimize", numbers)
    return problem.finish(value, held, results, linear_solver)


class Problem:
    """A minimisation: the objective, the unknowns, bounds and constraints."""

    def __init__(
        self, fun: Any, x0: Any, args: Any, is_pair: bool, bounds: Any, constraints: Any
    ) -> None:
        self.title = "minimize"
        self.fun, self.args, self.is_pair = fun, as_args(args), is_pair
        self.unknowns = Unknowns(self.title, x0)
        self.bounds: BoundVectors | None = bounds_of_pairs(self.unknowns, bounds)
        self.constraints: list[Constraint] = constraints_of(self.unknowns, constraints)

    def objective(self, x: Tensor, args: Any) -> Any:
        """Return the objective at a vector, recorded."""
        found = self.fun(self.unknowns.recorded(x), *args)
        return scalar(self.title, self.fun, found[0] if self.is_pair else found)

    def equation(self, vector: Tensor, held: Any) -> Tensor:
        """Return what is zero at the minimum, of the unknowns and the multipliers."""
        n = self.unknowns.size
        if not self.constraints:
            slope = grad(lambda x: self.objective(x, self.args))(vector)
            return replaced(vector, held, self.bounds, slope)
        x, factors = vector[:n], vector[n:]

        def lagrangian(x: Tensor) -> Any:
            return self.objective(x, self.args) - (stacked(self.constraints, x) * factors).sum()

        slope = replaced(x, held[:-1], self.bounds, grad(lagrangian)(x))
        mask = make(held[-1], None)
        return cat([slope, where(mask, stacked(self.constraints, x), factors)])

    def finish(self, value: Any, held: Any, results: list[Any], linear_solver: Any) -> Any:
        """Return SciPy's result with the solution as a tree, and its derivatives."""
        unknowns, title = self.unknowns, self.title
        *masks, doubtful = held
        equation = functools.partial(self.equation, held=masks)
        maker = inverse_maker(title, linear_solver, value.shape[0])
        settings = (unknowns.layout, unknowns.as_arrays)

        def unrecorded() -> Any:
            return self.fun(unknowns.plain(results[0].x), *self.args)

        found = differentiable(title, equation, value, maker, *settings, unrecorded)
        if found is unknowns.layout.tree:
            results[0].x = unknowns.result(results[0].x)
            return results[0]
        result = results[0] if len(results) == 1 else joined(results)
        result.x, result.fun = found, self.value(found)
        mend = "cr.grad(fun)(result.x) and cr.hessian(fun)(result.x) have one"
        without_rules(result, unknowns.as_arrays, mend)
        warn_of_failure(title, results, found)
        warn_of_doubtful(title, doubtful, found)
        return result

    def value(self, found: Any) -> Any:
        """Return the objective at the solution."""
        value = self.fun(found, *self.args)
        return value[0] if self.is_pair else value


class Run:
    """One call of SciPy's function: the problem of numbers, for one example."""

    def __init__(self, problem: Problem, method: Any, derivatives: tuple[Any, Any, Any]) -> None:
        self.problem, self.unknowns = problem, problem.unknowns
        self.method = method
        self.name = method.lower() if isinstance(method, str) else ""
        self.jac, self.hess, self.hessp = map(recording, derivatives)
        self.fun = recording(problem.fun) if problem.is_pair else problem.fun
        self.args = without_history(problem.args)
        self.calls = 0
        self._kept: tuple[Any, Any] | None = None  # a vector, and the gradient there

    # --- functions of vectors ---

    def recorded(self, x: Tensor) -> Any:
        """Return the objective at a tensor."""
        return self.problem.objective(x, self.args)

    def value(self, v: Any) -> Any:
        """Return the objective alone."""
        found = self.fun(self.unknowns.plain(v), *self.args)
        return self._checked(found[0] if self.problem.is_pair else found)

    def value_and_keep(self, v: Any) -> Any:
        """Return the objective; keep the gradient, for which SciPy asks next."""
        if self.problem.is_pair:
            found, slope = self.fun(self.unknowns.plain(v), *self.args)
            slope = self.unknowns.vector("the gradient", slope)
        else:
            found, gradient = value_and_grad(self.recorded)(make(v.copy(), None))
            slope = gradient.numpy()
        self._kept = v.copy(), slope
        return self._checked(found)

    def gradient(self, v: Any) -> Any:
        """Return the gradient as the user computes it, or chainrule."""
        if callable(self.jac):
            found = self.jac(self.unknowns.plain(v), *self.args)
            return self.unknowns.vector("the result of jac", found)
        if self._kept is None or not (self._kept[0] == v).all():
            self.value_and_keep(v)
        assert self._kept is not None
        return self._kept[1]

    def hessian(self, v: Any) -> Any:
        """Return the Hessian matrix."""
        if not callable(self.hess):
            return hessian(self.recorded)(make(v.copy(), None)).numpy()
        found = np.asarray(arrays_of(self.hess(self.unknowns.plain(v), *self.args)), float)
        n = self.unknowns.size
        if found.size != n * n:
            raise ArgumentError(
                f"minimize: hess must return a matrix of {n} rows and columns, got the shape "
                f"{list(found.shape)}: leave it out, and chainrule computes it"
            )
        return found.reshape(n, n)

    def product(self, v: Any, p: Any) -> Any:
        """Return the Hessian times a vector."""
        if callable(self.hessp):
            found = self.hessp(self.unknowns.plain(v), self.unknowns.plain(p), *self.args)
            return self.unknowns.vector("the result of hessp", found)
        return hvp(self.recorded, make(v.copy(), None), make(p.copy(), None)).numpy()

    def _checked(self, value: Any) -> Any:
        if value.__class__ is not float and value.__class__ is not np.float64:
            value = scalar(self.problem.title, self.problem.fun, value)
        found = float(numbers_of(value) if isinstance(value, Tensor) else value)
        if not self.calls:
            check_first(self.problem.title, self.problem.fun, found, self.args)
        self.calls += 1
        return found

    # --- SciPy's function ---

    def minimize(self, settings: dict[str, Any]) -> Any:
        """Call SciPy's function."""
        bounds, start = self.problem.bounds, self.unknowns.start()
        if bounds is not None:
            settings["bounds"] = OPTIMIZE.Bounds(*bounds.numbers())
        if self.problem.constraints:
            settings["constraints"] = for_scipy(self.problem.constraints)
        settings |= self._second_derivatives()
        if self.name in WITHOUT_GRADIENT:
            return OPTIMIZE.minimize(self.value, start, method=self.method, **settings)
        own = self.jac is None or self.jac is True
        settings["jac"] = self.gradient if own or callable(self.jac) else self.jac
        function = self.value_and_keep if own else self.value
        return OPTIMIZE.minimize(function, start, method=self.method, **settings)

    def _second_derivatives(self) -> dict[str, Any]:
        """Return what the method uses of second derivatives: the user's, else chainrule's."""
        found: dict[str, Any] = {}
        if self.hess is not None:
            found["hess"] = self.hessian if callable(self.hess) else self.hess
        elif self.name in WITH_HESSIAN:
            found["hess"] = self.hessian
        if self.hessp is not None or (self.hess is None and self.name in WITH_PRODUCTS):
            found["hessp"] = self.product
        return found

    def callback(self, given: Any) -> Any:
        """Return a user's callback as one of vectors."""
        if given is None:
            return None
        shown_as = self.unknowns.result
        if set(inspect.signature(given).parameters) == {"intermediate_result"}:

            def of_result(intermediate_result: Any) -> Any:
                shown = OPTIMIZE.OptimizeResult(intermediate_result)
                shown.x = shown_as(shown.x.copy())
                return given(intermediate_result=shown)

            return of_result
        return lambda v, *rest: given(shown_as(v.copy()), *rest)

    def solution(self, result: Any) -> list[Any]:
        """Return the unknowns and the multipliers; masks of what holds them, and of doubts."""
        problem, x = self.problem, np.array(result.x, float)
        doubtful = np.zeros(x.shape, bool)
        if problem.bounds is None and not problem.constraints:
            return [x, doubtful]
        try:
            return self._held(x)
        except DifferentiatedError:  # of foreign code, whose solution has no derivative
            return [x, doubtful]

    def _held(self, x: Any) -> list[Any]:
        problem = self.problem
        held, doubtful = [], np.zeros(x.shape, bool)
        slope = numbers_of(grad(self.recorded)(make(x.copy(), None)))
        factors = np.zeros(0)
        if problem.constraints:
            # Bounds that hold take their part of the gradient from the constraints.
            factors, active, uncertain, slope = multipliers(
                problem.constraints, x, slope, problem.bounds
            )
        if problem.bounds is not None:
            low, high, doubtful = held_by_bounds(x, slope, problem.bounds.numbers())
            held = [low, high]
        if problem.constraints:
            held.append(active)
            doubtful = np.concatenate([doubtful, uncertain])
        return [np.concatenate([x, factors]), *held, doubtful]
