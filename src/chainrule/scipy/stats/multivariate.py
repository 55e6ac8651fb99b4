"""Distributions of vectors and matrices, with SciPy's methods and arguments.

Given arrays and numbers, a method is SciPy's own. Densities are computed by the Cholesky factor;
the derivative by a covariance is symmetric, as that of `cr.linalg.cholesky` is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere
from chainrule.errors import ArgumentError, AutogradError, MissingRuleError, ShapeError
from chainrule.interop.operands import are_known, arrays_of, is_tracked
from chainrule.linalg import cholesky, solve_triangular
from chainrule.scipy.dispatch import call_ours, has_tensors
from chainrule.scipy.operands import floats
from chainrule.scipy.stats.description import scipy_stats
from chainrule.scipy.stats.ratios import sp
from chainrule.special import multigammaln

Function = Callable[..., Any]

_LOG_2PI = math.log(2 * math.pi)
_LOG_PI = math.log(math.pi)


class Multivariate:
    """A distribution of SciPy's of vectors or matrices.

    Called with parameters, it returns the distribution with these.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> normal = cr.scipy.stats.multivariate_normal
    >>> cr.grad(lambda mean: normal.logpdf(np.array([1.0, 2.0]), mean, np.eye(2)))(np.zeros(2))
    array([1., 2.])
    """

    def __init__(self, name: str, parameters: str, methods: dict[str, Function]) -> None:
        self.name = name
        self.parameters = parameters.split()
        self._methods = methods

    def __repr__(self) -> str:
        return f"<chainrule.scipy.stats.{self.name}({', '.join(self.parameters)})>"

    def __call__(self, *args: Any, **kwds: Any) -> FrozenMultivariate:
        """Return the distribution with these parameters."""
        return FrozenMultivariate(self, args, kwds)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._method(name, getattr(self.of_scipy, name))

    def __reduce__(self) -> Any:
        return _by_name, (self.name,)

    @property
    def of_scipy(self) -> Any:
        """SciPy's distribution."""
        return getattr(scipy_stats, self.name)

    def _method(self, name: str, scipys: Function) -> Function:
        ours = self._methods.get(name)
        if ours is None and name in _EXPONENTIALS and _EXPONENTIALS[name] in self._methods:
            log = self._methods[_EXPONENTIALS[name]]

            def ours(*args: Any, **kwds: Any) -> Any:
                return ops.exp(log(*args, **kwds))

        def method(*args: Any, **kwds: Any) -> Any:
            if not has_tensors(*args, *kwds.values()):
                return scipys(*args, **kwds)
            if ours is not None:
                density = _squeezed(ours) if name in ("pdf", "logpdf") else ours
                return call_ours(density, args, kwds)
            if is_tracked(args, kwds):
                raise AutogradError(
                    f"scipy.stats.{self.name}.{name} has no derivative: {PASSED.get(name, _OTHER)}."
                    " Pass x.detach() if it is to count as constant"
                )
            return scipys(*arrays_of(args), **arrays_of(kwds))

        method.__name__ = name
        return method


def _squeezed(function: Function) -> Function:
    """Return a function without dimensions of one element in its result, as SciPy's densities."""
    return lambda *args, **kwds: ops.squeeze(function(*args, **kwds))


_EXPONENTIALS = {"pdf": "logpdf", "pmf": "logpmf"}
_OTHER = "it is SciPy's own here, without a derivative rule"
PASSED = {
    "rvs": "draws are numbers of SciPy's. Draw with chainrule.distributions, or transform draws: "
    "mean + L @ z",
    "cdf": "no closed form is known",
    "logcdf": "no closed form is known",
    "fit": "it is the result of a search: maximise the sum of logpdf",
}


class FrozenMultivariate:
    """A distribution of vectors with given parameters."""

    def __init__(self, dist: Multivariate, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        kwds.pop("seed", None)
        self.dist, self.args, self.kwds = dist, args, kwds

    def __repr__(self) -> str:
        given = [*map(repr, self.args), *[f"{name}={x!r}" for name, x in self.kwds.items()]]
        return f"<chainrule.scipy.stats.{self.dist.name}({', '.join(given)})>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("dist", "args", "kwds"):
            raise AttributeError(name)
        method, args, kwds = getattr(self.dist, name), self.args, self.kwds
        if name in _OF_VARIATE:
            return lambda x, **settings: method(x, *args, **kwds, **settings)
        return lambda **settings: method(*args, **kwds, **settings)


_OF_VARIATE = frozenset(["pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf"])


# --- quadratic forms ------------------------------------------------------------------------------


def _matrix(cov: Tensor, dim: int, name: str) -> Tensor:
    """Return a covariance given as a number, as variances or as a matrix as the matrix."""
    if cov.ndim < 2:
        return ops.diag(ops.broadcast_to(cov, (dim,)))
    if cov.shape != (dim, dim):
        raise ShapeError(
            f"{name}: expected a matrix of shape {[dim, dim]}, as the mean has {dim} elements, got "
            f"{list(cov.shape)}"
        )
    return cov


def _process(name: str, x: Any, mean: Any, cov: Any) -> tuple[Tensor, Tensor, int]:
    """Return points less the mean, of shape (..., d), the matrix, and d; zeros for no points."""
    if hasattr(cov, "covariance"):
        cov = cov.covariance
    points = 0.0 if x is None else x
    points, mean, cov = floats(
        name, points, 0.0 if mean is None else mean, 1.0 if cov is None else cov
    )
    if mean.ndim > 1:
        raise ShapeError(f"{name}: expected a mean of one dimension, got {list(mean.shape)}")
    dim = mean.shape[0] if mean.ndim else (cov.shape[-1] if cov.ndim else 1)
    if x is not None and points.ndim == 0:
        points = ops.reshape(points, (1,))
    elif points.ndim == 1 and dim == 1:
        points = points[:, None]
    if x is not None and points.shape[-1] == 1:  # it is broadcast, as by SciPy
        points = ops.broadcast_to(points, (*points.shape[:-1], dim))
    if x is not None and points.shape[-1] != dim:
        raise ShapeError(
            f"{name}: expected points of {dim} coordinates in the last axis, got "
            f"{list(points.shape)}"
        )
    return points - mean, _matrix(cov, dim, name), dim


def _square_and_logdet(deviation: Tensor, matrix: Tensor) -> tuple[Any, Any]:
    """Return the squares of Mahalanobis' distances, and the logarithm of the determinant."""
    factor = cholesky(matrix)
    rows = ops.reshape(deviation, (-1, deviation.shape[-1]))
    whitened = solve_triangular(factor, rows.T, upper=False)
    squares = ops.reshape(ops.sum(ops.square(whitened), dim=0), deviation.shape[:-1])
    return squares, _logdet(factor)


def _logdet(factor: Any) -> Any:
    return 2 * ops.sum(ops.log(ops.diagonal(factor)))


# --- the normal distribution and Student's --------------------------------------------------------


def _normal_logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    deviation, matrix, dim = _process("multivariate_normal", x, mean, cov)
    spectrum = _spectrum(matrix) if allow_singular else None
    if spectrum is None:
        squares, logdet = _square_and_logdet(deviation, matrix)
        return -0.5 * (squares + logdet + dim * _LOG_2PI)
    if is_tracked(matrix):
        raise MissingRuleError(
            "multivariate_normal: where cov is singular, it has no derivative with respect to it: "
            "add a small multiple of the identity to cov"
        )
    values, vectors, kept = spectrum
    along = ops.matmul(deviation, vectors[:, kept] / np.sqrt(values[kept]))
    squares = ops.sum(ops.square(along), dim=-1)
    found = -0.5 * (squares + float(np.sum(np.log(values[kept]))) + int(kept.sum()) * _LOG_2PI)
    across = arrays_of(deviation) @ vectors[:, ~kept]
    return ops.where(np.linalg.norm(across, axis=-1) < 1e-8, found, -math.inf)


def _spectrum(matrix: Tensor) -> tuple[Any, Any, Any] | None:
    """Return eigenvalues, eigenvectors, and which are not zero; None of a regular matrix.

    A matrix of unknown elements counts as regular.
    """
    if not are_known(matrix):
        return None
    values, vectors = np.linalg.eigh(arrays_of(matrix))
    kept = values > 1e6 * np.finfo(values.dtype).eps * np.max(np.abs(values))
    return None if kept.all() else (values, vectors, kept)


def _normal_entropy(mean: Any = None, cov: Any = 1) -> Any:
    _, matrix, dim = _process("multivariate_normal", None, mean, cov)
    return 0.5 * (dim * (_LOG_2PI + 1) + _logdet(cholesky(matrix)))


multivariate_normal = Multivariate(
    "multivariate_normal",
    "mean cov",
    {"logpdf": _normal_logpdf, "entropy": _normal_entropy},
)


def _t_logpdf(x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
    deviation, matrix, dim = _process("multivariate_t", x, loc, shape)
    if not isinstance(df, Tensor) and df == np.inf:
        squares, logdet = _square_and_logdet(deviation, matrix)
        return -0.5 * (squares + logdet + dim * _LOG_2PI)
    squares, logdet = _square_and_logdet(deviation, matrix)
    squares, df = floats("multivariate_t", squares, df)
    half = (df + dim) / 2
    constant = sp.gammaln(half) - sp.gammaln(df / 2) - dim / 2 * (ops.log(df) + _LOG_PI)
    return constant - logdet / 2 - half * ops.log1p(squares / df)


multivariate_t = Multivariate("multivariate_t", "loc shape df", {"logpdf": _t_logpdf})


# --- proportions and counts -----------------------------------------------------------------------


def _check_proportions(x: Tensor) -> None:
    values = arrays_of(x)
    if not isinstance(values, np.ndarray):
        return
    if (values < 0).any() or (values > 1).any():
        raise ArgumentError("Each entry in 'x' must be between zero and one.")
    if (np.abs(values.sum(0) - 1.0) > 1e-9 + 10 * np.finfo(values.dtype).eps).any():
        raise ArgumentError(
            "The input vector 'x' must lie within the normal simplex, but np.sum(x, 0) isn't 1"
        )


def _dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    x, alpha = floats("dirichlet", x, alpha)
    if alpha.ndim != 1 or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ShapeError(
            f"dirichlet: expected alpha as a vector, and x with as many rows, or one fewer; got "
            f"{list(alpha.shape)} and {list(x.shape)}"
        )
    if x.shape[0] < alpha.shape[0]:
        x = ops.cat([x, 1 - ops.sum(x, dim=0, keepdim=True)])
    _check_proportions(x)
    powers = ops.reshape(alpha - 1, (-1, *[1] * (x.ndim - 1)))
    return ops.sum(sp.xlogy(powers, x), dim=0) - _log_beta(alpha)


def _log_beta(alpha: Any) -> Any:
    return ops.sum(sp.gammaln(alpha)) - sp.gammaln(ops.sum(alpha))


def _dirichlet_mean(alpha: Any) -> Any:
    (alpha,) = floats("dirichlet", alpha)
    return alpha / ops.sum(alpha)


def _dirichlet_var(alpha: Any) -> Any:
    (alpha,) = floats("dirichlet", alpha)
    total = ops.sum(alpha)
    return alpha * (total - alpha) / (total * total * (total + 1))


def _dirichlet_entropy(alpha: Any) -> Any:
    (alpha,) = floats("dirichlet", alpha)
    total = ops.sum(alpha)
    return (
        _log_beta(alpha)
        + (total - alpha.shape[0]) * sp.psi(total)
        - ops.sum((alpha - 1) * sp.psi(alpha))
    )


dirichlet = Multivariate(
    "dirichlet",
    "alpha",
    {
        "logpdf": _dirichlet_logpdf,
        "mean": _dirichlet_mean,
        "var": _dirichlet_var,
        "entropy": _dirichlet_entropy,
    },
)


def _multinomial_logpmf(x: Any, n: Any, p: Any) -> Any:
    for name, value in (("x", x), ("n", n)):
        if is_tracked(value):
            raise AutogradError(
                f"scipy.stats.multinomial.logpmf has no derivative with respect to {name}: it "
                f"counts, so it is an integer. Pass {name}.detach() if it is to count as constant"
            )
    x, n, p = floats("multinomial", x, n, p)
    last = 1.0 - ops.sum(p[..., :-1], dim=-1)
    eps = float(np.finfo(p.dtype).eps) * 10
    changed = ops.abs(last - p[..., -1]) > eps
    last = ops.where(changed, last, p[..., -1])
    p = ops.cat([p[..., :-1], last[..., None]], dim=-1)
    valid = ops.logical_and(ops.amin(p, dim=-1) >= 0, n >= 0)
    whole = ops.logical_and(x >= 0, x == ops.floor(x))
    inside = ops.logical_and(ops.amin(whole.to(p.dtype), dim=-1) > 0, ops.sum(x, dim=-1) == n)
    counted = ops.where(inside[..., None], x, 0.0)
    found = sp.gammaln(n + 1) + ops.sum(sp.xlogy(counted, p) - sp.gammaln(counted + 1), dim=-1)
    return ops.where(valid, ops.where(inside, found, -math.inf), math.nan)


multinomial = Multivariate("multinomial", "n p", {"logpmf": _multinomial_logpmf})


# --- matrices -------------------------------------------------------------------------------------


def _matrices(name: str, x: Any, df: Any, scale: Any) -> tuple[Tensor, Tensor, Tensor, int]:
    """Return matrices with their axis first, the degrees of freedom, the scale, and the size."""
    x, df, scale = floats(name, x, df, scale)
    if scale.ndim < 2:
        scale = ops.diag(ops.reshape(scale, (-1,)))
    dim = scale.shape[0]
    if x.ndim < 2:
        x = ops.reshape(x, (1, 1, -1)) if dim == 1 else ops.diag(x)
    if x.shape[:2] != (dim, dim):
        raise ShapeError(
            f"{name}: expected matrices of shape {[dim, dim]}, as scale has, with further ones "
            f"along the last axis; got {list(x.shape)}"
        )
    if holds_somewhere((df <= dim - 1)._array):
        raise ArgumentError(
            f"{name}: Degrees of freedom must be greater than the dimension of scale minus 1"
        )
    return (ops.movedim(x, -1, 0) if x.ndim == 3 else x), df, scale, dim


def _stacked(function: Function, x: Any) -> Any:
    """Return a function of a matrix, of one or of several."""
    if x.ndim == 2:
        return function(x)
    found = [function(one) for one in x.unbind(0)]
    return found[0] if len(found) == 1 else ops.stack(found)


def _trace_of_quotient(factor: Any, x: Any) -> Any:
    """Return the trace of A⁻¹X, given A's Cholesky factor and X's."""
    return ops.sum(ops.square(solve_triangular(factor, x, upper=False)))


def _wishart_logpdf(x: Any, df: Any, scale: Any) -> Any:
    x, df, scale, dim = _matrices("wishart", x, df, scale)
    factor = cholesky(scale)
    constant = df * (dim / 2 * math.log(2)) + df / 2 * _logdet(factor) + multigammaln(df / 2, dim)

    def log(one: Any) -> Any:
        root = cholesky(one)
        trace = _trace_of_quotient(factor, root)
        return (df - dim - 1) / 2 * _logdet(root) - trace / 2 - constant

    return _stacked(log, x)


def _invwishart_logpdf(x: Any, df: Any, scale: Any) -> Any:
    x, df, scale, dim = _matrices("invwishart", x, df, scale)
    factor = cholesky(scale)
    constant = df * (dim / 2 * math.log(2)) - df / 2 * _logdet(factor) + multigammaln(df / 2, dim)

    def log(one: Any) -> Any:
        root = cholesky(one)
        trace = _trace_of_quotient(root, factor)
        return -(df + dim + 1) / 2 * _logdet(root) - trace / 2 - constant

    return _stacked(log, x)


wishart = Multivariate("wishart", "df scale", {"logpdf": _wishart_logpdf})
invwishart = Multivariate("invwishart", "df scale", {"logpdf": _invwishart_logpdf})

TABLE = {
    found.name: found
    for found in (
        *(multivariate_normal, multivariate_t, dirichlet, multinomial, wishart, invwishart),
    )
}
"""The distributions of vectors and matrices, by name."""


def _by_name(name: str) -> Multivariate:
    return TABLE[name]
