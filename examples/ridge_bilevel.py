"""Choose the penalties of a ridge regression by the gradient of the validation loss.

The fit is the solution of an inner problem, and the validation loss depends on it. The derivative
of the fit with respect to the penalties follows from the implicit function theorem: no iteration of
the inner solver is differentiated. Data: the diabetes study that comes with scikit-learn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes

import chainrule as cr


def data() -> tuple[Any, Any, Any, Any]:
    """Return features and target for training, and for validation."""
    x, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    x, y = x[order] / x.std(0), (y[order] - y.mean()) / y.std()
    return x[:60], y[:60], x[60:], y[60:]


def fit(log_penalties: Any, x: Any, y: Any) -> Any:
    """Return the coefficients that minimise the penalised sum of squares."""

    def slope(w: Any, log_penalties: Any) -> Any:
        return x.T @ (x @ w - y) + np.exp(log_penalties) * w

    def solve(log_penalties: Any) -> Any:
        return np.linalg.solve(x.T @ x + np.diag(np.exp(log_penalties)), x.T @ y)

    return cr.implicit_function(solve, slope)(log_penalties)


def validation_loss(log_penalties: Any, x: Any, y: Any, x_new: Any, y_new: Any) -> Any:
    """Return the mean squared error on data that the fit has not seen."""
    return ((x_new @ fit(log_penalties, x, y) - y_new) ** 2).mean()


def main() -> dict[str, float]:
    """Print the validation loss with one penalty, and with one for each feature."""
    x, y, x_new, y_new = data()
    p = x.shape[1]
    given = (x, y, x_new, y_new)
    losses = {"none": float(validation_loss(np.full(p, -20.0), *given))}

    def of_one(log_penalty: Any, *given: Any) -> Any:
        return validation_loss(log_penalty * np.ones(p), *given)

    one = cr.scipy.optimize.minimize(of_one, 0.0, given)
    losses["one for all"] = one.fun
    each = cr.scipy.optimize.minimize(
        validation_loss, np.full(p, one.x), given, bounds=[(-5, 12)] * p
    )
    losses["one for each"] = each.fun
    for name, loss in losses.items():
        print(f"penalty: {name:13} validation loss {loss:.4f}")
    print(f"the best common penalty: {np.exp(one.x):.2f}")
    print("penalties of the features:", *np.exp(each.x).round(1))
    by_data = cr.grad(lambda y: validation_loss(each.x, x, y, x_new, y_new))(y)
    print("the three observations that the loss depends on most:", *np.argsort(-abs(by_data))[:3])
    curvature = cr.hessian(of_one)(one.x, *given)
    print(f"second derivative at the best common penalty: {curvature:.4f}")
    return losses


if __name__ == "__main__":
    main()
