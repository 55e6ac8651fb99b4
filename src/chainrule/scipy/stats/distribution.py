"""Univariate distributions with SciPy's methods, made from one description of each.

Location, scale and invalid parameters are handled here, the support by the methods' evaluation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ArgumentTypeError, AutogradError
from chainrule.interop.operands import arrays_of, is_tracked, may_hold, tensor_of
from chainrule.scipy.dispatch import call_ours, either, has_tensors
from chainrule.scipy.operands import floats
from chainrule.scipy.stats import fitting
from chainrule.scipy.stats.description import (
    EVALUATE,
    Description,
    Function,
    Parameters,
    function_of,
    scipy_stats,
)
from chainrule.scipy.stats.scipy_formulas import formulas, moment

_INF = math.inf
_COUNTS = "it counts, so it is an integer"


class Distribution:
    """A univariate distribution with the methods of SciPy's.

    Called with parameters, it returns the distribution with these: ``norm(loc, scale).logpdf(x)``.
    Given arrays and numbers, a method is SciPy's own; given a tensor it is recorded.

    Notes
    -----
    Outside of the support the density is 0, as are its derivatives. Invalid parameters and NaN
    give NaN, as in SciPy. Derivatives with respect to the variate, the shape parameters, `loc` and
    `scale` follow from the formulas of the methods, to every order.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> norm = cr.scipy.stats.norm
    >>> cr.grad(lambda mu: norm.logpdf(np.array([1.0, 3.0]), mu, 2.0).sum())(1.0)
    0.5
    >>> norm(1.0, cr.tensor(2.0)).cdf(3.0)
    tensor(0.8413)
    """

    def __init__(self, description: Description) -> None:
        self.description = description
        self.name = description.name
        self.parameters = [*description.shapes.split(), "loc"]
        if not description.discrete:
            self.parameters.append("scale")
        self._functions: dict[str, Function | None] = {}

    def __repr__(self) -> str:
        return f"<chainrule.scipy.stats.{self.name}({', '.join(self.parameters)})>"

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """Return the distribution with these parameters."""
        return Frozen(self, args, kwds)

    freeze = __call__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _STANDARD_FORMS:  # without loc and scale
            return getattr(self, name[1:])
        if name in _OF_SHAPES:
            return getattr(formulas(self.name), name)
        found = getattr(self.of_scipy, name)
        return self._passed(name, found) if callable(found) else found

    def __reduce__(self) -> Any:
        return _by_name, (self.name,)

    @property
    def of_scipy(self) -> Any:
        """SciPy's distribution."""
        return getattr(scipy_stats, self.name)

    # --- methods of the variate ---

    def pdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the density at `x`."""
        return self._at("pdf", x, args, kwds)

    def logpdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the density at `x`."""
        return self._at("logpdf", x, args, kwds)

    def pmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of `k`."""
        return self._at("pmf", k, args, kwds)

    def logpmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of `k`."""
        return self._at("logpmf", k, args, kwds)

    def cdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of values up to `x`."""
        return self._at("cdf", x, args, kwds)

    def logcdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of values up to `x`."""
        return self._at("logcdf", x, args, kwds)

    def sf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of values above `x`."""
        return self._at("sf", x, args, kwds)

    def logsf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of values above `x`."""
        return self._at("logsf", x, args, kwds)

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return the quantile of the probability `q`: the inverse of `cdf`."""
        return self._at("ppf", q, args, kwds)

    def isf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return the inverse of `sf` at the probability `q`."""
        return self._at("isf", q, args, kwds)

    # --- methods of the parameters ---

    def mean(self, *args: Any, **kwds: Any) -> Any:
        """Return the expected value."""
        return self._of_parameters("mean", args, kwds)

    def var(self, *args: Any, **kwds: Any) -> Any:
        """Return the variance."""
        return self._of_parameters("var", args, kwds)

    def std(self, *args: Any, **kwds: Any) -> Any:
        """Return the standard deviation."""
        return self._of_parameters("std", args, kwds)

    def entropy(self, *args: Any, **kwds: Any) -> Any:
        """Return the differential entropy, of a discrete distribution the entropy, in nats."""
        return self._of_parameters("entropy", args, kwds)

    def median(self, *args: Any, **kwds: Any) -> Any:
        """Return the quantile of one half."""
        return self.ppf(0.5, *args, **kwds)

    def interval(self, confidence: Any, *args: Any, **kwds: Any) -> Any:
        """Return both ends of the interval around the median that has the probability given."""
        if not has_tensors(confidence, *args, *kwds.values()):
            return self.of_scipy.interval(confidence, *args, **kwds)
        tail = (1.0 - tensor_of(confidence)) / 2
        return self.ppf(tail, *args, **kwds), self.ppf(1.0 - tail, *args, **kwds)

    def stats(self, *args: Any, moments: str = "mv", **kwds: Any) -> Any:
        """Return the mean, the variance, the skewness and the kurtosis named in `moments`."""
        if not has_tensors(*args, *kwds.values()):
            return self.of_scipy.stats(*args, moments=moments, **kwds)
        names = {"m": "mean", "v": "var", "s": "skewness", "k": "kurtosis"}
        found = tuple(
            [self._of_parameters(name, args, kwds) for m, name in names.items() if m in moments]
        )
        return found if len(found) > 1 else found[0]

    def rvs(self, *args: Any, **kwds: Any) -> Any:
        """Return SciPy's draws, recorded by `loc` and `scale`: they are ``loc + scale * draw``."""
        draw = self._passed("rvs", self.of_scipy.rvs)
        given = dict(zip([*self.parameters, "size", "random_state"], args, strict=False)) | kwds
        loc, scale = given.pop("loc", 0.0), given.pop("scale", 1.0)
        if not is_tracked(loc, scale):
            return draw(*args, **kwds)
        if given.get("size") is None and np.shape(loc) + np.shape(scale):
            given["size"] = np.broadcast_shapes(np.shape(loc), np.shape(scale))
        return scale * draw(**given) + loc

    def support(self, *args: Any, **kwds: Any) -> Any:
        """Return both ends of the support."""
        if not has_tensors(*args, *kwds.values()):
            return self.of_scipy.support(*args, **kwds)
        return call_ours(self._support, (args, kwds), {})

    def nnlf(self, theta: Any, x: Any) -> Any:
        """Return the negative log-likelihood of the data `x`.

        `theta` has the shape parameters, `loc` and `scale`, as `fit` returns them. It is infinite
        if an element of `x` is outside of the support, or a parameter is invalid.
        """
        if not has_tensors(theta, x):
            return self.of_scipy.nnlf(theta, x)
        parts = theta.unbind(0) if isinstance(theta, Tensor) else theta
        if len(parts) != len(self.parameters):
            raise ArgumentError(
                f"{self.name}.nnlf: expected theta = ({', '.join(self.parameters)}), got "
                f"{len(parts)} numbers"
            )
        logs = self.logpdf if not self.description.discrete else self.logpmf
        total = call_ours(ops.sum, (call_ours(_tensor, (logs(x, *parts),), {}),), {})
        return call_ours(_infinite_if_nan, (total,), {})

    def fit(self, data: Any, *args: Any, **kwds: Any) -> Any:
        """Return the parameters of largest likelihood of the data that SciPy finds.

        Derivatives: with respect to the data, and to parameters that are given (`floc`, `f0`, …).
        """
        if not has_tensors(data, *args, *kwds.values()):
            return self.of_scipy.fit(data, *args, **kwds)
        return call_ours(fitting.fit, (self, data, args, kwds), {})

    @functools.cached_property
    def expect(self) -> Function:
        """Return the mean of a function: an integral over the support, or a sum."""
        ours = functools.partial(fitting.expect, self)
        return either(f"scipy.stats.{self.name}.expect", self.of_scipy.expect, ours)

    # --- evaluation ---

    def _at(self, method: str, x: Any, args: Any, kwds: Any) -> Any:
        """Return a method's value at a point, or points."""
        if not has_tensors(x, *args, *kwds.values()):
            return getattr(self.of_scipy, method)(x, *args, **kwds)
        return call_ours(self._value, (method, x, args, kwds), {})

    def _value(self, method: str, x: Any, args: Any, kwds: Any) -> Any:
        d = self.description
        if d.discrete is not (method in ("pmf", "logpmf")) and method in DENSITIES:
            right = method.replace("pdf", "pmf") if d.discrete else method.replace("pmf", "pdf")
            raise AttributeError(f"{self.name} has no {method}: it has {right}")
        given = self._bound(args, kwds)
        function = self._function("log_density" if method in _LOG_DENSITIES else method)
        if function is None or method in d.reasons or (d.discrete and method in _QUANTILES):
            return self._of_scipys_own(method, (x, *given))
        if d.discrete:
            self._check_counts(method, x, given)
        x, p = self._parameters(x, given)
        return EVALUATE[method](function, x, p, d)

    def _function(self, name: str) -> Function | None:
        if name not in self._functions:
            self._functions[name] = function_of(name, self.description)
        return self._functions[name]

    def _of_parameters(self, method: str, args: Any, kwds: Any) -> Any:
        if not has_tensors(*args, *kwds.values()):
            return getattr(self.of_scipy, method)(*args, **kwds)
        return call_ours(self._moment, (method, args, kwds), {})

    def _moment(self, method: str, args: Any, kwds: Any) -> Any:
        given = self._bound(args, kwds)
        function: Any = self._function("var" if method == "std" else method)
        if function is None and method in _BY_SCIPY:
            function = self._functions[method] = moment(self.name, _BY_SCIPY.index(method))
        if function is None or method in self.description.reasons:
            return self._of_scipys_own(method, given)
        if self.description.discrete:
            self._check_counts(method, 0, given)
        _, p = self._parameters(0.0, given)
        found = function(*p.shapes) if callable(function) else function
        if method == "mean":
            found = p.loc + found * p.scale
        elif method == "var":
            found = found * ops.square(p.scale)
        elif method == "std":
            found = ops.sqrt(tensor_of(found)) * p.scale
        elif method == "entropy" and not self.description.discrete:
            found = found + ops.log(p.scale)
        return ops.add(found, 0.0 * (p.loc + p.scale).detach())  # NaN for invalid parameters

    def _support(self, args: Any, kwds: Any) -> Any:
        _, p = self._parameters(0.0, self._bound(args, kwds))
        return tuple([tensor_of(end) * p.scale + p.loc for end in p.support])

    def _bound(self, args: Sequence[Any], kwds: Mapping[str, Any]) -> list[Any]:
        """Return the parameters in order, from positional arguments and keywords."""
        names = self.parameters
        found = dict(zip(names, args, strict=False))
        wrong = [name for name in kwds if name not in names or name in found]
        found |= kwds
        missing = [name for name in names if name not in found and name not in _DEFAULTS]
        if len(args) > len(names) or wrong or missing:
            problem = f"got {len(args)} positional ones" if len(args) > len(names) else ""
            problem = problem or (f"got {wrong[0]!r}" if wrong else f"{missing[0]!r} is missing")
            raise ArgumentTypeError(
                f"{self.name}: expected the parameters ({', '.join(names)}), each once: {problem}"
            )
        return [found[name] if name in found else _DEFAULTS[name] for name in names]

    def _parameters(self, x: Any, given: list[Any]) -> tuple[Tensor, Parameters]:
        """Return the variate and the parameters as tensors, and where the latter are valid."""
        d = self.description
        x, *found = floats(self.name, x, *given)
        shapes = found[: len(given) - (1 if d.discrete else 2)]
        loc = found[len(shapes)]
        conditions = [d.valid(*shapes)] if d.valid is not None else [s > 0 for s in shapes]
        if d.discrete:
            scale = tensor_of(1.0)
            scale = cast(scale, x.dtype)
        else:
            scale = found[-1]
            if isinstance(given[-1], Tensor) or not _is_positive(given[-1]):
                conditions.append(scale > 0)
        wrong = [~condition for condition in conditions if may_hold(~condition)]
        if wrong:
            invalid = functools.reduce(ops.logical_or, wrong)
            shapes = [ops.where(invalid, math.nan, shape) for shape in shapes]
            scale = ops.where(invalid, math.nan, scale)
        support = d.support(*shapes) if callable(d.support) else d.support
        return x, Parameters(shapes, loc, scale, support)

    # --- what has no derivative ---

    def _check_counts(self, method: str, x: Any, given: list[Any]) -> None:
        """Raise if a derivative with respect to an integer is asked for."""
        d = self.description
        names = ["k", *self.parameters]
        counting = {"k", "loc", *d.counts.split()}
        for name, value in zip(names, [x, *given], strict=True):
            if name in counting and is_tracked(value):
                self._refuse(method, name, _COUNTS)

    def _of_scipys_own(self, method: str, args: Sequence[Any]) -> Any:
        """Return SciPy's value as a tensor; raise if a derivative is asked for."""
        names = ["q" if method in _QUANTILES else "x", *self.parameters][-len(args) :]
        reason = self.description.reasons.get(method, "no closed form is known")
        if self.description.discrete and method in _QUANTILES:
            reason = "quantiles of a discrete distribution are integers"
        for name, value in zip(names, args, strict=True):
            if is_tracked(value):
                self._refuse(method, name, reason)
        if method in ("skewness", "kurtosis"):
            found = self.of_scipy.stats(*arrays_of(list(args)), moments=method[0])
        else:
            found = getattr(self.of_scipy, method)(*arrays_of(list(args)))
        dtype = floats(self.name, *args)[0].dtype
        return cast(tensor_of(found), dtype)

    def _refuse(self, method: str, argument: str, reason: str) -> NoReturn:
        raise AutogradError(
            f"scipy.stats.{self.name}.{method} has no derivative with respect to {argument}: "
            f"{reason}. Pass {argument}.detach() if it is to count as constant"
        )

    def _passed(self, name: str, method: Function) -> Function:
        """Return a method of SciPy's that takes no tensors with history."""

        def passed(*args: Any, **kwds: Any) -> Any:
            if is_tracked(args, kwds):
                mend = "Pass x.detach() if it is to count as constant"
                if name == "rvs":
                    mend = (
                        "Draw with chainrule.distributions, whose rsample() is differentiable, or "
                        "scale a standard draw: loc + scale * draw"
                    )
                elif name.startswith("fit"):
                    mend = "fit() has one, and nnlf(theta, data) can be minimised"
                raise AutogradError(f"scipy.stats.{self.name}.{name} has no derivative. {mend}")
            return method(*arrays_of(args), **arrays_of(kwds))

        return passed


_STANDARD_FORMS = frozenset(
    ["_pdf", "_logpdf", "_pmf", "_logpmf", "_cdf", "_logcdf", "_sf", "_logsf", "_ppf", "_isf"]
)
"""Private methods of SciPy's distributions, which other libraries call."""
_OF_SHAPES = frozenset(["_stats", "_munp", "_entropy", "_argcheck", "_get_support"])
"""Those of SciPy's formulas, which call each other."""
_DEFAULTS = {"loc": 0.0, "scale": 1.0}
_LOG_DENSITIES = frozenset(["logpdf", "logpmf", "pmf"])
_BY_SCIPY = ("mean", "var", "skewness", "kurtosis")
"""Moments, in the order of SciPy's formulas, which serve where the description has none."""
_QUANTILES = frozenset(["ppf", "isf"])
DENSITIES = frozenset(["pdf", "logpdf", "pmf", "logpmf"])


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and value > 0


def _tensor(value: Any) -> Tensor:
    return tensor_of(value)


def _infinite_if_nan(total: Any) -> Any:
    return ops.where(ops.isnan(total), _INF, -total)


# --- distributions with given parameters ----------------------------------------------------------


class Frozen:
    """A distribution with given parameters, and SciPy's methods without these.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([0.5, -1.0], requires_grad=True)
    >>> cr.scipy.stats.gamma(2.0, scale=3.0).logpdf(x)
    tensor([-3.0570,    -inf], grad_fn=<WhereBackward0>)
    """

    def __init__(self, dist: Distribution, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        dist._bound(args, kwds)
        self.dist, self.args, self.kwds = dist, args, kwds

    def __repr__(self) -> str:
        given = [*map(repr, self.args), *[f"{name}={x!r}" for name, x in self.kwds.items()]]
        return f"<chainrule.scipy.stats.{self.dist.name}({', '.join(given)})>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("dist", "args", "kwds"):
            raise AttributeError(name)
        if name not in _METHODS:
            self.dist._passed(name, _nothing)(*self.args, **self.kwds)
            return getattr(self.of_scipy, name)
        method, args, kwds = getattr(self.dist, name), self.args, self.kwds
        if name == "expect":
            given = dict(zip(self.dist.parameters, self.dist._bound(args, kwds), strict=True))
            after = {key: given.pop(key) for key in ("loc", "scale") if key in given}
            return functools.partial(method, args=tuple(given.values()), **after)
        if name == "stats":
            return lambda moments="mv": method(*args, **kwds, moments=moments)
        if name in EVALUATE or name == "interval":
            return lambda x, **settings: method(x, *args, **kwds, **settings)
        return lambda: method(*args, **kwds)

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Return SciPy's draws, which have no derivative by the parameters."""
        size = () if size is None else size
        return self.dist.rvs(*self.args, **self.kwds, size=size, random_state=random_state)

    @property
    def of_scipy(self) -> Any:
        """SciPy's distribution with these parameters."""
        return self.dist.of_scipy(*arrays_of(self.args), **arrays_of(self.kwds))


def _nothing(*_: Any, **__: Any) -> None:
    pass


_METHODS = {
    *EVALUATE,
    *("mean", "var", "std", "entropy", "median", "interval", "stats", "support", "expect"),
}

TABLE: dict[str, Distribution] = {}
"""The distributions that are described, by name."""


def describe(name: str, shapes: str, log_density: Function, **functions: Any) -> Distribution:
    """Describe a distribution, and return it."""
    made = TABLE[name] = Distribution(Description(name, shapes, log_density, **functions))
    return made


def _by_name(name: str) -> Any:
    return getattr(import_module("chainrule.scipy.stats"), name)
