"""Minima of sums of squares: `least_squares`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import ArgumentError
from chainrule.implicit.examples import with_numbers
from chainrule.implicit.inverse import inverse_maker
from chainrule.implicit.solutions import differentiable, numbers_of, without_history
from chainrule.implicit.vectors import vector_of
from chainrule.interop.operands import arrays_of
from chainrule.numpy.array_class import as_ndarrays
from chainrule.ops import arctan, log1p, sqrt, where
from chainrule.scipy.error_texts import explaining
from chainrule.scipy.optimize.bounds import (
    BoundVectors,
    bounds_of_ends,
    held_by_bounds,
    replaced,
    warn_of_doubtful,
)
from chainrule.scipy.optimize.unknowns import (
    OPTIMIZE,
    Unknowns,
    as_args,
    check_first,
    check_recorded,
    joined,
    recording,
    warn_of_failure,
    without_rules,
)
from chainrule.transforms import grad, jacobian

__all__ = ["least_squares"]

LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (sqrt(1 + z) - 1),
    "huber": lambda z: where(z <= 1, z, 2 * sqrt(where(z <= 1, 1.0, z)) - 1),
    "cauchy": log1p,
    "arctan": arctan,
}
"""The functions ρ(z) of squared residuals under SciPy's names."""


@explaining("scipy.optimize.least_squares")
def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    *,
    loss: Any = "linear",
    f_scale: float = 1.0,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    linear_solver: str | None = None,
    **settings: Any,
) -> Any:
    """Minimise a sum of squares: `scipy.optimize.least_squares`, with derivatives, of trees.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args, **kwargs)`` returns the residuals, in any structure of real numbers.
    x0 : array, number, Tensor, or dicts, lists, tuples, dataclasses of them
        The start, whose structure `x` has. A list of numbers is an array, as in SciPy.
    jac : callable, str or None, default None
        The Jacobian matrix, ``jac(x, *args, **kwargs)``, of a row for each residual; None for
        chainrule's; a name of SciPy's for differences.
    bounds : (low, high), or `Bounds`
        Numbers, arrays, or the structure of `x0`. They may be tensors, by which `x` is
        differentiable.
    method, f_scale
        As in SciPy.
    loss : str or callable, default "linear"
        As in SciPy: "linear", "soft_l1", "huber", "cauchy", "arctan", or a function of the squared
        residuals that returns ρ and its two derivatives.
    args, kwargs
        Further arguments, with respect to which the solution is differentiable.
    linear_solver : "dense", "gmres", "cg" or None, default None
        As for `chainrule.implicit_function`; the matrix is the Hessian of the cost.
    **settings
        The other arguments of SciPy's function: `ftol`, `xtol`, `gtol`, `x_scale`, `max_nfev` and
        so on.

    Returns
    -------
    scipy.optimize.OptimizeResult
        Its `x`, in the structure of `x0`, its residuals `fun` and its `cost` are differentiable
        with respect to everything that `fun` depends on. The derivative of `jac` and `grad` is an
        error, and the other fields are SciPy's numbers. There is no derivative with respect to
        the start.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError, AutogradError
        If x0 or the residuals there are nan, the residuals don't depend on the unknowns, or bounds
        don't fit.
    LinAlgError
        When a derivative is computed, if the Hessian of the cost is singular: the data don't
        determine all unknowns.

    Warns
    -----
    UserWarning
        As for `minimize`.

    Notes
    -----
    The derivative is that of the minimum of the cost, exact also where residuals are large: its
    matrix is the Hessian, not Gauss and Newton's approximation.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> def misfit(p, y):
    ...     return p["height"] * np.exp(-p["rate"] * t) - y
    >>> def rate(y):
    ...     start = {"height": 1.0, "rate": 1.0}
    ...     return cr.scipy.optimize.least_squares(misfit, start, args=(y,)).x["rate"]
    >>> data = 2.0 * np.exp(-3.0 * t)
    >>> round(rate(data), 4), cr.grad(rate)(data)[:3].round(3)
    (3.0, array([0.743, 0.395, 0.134]))
    """
    problem = _Problem(fun, x0, (as_args(args), kwargs or {}), bounds, loss, f_scale)
    unknowns, title = problem.unknowns, problem.title
    results: list[Any] = []

    def numbers() -> list[Any]:
        given = without_history(problem.given)
        found = OPTIMIZE.least_squares(
            problem.of_numbers(given),
            unknowns.start(),
            problem.jacobian(jac, given),
            problem.bounds.numbers(),
            method,
            loss=loss,
            f_scale=f_scale,
            **settings,
        )
        results.append(found)
        x = np.array(found.x, float)
        return [x, *problem.held(x, given)]

    value, *held, doubtful = with_numbers(f"scipy.optimize.{title}", numbers)

    def equation(x: Tensor) -> Tensor:
        return replaced(x, held, problem.bounds if held else None, grad(problem.cost)(x))

    def unrecorded() -> Any:
        args, kwargs = problem.given
        return fun(unknowns.plain(value), *args, **kwargs)

    maker = inverse_maker(title, linear_solver, unknowns.size)
    form = (unknowns.layout, unknowns.as_arrays)
    found = differentiable(title, equation, value, maker, *form, unrecorded)
    if found is unknowns.layout.tree:
        results[0].x = unknowns.result(results[0].x)
        return results[0]
    result = results[0] if len(results) == 1 else joined(results)
    residuals = problem.residuals(vector_of(title, found), problem.given)
    recorded = (residuals, problem.cost_of(residuals))
    result.x = found
    result.fun, result.cost = as_ndarrays(recorded) if unknowns.as_arrays else recorded
    without_rules(
        result,
        unknowns.as_arrays,
        "cr.jacobian(fun)(result.x) is the Jacobian, times result.fun it is the gradient",
    )
    warn_of_failure(title, results, found)
    warn_of_doubtful(title, doubtful, found)
    return result


class _Problem:
    """A sum of squares: the residuals, the unknowns, bounds and the loss."""

    title = "least_squares"

    def __init__(
        self, fun: Any, x0: Any, given: Any, bounds: Any, loss: Any, f_scale: float
    ) -> None:
        self.fun, self.given = fun, given
        self.unknowns = Unknowns(self.title, x0)
        ends = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
        if not isinstance(ends, tuple | list) or len(ends) != 2:
            raise ArgumentError(
                "least_squares: bounds are a pair of the lowest and the highest values, each a "
                f"number, an array or the structure of x0: got {bounds!r}"
            )
        self.bounds: BoundVectors = bounds_of_ends(self.unknowns, *ends)
        if not callable(loss) and loss not in LOSSES:
            raise ArgumentError(
                f"least_squares: loss is one of {', '.join(LOSSES)} or a function, got {loss!r}"
            )
        self.loss, self.f_scale = loss, f_scale

    def residuals(self, x: Tensor, given: Any) -> Tensor:
        """Return the residuals at a vector, recorded."""
        args, kwargs = given
        vector = vector_of(
            f"{self.title}: the residuals", self.fun(self.unknowns.recorded(x), *args, **kwargs)
        )
        if x.requires_grad:
            check_recorded(self.title, self.fun, vector)
        return vector

    def cost(self, x: Tensor, given: Any = None) -> Tensor:
        """Return half the sum of squares, or of what the loss makes of them."""
        return self.cost_of(self.residuals(x, given or self.given))

    def cost_of(self, f: Tensor) -> Tensor:
        """Return the cost of residuals."""
        z = (f / self.f_scale) ** 2
        rho = self.loss(z)[0] if callable(self.loss) else LOSSES[self.loss](z)
        cost: Tensor = 0.5 * self.f_scale**2 * rho.sum()
        return cost

    def of_numbers(self, given: Any) -> Callable[[Any], Any]:
        """Return the residuals as a function of a vector of numbers."""
        args, kwargs = given
        calls = 0

        def function(v: Any) -> Any:
            nonlocal calls
            result = self.fun(self.unknowns.plain(v), *args, **kwargs)
            found = numbers_of(vector_of(f"{self.title}: the residuals", result))
            if not calls:
                check_first(self.title, self.fun, found, given)
            calls += 1
            return found

        return function

    def jacobian(self, jac: Any, given: Any) -> Any:
        """Return the Jacobian as SciPy takes it."""
        args, kwargs = given
        if isinstance(jac, str):
            return jac
        if callable(jac):
            rule = recording(jac)
            return lambda v: _matrix(rule(self.unknowns.plain(v), *args, **kwargs), len(v))
        derivative = jacobian(lambda x: self.residuals(x, given))
        return lambda v: numbers_of(derivative(make(v.copy(), None)))

    def held(self, x: Any, given: Any) -> list[Any]:
        """Return masks of the unknowns that the bounds hold, if there are any, and of doubts."""
        ends = self.bounds.numbers()
        if not any(np.isfinite(end).any() for end in ends):
            return [np.zeros(0, bool)]
        slope = numbers_of(grad(lambda x: self.cost(x, given))(make(x.copy(), None)))
        return list(held_by_bounds(x, slope, ends))


def _matrix(given: Any, columns: int) -> Any:
    if hasattr(given, "tocsr"):  # a sparse matrix
        return given
    found = np.asarray(arrays_of(given), float)
    if found.ndim != 2 or found.shape[1] != columns:
        raise ArgumentError(
            f"least_squares: jac must return a matrix of {columns} columns, got the shape "
            f"{list(found.shape)}: leave it out, and chainrule computes it"
        )
    return found
