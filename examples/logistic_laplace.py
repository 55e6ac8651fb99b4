"""Logistic regression by Newton's method, with Laplace's error bars.

The posterior of the coefficients is approximated by a normal distribution: its mean is the minimum
of the negative log posterior, its covariance the inverse of the Hessian there. Data: the study of
breast cancer that comes with scikit-learn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

import chainrule as cr


def data() -> tuple[Any, Any, list[str]]:
    """Return standardised features, the labels as ±1, and the names of the coefficients."""
    found = load_breast_cancer()
    names = ["mean radius", "mean texture", "mean smoothness", "mean concavity", "mean symmetry"]
    columns = [list(found.feature_names).index(name) for name in names]
    x = found.data[:, columns]
    x = np.column_stack([np.ones(len(x)), (x - x.mean(0)) / x.std(0)])
    return x, np.where(found.target == 0, 1.0, -1.0), ["intercept", *names]


def negative_log_posterior(w: Any, x: Any, y: Any, scale: Any) -> Any:
    """Return it up to a constant: logistic likelihood, normal prior of a standard deviation."""
    return np.logaddexp(0, -y * (x @ w)).sum() + (w**2).sum() / (2 * scale**2)


def newton(w: Any, *given: Any) -> tuple[Any, Any]:
    """Return the minimum and the Hessian there."""
    gradient = cr.grad(negative_log_posterior)
    hessian = cr.compile(cr.hessian(negative_log_posterior))
    for step in range(20):
        slope = gradient(w, *given)
        print(f"step {step}: the gradient's length is {np.linalg.norm(slope):.1e}")
        if np.linalg.norm(slope) < 1e-8:
            break
        w = w - np.linalg.solve(hessian(w, *given), slope)
    return w, hessian(w, *given)


def mode_of(scale: Any, x: Any, y: Any) -> Any:
    """Return the minimum as a differentiable function of the prior's standard deviation."""
    return cr.scipy.optimize.minimize(
        negative_log_posterior, np.zeros(x.shape[1]), (x, y, scale), method="trust-exact"
    ).x


def main() -> tuple[Any, Any]:
    """Print coefficients, their error bars, and how they depend on the prior."""
    x, y, names = data()
    w, hessian = newton(np.zeros(x.shape[1]), x, y, 3.0)
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    by_prior = cr.jacobian(mode_of)(3.0, x, y)
    print(f"{'':16} coefficient   error   change with the prior's width")
    for name, value, error, change in zip(names, w, errors, by_prior, strict=True):
        print(f"{name:16} {value:11.3f} {error:7.3f} {change:12.4f}")
    hits = ((x @ w > 0) == (y > 0)).mean()
    print(f"{hits:.1%} of the tumours are classified correctly")
    return w, errors


if __name__ == "__main__":
    main()
