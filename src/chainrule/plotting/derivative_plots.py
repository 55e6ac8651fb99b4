"""Plots of functions and their derivatives: linear and Taylor approximations, Jacobians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.errors import ArgumentError
from chainrule.plotting.style import RED, Array, axes, ink, magnitudes, numbers, palette, tidy

__all__ = ["linear_approximation", "taylor_plot", "jacobian_spy"]

MAX_CELLS = 400
"""Rows and columns of a picture of a Jacobian, which has fewer if its axes are small."""


def linear_approximation(
    x: Any,
    y_true: Any,
    y_approx: Any,
    *,
    at: float,
    label: str = "f",
    order: int = 1,
    ax: Any = None,
) -> Any:
    """Plot a function and its linear approximation, or another one at a point.

    Parameters
    ----------
    x, y_true, y_approx : Tensor or array, shape (n,)
        Points, and the values of the function and of the line at these points.
    at : float
        The point of tangency.
    label : str, default "f"
        Label of the function.
    order : int, default 1
        Order of the approximation, for its label. The vertical axis fits the function; an
        approximation may leave it.
    ax : matplotlib Axes, optional
        Axes to draw into; default: a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule import plotting
    >>> x = cr.linspace(0, 2, 50)
    >>> ax = plotting.linear_approximation(x, x**2, 2 * x - 1, at=1.0, label="x²")
    >>> [line.get_label() for line in ax.get_lines()][:2]
    ['x²', 'its linear approximation at 1']
    """
    ax = axes(ax, (6.0, 3.6))
    colors = palette(ax)
    points, true, approximate = numbers(x), numbers(y_true), numbers(y_approx)
    ax.plot(points, true, color=colors[0], linewidth=2, label=label)
    kind = "linear approximation" if order == 1 else f"approximation of order {order}"
    ax.plot(points, approximate, color=colors[1], linewidth=2, label=f"its {kind} at {at:g}")
    ax.plot(at, np.interp(at, points, true), "o", color=colors[1], markersize=7)
    ax.set_xlabel("x")
    ax.set_xlim(points.min(), points.max())
    low, high = np.nanmin(true), np.nanmax(true)
    if order > 1 and np.isfinite(low) and low < high:
        ax.set_ylim(low - 0.4 * (high - low), high + 0.4 * (high - low))
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def taylor_plot(
    polynomial: Any, *, orders: Sequence[int] | None = None, xs: Any = None, ax: Any = None
) -> Any:
    """Plot a function of one variable and its Taylor polynomials of several orders.

    Parameters
    ----------
    polynomial : TaylorPolynomial
        That of the highest order, made by `chainrule.taylor`.
    orders : sequence of ints, optional
        The orders to draw; default: from 0 or 1 to that of `polynomial`, at most five.
    xs : Tensor or array, shape (n,), optional
        Points in order; default: 400 within 2 of the point.
    ax : matplotlib Axes, optional
        Axes to draw into; default: a new figure.

    Returns
    -------
    matplotlib Axes
        The vertical axis fits the function; polynomials may leave it.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ArgumentError
        If it is no Taylor polynomial of one real variable, or of a lower order.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule import plotting
    >>> ax = plotting.taylor_plot(cr.taylor(cr.sin, 0.0, 5), orders=(1, 3, 5))
    >>> [line.get_label() for line in ax.get_lines()][:3]
    ['sin', 'order 1', 'order 3']
    """
    center, terms = _point_and_derivatives(polynomial)
    orders = _orders(polynomial.order, orders)
    points = center + np.linspace(-2, 2, 400) if xs is None else numbers(xs).astype(float)
    if points.ndim != 1:
        raise ArgumentError(f"taylor_plot: xs has one dimension, got {list(points.shape)}")
    ax = axes(ax, (6.0, 3.6))
    colors = palette(ax)
    true = numbers(polynomial.function(points)).astype(float)
    name = getattr(polynomial.function, "__name__", "f").replace("<lambda>", "f")
    ax.plot(points, true, color=ink(ax), linewidth=3, label=name)
    total, drawn = np.zeros_like(points), 0
    for order in range(max(orders, default=-1) + 1):
        total = total + terms[order] / math.factorial(order) * (points - center) ** order
        if order in orders:
            color = colors[drawn % len(colors)]
            ax.plot(points, total, color=color, linewidth=1.6, label=f"order {order}")
            drawn += 1
    ax.plot(center, float(terms[0]), "o", color=ink(ax), markersize=7)
    low, high = np.nanmin(true), np.nanmax(true)
    if np.isfinite(low) and low < high:
        ax.set_ylim(low - 0.4 * (high - low), high + 0.4 * (high - low))
    ax.set_xlim(points.min(), points.max())
    ax.set_xlabel("x")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def _point_and_derivatives(polynomial: Any) -> tuple[float, list[Any]]:
    """Return where a Taylor polynomial is made, and its derivatives there; raise if it is none."""
    if not hasattr(polynomial, "derivatives") or not hasattr(polynomial, "order"):
        raise ArgumentError(
            "taylor_plot: expected what taylor() returns, got "
            f"{type(polynomial).__name__}: write taylor_plot(cr.taylor(f, x0, order))"
        )
    terms = [numbers(each) for each in polynomial.derivatives]
    at = numbers(polynomial.x0)
    if at.ndim or terms[0].ndim or any(each.dtype.kind == "c" for each in (at, *terms)):
        raise ArgumentError(
            "taylor_plot: of a real function of one variable that returns one number, but x0 has "
            f"the shape {list(at.shape)} and the value {list(terms[0].shape)}: go along a line, "
            "cr.taylor(lambda t: f(x0 + t * v), 0.0, order)"
        )
    return float(at), terms


def _orders(highest: int, orders: Sequence[int] | None) -> Sequence[int]:
    """Return the orders to draw of a polynomial, by default at most five."""
    if orders is None:
        steps = np.linspace(min(1, highest), highest, min(5, max(highest, 1)))
        return sorted(set(map(int, steps.round())))
    wrong = [order for order in orders if not 0 <= order <= highest]
    if wrong:
        raise ArgumentError(
            f"taylor_plot: order {wrong[0]} is not from 0 to {highest}, the order of the "
            "polynomial: make it with a higher one"
        )
    return orders


def jacobian_spy(jacobian: Any, *, output_ndim: int | None = None, ax: Any = None) -> Any:
    """Draw which entries of a Jacobian are not zero, and how large they are.

    Parameters
    ----------
    jacobian : Tensor or array, shape (*output, *input)
        As `chainrule.jacobian` returns it. More than two dimensions are flattened to two.
    output_ndim : int, optional
        How many of the dimensions are those of the output; default: half of them.
    ax : matplotlib Axes, optional
        Axes to draw into; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Zeros have no colour. Colours are logarithmic if magnitudes differ by more than 100.
        A large one is drawn in blocks of some pixels, by the largest magnitude of each, so that
        single entries stay visible. Entries that are nan or infinite are red.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ArgumentError
        If it is no array of numbers of at least two dimensions, or is empty.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule import plotting
    >>> ax = plotting.jacobian_spy(cr.jacobian(lambda x: x[1:] - x[:-1])(cr.ones(5)))
    >>> ax.get_title()
    '4 by 5, 8 of 20 entries are not zero'
    """
    sizes = _sizes_of_entries(jacobian, output_ndim)
    rows, count = sizes.shape[0], int(np.count_nonzero(sizes))
    ax = axes(ax, (5.2, 4.6))
    picture = _by_blocks(sizes, ax)
    finite = np.isfinite(picture)
    shown = np.ma.masked_where(~finite | (picture == 0), picture)
    from matplotlib import colors as plt_colors

    low, high = (shown.min(), shown.max()) if shown.count() else (1.0, 1.0)
    is_log = bool(high > 100 * low)
    norm = plt_colors.LogNorm(low, high) if is_log else plt_colors.Normalize(0, high)
    extent = (-0.5, sizes.shape[1] - 0.5, rows - 0.5, -0.5)
    flat = not 0.2 < rows / sizes.shape[1] < 5
    image = ax.imshow(
        shown,
        cmap=magnitudes(ax),
        norm=norm,
        extent=extent,
        aspect="auto" if flat else "equal",
        interpolation="nearest",
    )
    heights, widths = rows / picture.shape[0], sizes.shape[1] / picture.shape[1]
    wrong = np.argwhere(~finite)
    x, y = (wrong[:, 1] + 0.5) * widths - 0.5, (wrong[:, 0] + 0.5) * heights - 0.5
    ax.plot(x, y, "s", color=RED, markersize=5)
    if shown.count() and low < high:
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
        bar.set_label("magnitude")
        bar.outline.set_visible(False)
    wrong_count = sizes.size - int(np.isfinite(sizes).sum())
    title = f"{rows} by {sizes.shape[1]}, {count} of {sizes.size} entries are not zero"
    ax.set_title(title + (f"\n{wrong_count} nan or infinite, red" if wrong_count else ""), size=10)
    ax.set_xlabel("input")
    ax.set_ylabel("output")
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_major_locator().set_params(integer=True)
    ax.spines[:].set_color(ink(ax))
    return ax


def _sizes_of_entries(jacobian: Any, output_ndim: int | None) -> np.ndarray[Any, Any]:
    """Return the magnitudes of the entries of a Jacobian, as a matrix."""
    given = numbers(jacobian)
    split = given.ndim // 2 if output_ndim is None else output_ndim
    if given.dtype.kind not in "biufc" or given.ndim < 2 or not 0 < split < given.ndim:
        raise ArgumentError(
            "jacobian_spy: expected a Tensor or array of two or more dimensions, those of the "
            f"output first, got {type(jacobian).__name__} of shape {list(given.shape)}"
            f"{'' if output_ndim is None else f' and output_ndim={output_ndim}'}: "
            "cr.jacobian(f)(x) returns one"
        )
    if not given.size:
        raise ArgumentError(f"jacobian_spy: the Jacobian of shape {list(given.shape)} is empty")
    rows = math.prod(given.shape[:split])
    sizes: np.ndarray[Any, Any] = np.abs(given.reshape(rows, -1)).astype(float)
    return sizes


def _by_blocks(sizes: Array, ax: Any) -> Array:
    """Return the largest magnitude in each block, of so many that each has some pixels."""
    box = ax.get_window_extent()
    for axis, pixels in enumerate((box.height, box.width)):
        length, most = sizes.shape[axis], int(min(max(pixels / 3, 40), MAX_CELLS))
        if length > most:
            starts = np.linspace(0, length, most, endpoint=False).astype(int)
            sizes = np.maximum.reduceat(sizes, starts, axis=axis)
    return sizes
