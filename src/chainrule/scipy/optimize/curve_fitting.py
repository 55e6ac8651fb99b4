"""Curves fitted to data: `curve_fit`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import linalg
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.tensor import Tensor
from chainrule.creation import as_tensor
from chainrule.errors import ArgumentError
from chainrule.interop.operands import are_known, arrays_of
from chainrule.scipy.optimize.sums_of_squares import least_squares
from chainrule.scipy.optimize.unknowns import OPTIMIZE, has_history, lacks_rank
from chainrule.transforms import jacobian

__all__ = ["curve_fit"]


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: bool = True,
    bounds: Any = (-np.inf, np.inf),
    method: str | None = None,
    jac: Callable[..., Any] | str | None = None,
    *,
    full_output: bool = False,
    **settings: Any,
) -> Any:
    """Fit a function to data by least squares: `scipy.optimize.curve_fit`, with derivatives.

    Parameters
    ----------
    f : callable
        ``f(xdata, *parameters)`` returns the shape of `ydata`.
    xdata : object
        The first argument of `f`.
    ydata : array or Tensor
        The data.
    p0 : array, optional
        The start; otherwise ones, or numbers within the bounds.
    sigma : array or Tensor, optional
        The errors of the data, or their covariance matrix, as in SciPy.
    absolute_sigma, check_finite, bounds, method, full_output
        As in SciPy.
    jac : callable, str or None, default None
        The Jacobian matrix of `f`, ``jac(xdata, *parameters)``; None for chainrule's; a name of
        SciPy's for differences.
    **settings
        The other arguments of `least_squares`; `maxfev` is `max_nfev`.

    Returns
    -------
    popt, pcov : arrays or Tensors
        The parameters and their covariance matrix, both differentiable with respect to `xdata`,
        `ydata`, `sigma`, bounds, and tensors that `f` closes over. With `full_output` also a
        dictionary, a message and a flag, as in SciPy.

    Raises
    ------
    RuntimeError
        If the fit did not converge.
    ArgumentError, ShapeError, AutogradError, LinAlgError
        As for `least_squares`; and if there is nan or infinity in the data, with `check_finite`.

    Warns
    -----
    scipy.optimize.OptimizeWarning
        If the data don't determine the covariance, which is then infinite.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> def decay(t, height, rate):
    ...     return height * np.exp(-rate * t)
    >>> def fitted_rate(y):
    ...     return cr.scipy.optimize.curve_fit(decay, t, y, [1.0, 1.0])[0][1]
    >>> data = decay(t, 2.0, 3.0)
    >>> round(float(fitted_rate(data)), 4), cr.grad(fitted_rate)(data)[:3].round(3)
    (3.0, array([0.743, 0.395, 0.134]))
    """
    xdata, ydata = _as_data(xdata), _as_data(ydata)
    if check_finite:
        _check_finite(xdata=xdata, ydata=ydata, sigma=sigma)
    start = _start(f, p0, bounds)
    weight = _weight(sigma, ydata)

    def residuals(p: Any, x: Any, y: Any) -> Any:
        return weight(f(x, *p) - y)

    if "maxfev" in settings:
        settings["max_nfev"] = settings.pop("maxfev")
    bounded = any(np.isfinite(np.asarray(arrays_of(end))).any() for end in _ends(bounds))
    found = least_squares(
        residuals,
        start,
        (lambda p, x, y: weight(jac(x, *p))) if callable(jac) else jac,
        bounds,
        method or ("trf" if bounded else "lm"),
        args=(xdata, ydata),
        **settings,
    )
    if not found.success:
        raise RuntimeError(f"Optimal parameters not found: {found.message}")
    covariance = _covariance(residuals, found, (xdata, ydata), absolute_sigma)
    if full_output:
        info = {"nfev": found.get("nfev"), "fvec": found.get("fun")}
        return found.x, covariance, info, found.message, found.get("status")
    return found.x, covariance


def _as_data(data: Any) -> Any:
    return np.asarray(data, float) if isinstance(data, list | tuple | int | float) else data


def _ends(bounds: Any) -> Any:
    return (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds


def _check_finite(**data: Any) -> None:
    for name, each in data.items():
        found = arrays_of(each)
        if not isinstance(found, np.ndarray):  # no data, or known to a trace or vmap alone
            continue
        if found.dtype.kind in "fc" and not np.isfinite(found).all():
            raise ArgumentError(
                f"curve_fit: {name} has nan or infinity: leave those points out, or pass "
                "check_finite=False if the function does"
            )


def _start(f: Callable[..., Any], p0: Any, bounds: Any) -> Any:
    """Return the start: one number for each parameter of `f` after the first."""
    if p0 is not None:
        return np.atleast_1d(np.asarray(p0, float)) if not isinstance(p0, Tensor) else p0
    parameters = list(inspect.signature(f).parameters.values())[1:]
    if not parameters or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise ArgumentError(
            "curve_fit: the function doesn't name its parameters, whose number is needed: give "
            "a start, p0=[...]"
        )
    low, high = (np.asarray(arrays_of(end), float) for end in _ends(bounds))
    low, high = (np.broadcast_to(end, len(parameters)) for end in (low, high))
    both = np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid="ignore"):
        start = np.where(both, 0.5 * (low + high), np.ones(len(parameters)))
        start = np.where(np.isfinite(low) & ~both, low + 1, start)
        return np.where(np.isfinite(high) & ~both, high - 1, start)


def _weight(sigma: Any, ydata: Any) -> Callable[[Any], Any]:
    """Return what divides residuals, or the rows of their Jacobian, by the errors of the data."""
    if sigma is None:
        return lambda r: r
    sigma = sigma if isinstance(sigma, Tensor) else np.asarray(sigma, float)
    if sigma.ndim == 2:
        factor = linalg.cholesky(as_tensor(sigma))

        def whiten(r: Any) -> Any:
            columns = as_tensor(r).reshape((sigma.shape[0], -1))
            return linalg.solve_triangular(factor, columns, upper=False).reshape(r.shape)

        return whiten
    if sigma.shape not in ((), np.shape(arrays_of(ydata))):
        raise ArgumentError(
            f"curve_fit: sigma has the shape {list(sigma.shape)}, but ydata "
            f"{list(np.shape(arrays_of(ydata)))}: give one error for each number, or a matrix"
        )
    return lambda r: r / (sigma[:, None] if r.ndim > 1 and sigma.ndim else sigma)


def _covariance(residuals: Any, found: Any, data: Any, absolute: bool) -> Any:
    """Return the covariance matrix of the parameters: (JᵀJ)⁻¹, scaled by the residuals."""
    x = found.x
    matrix = jacobian(lambda p: residuals(p, *data))(x)
    rows, columns = matrix.shape
    if lacks_rank("scipy.optimize.curve_fit", matrix) or (not absolute and rows <= columns):
        warnings.warn(
            "Covariance of the parameters could not be estimated",
            OPTIMIZE.OptimizeWarning,
            stacklevel=user_stack_level(),
        )
        return np.full((columns, columns), np.inf)
    inverse = np.linalg.inv(matrix.T @ matrix)
    scaled = inverse if absolute else inverse * (2 * found.cost / (rows - columns))
    is_plain = are_known(scaled) and not has_history(scaled)
    return np.asarray(arrays_of(scaled)) if is_plain else scaled
