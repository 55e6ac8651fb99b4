"""Local approximation of functions: Taylor polynomials, their remainders, tables and plots."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from chainrule import plotting, pytree
from chainrule.arguments import tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_array
from chainrule.creation import ones_like, zeros_like
from chainrule.errors import ArgumentError, ArgumentTypeError, MissingRuleError, ShapeError
from chainrule.numpy.array_class import as_ndarrays, behaves_as_array
from chainrule.ops import einsum, stack
from chainrule.transforms.arguments import check_callable, primal, recorded_call, title_of
from chainrule.transforms.jacobians import jacobian
from chainrule.transforms.kinds import common_kind, in_kind, values_of

__all__ = ["Table", "TaylorPolynomial", "taylor"]


def taylor(function: Callable[..., Any], x0: Any, order: int) -> TaylorPolynomial:
    """Return the Taylor polynomial of a function at a point: its local approximation.

    Parameters
    ----------
    function : callable
        Takes a point; returns a tensor, an array or a number.
    x0 : float, or Tensor or array of any shape
        The point. A number or an array without dimensions is one variable; the elements of another
        array are several.
    order : int
        The degree: 0 is the value, 1 the linear approximation. Any for one variable, at most 2 for
        several.

    Returns
    -------
    TaylorPolynomial
        A function of x, with the attributes `derivatives`, `remainder`, `table`, `plot` and
        `order_of_convergence`.

    Raises
    ------
    ArgumentError
        If `order` is negative, or above 2 for several variables.
    TypeError
        If `x0` is a container, or `function` returns one.
    DTypeError
        If `x0` is of integers.

    Notes
    -----
    The derivatives by one variable are computed by Taylor mode: power series propagated through one
    recorded call. The cost grows about with the square of the order; it doubles with each order
    where a derivative needs the function itself again, twice or of twice the size (`matrix_exp`,
    elliptic integrals, incomplete beta functions), and for custom functions without a jvp, which
    have nested reverse mode. Derivatives are differentiable themselves, by `x0` and by what the
    function closes over.

    References
    ----------
    A. Griewank, A. Walther, Evaluating Derivatives, SIAM, 2008, chapter 13.

    Examples
    --------
    >>> import chainrule as cr
    >>> p = taylor(cr.exp, 0.0, 3)
    >>> p.derivatives
    (1.0, 1.0, 1.0, 1.0)
    >>> round(p(0.5), 6), round(p.remainder(0.5), 6)
    (1.645833, 0.002888)
    >>> round(p.order_of_convergence(), 1)
    4.0

    Several variables have a gradient and a Hessian:

    >>> q = taylor(lambda x: x[0] ** 2 * x[1], cr.tensor([1.0, 2.0]), 2)
    >>> q.derivatives[1]
    tensor([4., 1.])
    >>> q(cr.tensor([1.1, 2.0]))
    tensor(2.4200)
    """
    return TaylorPolynomial(function, x0, order)


class TaylorPolynomial:
    """The Taylor polynomial of a function at a point; `taylor` makes it.

    Attributes
    ----------
    function : callable
        The function that it approximates.
    x0 : as given
        The point.
    order : int
        The degree.
    derivatives : tuple
        The value and the derivatives of the orders 1 to `order` at `x0`, of the kind of `x0` as
        for `value_and_grad`: of the shape of the function's result, followed for several variables
        by that of `x0` once for each order.
    """

    def __init__(self, function: Callable[..., Any], x0: Any, order: int) -> None:
        if not isinstance(order, int | np.integer) or isinstance(order, bool) or order < 0:
            raise ArgumentError(f"taylor: order is an integer from 0 on, but got {order!r}")
        if pytree.children(x0) is not None:
            raise ArgumentTypeError(
                f"taylor: x0 is a number, a tensor or an array, but got {pytree.describe(x0)}: "
                "vector, unravel = cr.tree.ravel(x0) makes one vector of a tree"
            )
        check_callable("taylor", function)
        self.function, self.x0, self.order = function, x0, int(order)
        self._point = primal("taylor", "", x0, copy=True)
        if self._point.ndim and order > 2:
            raise ArgumentError(
                f"taylor: order is at most 2 for {self._point.numel()} variables, but got {order}: "
                f"for more, go along a line, cr.taylor(lambda t: f(x0 + t * v), 0.0, {order})"
            )
        terms = self._of_one() if self._point.ndim == 0 else self._of_several()
        self.derivatives: tuple[Any, ...] = tuple(terms)
        self._terms = [tensor_of(values_of(term)) for term in terms]

    def _of_one(self) -> list[Any]:
        """Return the derivatives by one variable."""
        call = recorded_call("taylor", self.function, [self._given()])
        value = call.value()
        try:
            coefficients = call.taylor([ones_like(self._point)], self.order)
        except MissingRuleError:
            return self._by_reverse_mode()
        found = [_checked(self.function, value)]
        for k in range(1, self.order + 1):
            c = coefficients[0][k - 1] if coefficients else None
            found.append(zeros_like(found[0]) if c is None else c * float(math.factorial(k)))
        return [in_kind(call.kind, term) for term in found]

    def _by_reverse_mode(self) -> list[Any]:
        """Return the derivatives by reverse mode, nested, which needs no rules for forward mode."""
        found, derivative = [self._value(self._given())], self.function
        for _ in range(self.order):
            derivative = jacobian(derivative, mode="reverse")
            found.append(derivative(self._given()))
        return found

    def _of_several(self) -> list[Any]:
        """Return the value, the Jacobian and its Jacobian."""
        first = jacobian(self.function, has_aux=False)
        functions = [self._value, first, jacobian(first)][: self.order + 1]
        return [function(self._given()) for function in functions]

    def _given(self) -> Any:
        """Return the point as it was, also if its memory has been written to since."""
        if isinstance(self.x0, Tensor) or not is_array(self.x0):
            return self.x0
        return self._point.numpy().copy()

    def _value(self, x: Any) -> Any:
        """Return the value of the function at a point, in the kind of the point."""
        call = recorded_call("taylor", self.function, [x])
        _checked(self.function, call.result)
        return call.value_in_kind()

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"<Taylor polynomial of order {self.order} of {name} at {self.x0}>"

    # --- values ---

    def __call__(self, x: Any) -> Any:
        """Return the value of the polynomial at a point, or at each of several.

        Parameters
        ----------
        x : float, or Tensor or array of shape (..., *x0.shape)
            Points.

        Returns
        -------
        float, array or Tensor, shape (..., *shape of the function's result)
            A number or an array if both `x` and `x0` are, else a Tensor.
        """
        return self._in_kind(x, self._at(self._points(x)))

    def remainder(self, xs: Any) -> Any:
        """Return the function minus the polynomial at a point, or at each of several.

        Parameters
        ----------
        xs : float, or Tensor or array of shape (..., *x0.shape)
            Points. The function is called at each of them.

        Returns
        -------
        float, array or Tensor, shape (..., *shape of the function's result)
            Of the kinds of `x0` and `xs`, as the polynomial itself.
        """
        points = self._points(xs)
        return self._in_kind(xs, self._true(points) - self._at(points))

    def _in_kind(self, x: Any, values: Tensor) -> Any:
        """Return values at points in the kind of the points and of `x0`."""
        like = x if isinstance(x, Tensor | np.generic) else np.float64(0) if np.ndim(x) else 0.0
        return in_kind(common_kind([self.x0, like]), values)

    def _points(self, x: Any) -> Tensor:
        """Return points as a tensor, numbers in the precision of `x0`."""
        given = x if isinstance(x, Tensor) else np.asarray(x)
        points = tensor_of(given)
        if points.dtype.kind not in "fc" or isinstance(x, float | complex | list | tuple):
            points = points.to(self._point.dtype)
        shape = self._point.shape
        if points.shape[points.ndim - len(shape) :] != shape:
            raise ShapeError(
                f"{self!r}: points have the shape (..., {', '.join(map(str, shape))}), the last "
                f"dimensions those of x0, but got {list(points.shape)}"
            )
        return points

    def _at(self, points: Tensor) -> Tensor:
        """Return the values of the polynomial."""
        steps, shape, variables = points - self._point, self._terms[0].shape, self._point.ndim
        if variables == 0:
            steps = steps.reshape((*points.shape, *(1 for _ in shape)))
            total = self._terms[-1] / float(math.factorial(self.order))
            for k in reversed(range(self.order)):  # Horner
                total = total * steps + self._terms[k] / float(math.factorial(k))
            return total if self.order else total.expand(*points.shape, *shape)
        before = points.shape[: points.ndim - variables]
        count, n = self._terms[0].numel(), self._point.numel()
        flat = steps.reshape((-1, n))
        total = self._terms[0].reshape((1, count)).expand(flat.shape[0], count)
        if self.order > 0:
            total = total + flat @ self._terms[1].reshape((count, n)).mT
        if self.order > 1:
            hessian = self._terms[2].reshape((count, n, n))
            total = total + 0.5 * einsum("pi,mij,pj->pm", flat, hessian, flat)
        return total.reshape((*before, *shape))

    def _true(self, points: Tensor) -> Tensor:
        """Return the values of the function at points, of which each is one call."""
        before = points.shape[: points.ndim - self._point.ndim]
        as_array = behaves_as_array(self.x0)
        values = []
        for point in points.reshape((math.prod(before), *self._point.shape)):
            given = as_ndarrays(point.clone()) if as_array else point
            values.append(tensor_of(values_of(self.function(given))))
        shape = (*before, *self._terms[0].shape)
        if not values:
            return self._terms[0].new_zeros(shape)
        return stack(values).reshape(shape)

    # --- tables and plots ---

    def table(self, xs: Any) -> Any:
        """Return a table of the function and the polynomial, of one variable.

        Parameters
        ----------
        xs : Tensor, array or list, shape (n,)
            Points.

        Returns
        -------
        pandas.DataFrame, or Table where pandas is not installed
            Columns ``x``, ``y_true`` and ``y_approx``, with a row for each point.

        Examples
        --------
        >>> import chainrule as cr
        >>> table = cr.taylor(lambda x: x**2, 2.0, 1).table([1.0, 2.0, 3.0])
        >>> list(table["y_approx"])
        [0.0, 4.0, 8.0]
        """
        points = self._on_a_line("table", xs)
        columns = {"x": points, "y_true": self._true(points), "y_approx": self._at(points)}
        arrays = {name: column.detach().numpy() for name, column in columns.items()}
        try:
            import pandas
        except ImportError:
            return Table(arrays)
        return pandas.DataFrame(arrays)

    def plot(self, xs: Any = None, *, ax: Any = None) -> Any:
        """Plot the function and the polynomial, of one variable.

        Parameters
        ----------
        xs : Tensor, array or list, shape (n,), optional
            Points in order; by default 200 within 2 of `x0`.
        ax : matplotlib Axes, optional
            Axes to draw into; default: a new figure.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        if xs is None and self._point.ndim == 0 and self._point.dtype.kind != "c":
            xs = self._point.item() + np.linspace(-2, 2, 200)
        points = self._on_a_line("plot", xs)
        name = getattr(self.function, "__name__", "f")
        return plotting.linear_approximation(
            points.detach(),
            self._true(points).detach(),
            self._at(points).detach(),
            at=self._point.item(),
            label="f" if name == "<lambda>" else name,
            order=self.order,
            ax=ax,
        )

    def _on_a_line(self, title: str, xs: Any) -> Tensor:
        """Return the points of a table or plot; raise unless they are real numbers, as values."""
        if self._point.ndim or self._terms[0].ndim or "c" in self._point.dtype.kind:
            raise ArgumentError(
                f"{title}: of a real function of one variable that returns one number, but "
                f"{title_of(self.function)} has {self._point.numel()} variables of "
                f"{self._point.dtype} and returns {self._terms[0].numel()} numbers: go along a "
                f"line, cr.taylor(lambda t: f(x0 + t * v)[i], 0.0, {self.order})"
            )
        points = self._points(xs)
        if points.ndim != 1:
            raise ShapeError(f"{title}: xs has one dimension, but got {list(points.shape)}")
        return points

    # --- the remainder as a test ---

    def order_of_convergence(self, direction: Any = None) -> float:
        """Return the power of the distance h with which the remainder vanishes.

        It is at least ``order + 1`` if the derivatives are right, and the order of the first wrong
        one if one is not: a test of derivatives that needs no differences to be subtracted from
        them.

        Parameters
        ----------
        direction : Tensor or array of the shape of `x0`, optional
            The direction of the line on which points approach `x0`; by default 1 for one variable,
            and a random but fixed one for several.

        Returns
        -------
        float
            The slope of the logarithm of the remainder over that of h, at the smallest distances
            where it is not yet rounding; infinity if it is rounding everywhere, as of a polynomial.

        Raises
        ------
        ArgumentError
            If the value or a derivative at `x0` is infinite or nan.

        Examples
        --------
        >>> import chainrule as cr
        >>> round(cr.taylor(lambda x: cr.sin(x) * x, 0.5, 2).order_of_convergence(), 1)
        3.0
        """
        point, dtype = self._point.detach(), self._point.dtype
        for k, term in enumerate(self._terms):
            if not bool(term.detach().isfinite().all()):
                raise ArgumentError(
                    f"order_of_convergence: derivative {k} of {title_of(self.function)} at "
                    f"{self.x0} is not finite: choose a point where the function is smooth"
                )
        if direction is None:
            direction = np.random.default_rng(0).normal(size=point.shape) if point.ndim else 1.0
        v = tensor_of(np.asarray(direction)).to(dtype).reshape(point.shape)
        v = v / float(abs(v).max())
        scale = max(1.0, float(abs(point).max()))
        sizes = [float(abs(term).detach().max()) for term in self._terms[:2]]
        floor = 1000 * float(np.finfo(dtype).eps) * (sizes[0] + scale * sum(sizes[1:]))
        found: list[tuple[float, float]] = []
        for i in range(_HALVINGS):
            h = 0.5 * scale * 2 ** (-i / 2)
            remainder = float(abs(tensor_of(values_of(self.remainder(point + h * v)))).max())
            if remainder <= floor:
                break
            if math.isfinite(remainder):
                found.append((math.log(h), math.log(remainder)))
        slopes = [(b - d) / (a - c) for (a, b), (c, d) in itertools.pairwise(found)]
        return float(np.median(slopes[-4:])) if slopes else math.inf


_HALVINGS = 100
"""Number of distances, each 1/√2 of the one before."""


def _checked(function: Any, result: Any) -> Tensor:
    """Return the result of a user's function as a tensor."""
    try:
        if pytree.children(result) is None:
            return tensor_of(values_of(result))
    except TypeError:
        pass
    raise ArgumentTypeError(
        f"taylor: expected {title_of(function)} to return a tensor, an array or a number, but got "
        f"{pytree.describe(result)}: take the polynomial of each part"
    )


class Table:
    """Columns of numbers by name, where pandas is not installed: ``table["x"]`` or ``table.x``."""

    def __init__(self, columns: dict[str, np.ndarray[Any, Any]]) -> None:
        self._columns = columns

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        return self._columns[name]

    def __getattr__(self, name: str) -> np.ndarray[Any, Any]:
        columns: dict[str, np.ndarray[Any, Any]] = vars(self).get("_columns", {})
        if name not in columns:
            raise AttributeError(f"the table has no column {name!r}")
        return columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __repr__(self) -> str:
        lines = ["".join(f"{name:>12}" for name in self._columns)]
        for row in zip(*self._columns.values(), strict=True):
            lines.append("".join(f"{value:12.6g}" for value in row))
        return "\n".join(lines)
