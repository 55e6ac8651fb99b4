"""A Kalman filter, its variances found by maximum likelihood.

A level that wanders, with a slope that wanders too, is observed with noise: the local linear trend
of Harvey (1989). The filter gives the likelihood of the observations, chainrule its gradient with
respect to the three variances, and their inverse Hessian the error bars. Data: made by a formula.
"""

from __future__ import annotations

from typing import Any

import numpy

import chainrule as cr
import chainrule.numpy as np

TRANSITION = numpy.array([[1.0, 1.0], [0.0, 1.0]])  # the level moves by the slope
OBSERVED = numpy.array([1.0, 0.0])


def data(count: int = 100) -> Any:
    """Return observations of a trend, whose true standard deviations are 0.3, 0.05 and 1."""
    rng = numpy.random.default_rng(3)
    slope = 0.2 + numpy.cumsum(0.05 * rng.normal(size=count))
    level = numpy.cumsum(slope + 0.3 * rng.normal(size=count))
    return level + rng.normal(size=count)


def negative_log_likelihood(p: Any, y: Any) -> Any:
    """Return it from the errors of the filter's predictions; `p` has logarithms of deviations."""
    wandering = np.diag(np.exp(2 * np.array([p["level"], p["slope"]])))
    noise = np.exp(2 * p["noise"])
    mean, covariance = np.array([y[0], 0.0]), np.diag(np.array([10.0, 1.0]))
    total = 0.0
    for observation in y[1:]:
        mean = TRANSITION @ mean
        covariance = TRANSITION @ covariance @ TRANSITION.T + wandering
        error = observation - OBSERVED @ mean
        variance = OBSERVED @ covariance @ OBSERVED + noise
        gain = covariance @ OBSERVED / variance
        mean = mean + gain * error
        covariance = covariance - variance * np.outer(gain, gain)
        total = total + 0.5 * (np.log(2 * numpy.pi * variance) + error**2 / variance)
    return total


def main() -> dict[str, float]:
    """Print the deviations that the observations make most likely, and their error bars."""
    y = data()
    start = {"level": -1.0, "slope": -2.0, "noise": 0.0}

    def fit_to(y: Any) -> Any:
        return cr.scipy.optimize.minimize(negative_log_likelihood, start, (y,), method="BFGS")

    fit = fit_to(y)
    print(f"{fit.message} {fit.nit} steps, negative log likelihood {fit.fun:.3f}")
    names = list(start)
    second = cr.hessian(negative_log_likelihood)(fit.x, y)
    hessian = numpy.array([[second[a][b] for b in names] for a in names])
    errors = numpy.sqrt(numpy.diag(numpy.linalg.inv(hessian)))
    print("deviation of        true   found   68 % interval")
    for name, true, error in zip(names, (0.3, 0.05, 1.0), errors, strict=True):
        found = numpy.exp(fit.x[name])
        low, high = numpy.exp(fit.x[name] - error), numpy.exp(fit.x[name] + error)
        print(f"{name:15} {true:8.2f} {found:7.3f}   {low:.3f} to {high:.3f}")

    influence = cr.grad(lambda y: fit_to(y).x["noise"])(y)
    print(f"observation {abs(influence).argmax()} moves the deviation of the noise most")
    return dict(fit.x)


if __name__ == "__main__":
    main()
