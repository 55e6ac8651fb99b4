"""The multivariate normal distribution."""

from __future__ import annotations

from typing import Any

import scipy.stats as _scipy

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.tracer import isbox

__all__ = ["entropy", "logpdf", "pdf", "rvs"]

rvs = _scipy.multivariate_normal.rvs


def _matrix(cov: Any, n: int) -> Any:
    """Return a covariance given as a number, as variances or as a matrix as the matrix."""
    if np.ndim(cov) == 0:
        return cov * np.eye(n)
    return np.diag(cov) if np.ndim(cov) == 1 else cov


def logpdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """Return the logarithm of the density, as `scipy.stats.multivariate_normal` does.

    The derivative by a covariance is that by all of its elements, as if they were independent.
    """
    if not any(isbox(value) for value in (x, mean, cov)):
        return _scipy.multivariate_normal.logpdf(x, mean, cov, allow_singular)
    if allow_singular and isbox(cov):
        raise NotImplementedError(
            "multivariate_normal.logpdf: with allow_singular=True it has no derivative by cov: add "
            "a small multiple of the identity to cov in its place"
        )
    n = int(np.size(mean)) if mean is not None else (np.shape(cov) if np.ndim(cov) > 1 else (1,))[0]
    matrix = _matrix(cov, n)
    deviation = x if mean is None else x - mean
    if np.ndim(deviation) == 0:
        deviation = np.reshape(deviation, (1,))
    elif n == 1 and np.shape(deviation)[-1] != 1:
        deviation = deviation[..., None]
    if allow_singular:
        values, vectors = np.linalg.eigh(matrix)
        kept = values > 1e6 * np.finfo(float).eps * np.max(np.abs(values))
        along = np.dot(deviation, vectors[:, kept])
        square, logdet = np.sum(along**2 / values[kept], -1), np.sum(np.log(values[kept]))
        n = int(np.sum(kept))
    else:
        square = np.sum(deviation * np.dot(deviation, np.linalg.inv(matrix).T), -1)
        _, logdet = np.linalg.slogdet(matrix)
    return -(square + logdet + n * np.log(2 * np.pi)) / 2


def pdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """Return the density, as `scipy.stats.multivariate_normal` does."""
    return np.exp(logpdf(x, mean, cov, allow_singular))


def entropy(mean: Any = None, cov: Any = 1.0) -> Any:
    """Return the entropy in nats, as `scipy.stats.multivariate_normal` does."""
    n = np.shape(cov)[-1] if np.ndim(cov) else np.size(0.0 if mean is None else mean)
    _, logdet = np.linalg.slogdet(_matrix(cov, int(n)))
    return (n * np.log(2 * np.pi * np.e) + logdet) / 2
