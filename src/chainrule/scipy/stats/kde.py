"""Estimates of densities by kernels: `scipy.stats.gaussian_kde` over tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.interop.operands import arrays_of
from chainrule.linalg import cholesky, solve_triangular
from chainrule.scipy.dispatch import call_ours, has_tensors, refused
from chainrule.scipy.operands import floats
from chainrule.scipy.stats.description import scipy_stats
from chainrule.scipy.stats.ratios import sp
from chainrule.special import logsumexp

__all__ = ["GaussianKDE"]


class GaussianKDE:
    """An estimate of a density by Gaussian kernels, with SciPy's methods.

    Parameters
    ----------
    dataset : shape (n,) or (d, n)
        The points.
    bw_method : "scott", "silverman", number or callable, optional
        The bandwidth, as for `scipy.stats.gaussian_kde`.
    weights : shape (n,), optional
        Weights of the points.

    Notes
    -----
    Derivatives: of `evaluate`, `pdf`, `logpdf` and `integrate_box_1d` with respect to points,
    `dataset`, `weights` and the bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> data = np.array([0.0, 1.0, 3.0])
    >>> cr.grad(lambda x: cr.scipy.stats.gaussian_kde(data).logpdf(x)[0])(1.0)
    -0.0...
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self._given = (dataset, weights)
        self.bw_method = bw_method
        if not has_tensors(dataset, weights, bw_method):
            self.of_scipy(bw_method)  # raises what SciPy raises
        count = self._points(dataset, weights)[0].shape[1]
        if count < 2:
            raise ArgumentError("`dataset` input should have multiple elements.")

    def of_scipy(self, bw_method: Any = None) -> Any:
        """Return SciPy's estimate, without derivatives."""
        dataset, weights = [arrays_of(value) for value in self._given]
        method = self.bw_method if bw_method is None else bw_method
        return scipy_stats.gaussian_kde(dataset, arrays_of(method), weights)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("d", "n"):
            return self._points(*self._given)[0].shape["dn".index(name)]
        if name in ("neff", "factor", "covariance", "weights", "dataset", "inv_cov"):
            return getattr(self.of_scipy(), name)
        found = getattr(self.of_scipy(), name)
        return refused(f"scipy.stats.gaussian_kde.{name}", found, "it is SciPy's own here")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Set the bandwidth."""
        self.bw_method = bw_method

    def evaluate(self, points: Any) -> Any:
        """Return the estimated density at points of shape (d, m) or (m,)."""
        if not self._has_tensors(points):
            return self.of_scipy()(points)
        return call_ours(_exp_of, ((self._log_density,), points, *self._all), {})

    __call__ = pdf = evaluate

    def logpdf(self, x: Any) -> Any:
        """Return the logarithm of the estimated density."""
        if not self._has_tensors(x):
            return self.of_scipy().logpdf(x)
        return call_ours(_called, ((self._log_density,), x, *self._all), {})

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """Return the estimated probability of an interval, in one dimension."""
        if not self._has_tensors(low, high):
            return self.of_scipy().integrate_box_1d(low, high)
        return call_ours(_called, ((self._box,), low, high, *self._all), {})

    # --- computation ---

    @property
    def _all(self) -> tuple[Any, Any, Any]:
        dataset, weights = self._given
        return dataset, weights, () if callable(self.bw_method) else (self.bw_method,)

    def _has_tensors(self, *points: Any) -> bool:
        return has_tensors(*points, *self._given, self.bw_method)

    def _points(self, dataset: Any, weights: Any) -> tuple[Tensor, Any]:
        """Return the points as (d, n), and weights that sum to one."""
        given = [dataset] if weights is None else [dataset, weights]
        data, *rest = floats("gaussian_kde", *given)
        data = data if data.ndim == 2 else ops.reshape(data, (1, -1))
        if not rest:
            return data, None
        w = rest[0]
        if w.ndim != 1 or w.shape[0] != data.shape[1]:
            raise ShapeError(
                f"gaussian_kde: expected as many weights as points, {data.shape[1]}, got shape "
                f"{list(w.shape)}"
            )
        return data, w / ops.sum(w)

    def _factor(self, dim: int, neff: Any, method: Any) -> Any:
        """Return the bandwidth's factor (D. W. Scott, Multivariate Density Estimation, 1992)."""
        method = method[0] if method else self.bw_method
        if callable(method):
            return method(self.of_scipy("scott"))
        if method is None or (isinstance(method, str) and method == "scott"):
            return neff ** (-1.0 / (dim + 4))
        if isinstance(method, str) and method == "silverman":
            return (neff * (dim + 2.0) / 4.0) ** (-1.0 / (dim + 4))
        if isinstance(method, str):
            raise ArgumentError(
                "`bw_method` should be 'scott', 'silverman', a scalar or a callable."
            )
        return method

    def _kernel(self, data: Tensor, w: Any, method: Any) -> tuple[Any, Any]:
        """Return the weights, and the Cholesky factor of the kernels' covariance."""
        dim, count = data.shape
        if w is None:
            w = ops.broadcast_to(np.asarray(1 / count, data.dtype), (count,))
        squares = ops.sum(w * w)
        centred = data - ops.sum(w * data, dim=1, keepdim=True)
        covariance = ops.matmul(w * centred, centred.T) / (1 - squares)
        factor = self._factor(dim, 1 / squares, method)
        return w, cholesky(covariance) * factor

    def _log_density(self, points: Any, dataset: Any, weights: Any, method: Any) -> Any:
        data, w = self._points(dataset, weights)
        x, _ = floats("gaussian_kde", points, data)
        x = x if x.ndim == 2 else ops.reshape(x, (1, -1))
        dim = data.shape[0]
        if x.shape[0] != dim:
            if x.shape != (1, dim):
                raise ShapeError(
                    f"gaussian_kde: points have dimension {x.shape[0]}, dataset has dimension {dim}"
                )
            x = x.T
        w, factor = self._kernel(data, w, method)
        both = solve_triangular(factor, ops.cat([data, x], dim=1), upper=False)
        white, at = both[:, : data.shape[1]], both[:, data.shape[1] :]
        energy = ops.sum(ops.square(at[:, None, :] - white[:, :, None]), dim=0) / 2
        norm = dim / 2 * math.log(2 * math.pi) + ops.sum(ops.log(ops.diagonal(factor)))
        return logsumexp(ops.log(w)[:, None] - energy, dim=0) - norm

    def _box(self, low: Any, high: Any, dataset: Any, weights: Any, method: Any) -> Any:
        data, w = self._points(dataset, weights)
        if data.shape[0] != 1:
            raise ArgumentError("integrate_box_1d() only handles 1D pdfs")
        w, factor = self._kernel(data, w, method)
        low, high, _ = floats("gaussian_kde", low, high, data)
        ends = [sp.ndtr((end - data[0]) / factor[0, 0]) for end in (low, high)]
        return ops.sum(w * (ends[1] - ends[0]))


def _called(function: tuple[Any], *args: Any) -> Any:
    return function[0](*args)


def _exp_of(function: tuple[Any], *args: Any) -> Any:
    return ops.exp(function[0](*args))
