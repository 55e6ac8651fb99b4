"""Special functions: the names of `scipy.special`."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import scipy.special as _scipy

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.tracer import isbox, notrace_primitive
from chainrule.numpy.array_class import as_ndarrays
from chainrule.special import logsumexp as _logsumexp
from chainrule.special import polygamma as _polygamma

# Its ufuncs record by themselves, called with recorded arrays.
globals().update(
    {
        name: value
        for name in _scipy.__all__
        if not isinstance(value := getattr(_scipy, name), types.ModuleType)
    }
)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


gammasgn: Callable[..., Any] = notrace_primitive(_scipy.gammasgn)


def polygamma(n: Any, x: Any) -> Any:
    """Return the derivative of order `n` of digamma, as `scipy.special.polygamma` does."""
    return as_ndarrays(_polygamma(int(n), x)) if isbox(x) else _scipy.polygamma(n, x)


def multigammaln(a: Any, d: int) -> Any:
    """Return the logarithm of the multivariate gamma function, as `scipy.special` does."""
    shifted = np.expand_dims(a, -1) - np.arange(d) / 2
    return d * (d - 1) / 4 * np.log(np.pi) + np.sum(_scipy.gammaln(shifted), -1)


def logsumexp(x: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    """Return log Σ b exp(x), as `scipy.special.logsumexp` does."""
    if not isbox(x) and not isbox(b):
        return _scipy.logsumexp(x, axis=axis, b=b, keepdims=keepdims)
    if b is None:
        axes = tuple(range(np.ndim(x))) if axis is None else axis
        return as_ndarrays(_logsumexp(x, axes, keepdims))
    largest = notrace_primitive(np.max)(x, axis=axis, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    terms = np.exp(x - largest)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(b * terms, axis=axis, keepdims=True))
    found = total + largest
    return found if keepdims else np.squeeze(found, axis=axis)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Return x - logsumexp(x), as `scipy.special.log_softmax` does."""
    return x - logsumexp(x, axis=axis, keepdims=True)


def softmax(x: Any, axis: Any = None) -> Any:
    """Return exp(x) over its sum, as `scipy.special.softmax` does."""
    return np.exp(log_softmax(x, axis))
