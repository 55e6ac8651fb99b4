"""Maximum-likelihood fits by SciPy's minimisers with our gradients, beside SciPy's `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_stats = pytest.importorskip("scipy.stats")
scipy_optimize = pytest.importorskip("scipy.optimize")

# true parameters (shapes, loc, scale), the parameters that are fixed, where to begin
FITS: dict[str, tuple[tuple[float, ...], dict[int, float], tuple[float, ...]]] = {
    "norm": ((1.0, 2.0), {}, (0.0, 1.0)),
    "gamma": ((2.5, 0.0, 1.4), {1: 0.0}, (1.0, 1.0)),
    "beta": ((2.0, 3.5, 0.0, 1.0), {2: 0.0, 3: 1.0}, (1.0, 1.0)),
    "weibull_min": ((1.7, 0.0, 2.0), {1: 0.0}, (1.0, 1.0)),
    "lognorm": ((0.6, 0.0, 2.0), {1: 0.0}, (1.0, 1.0)),
    "t": ((4.0, 1.0, 2.0), {}, (3.0, 0.0, 1.0)),
    "gumbel_r": ((1.0, 2.0), {}, (0.0, 1.0)),
    "logistic": ((1.0, 2.0), {}, (0.0, 1.0)),
    "invgauss": ((0.7, 0.0, 2.0), {1: 0.0}, (1.0, 1.0)),
    "genextreme": ((0.1, 1.0, 2.0), {}, (0.05, 0.5, 3.0)),
    "skewnorm": ((3.0, 1.0, 2.0), {}, (1.0, 0.0, 1.5)),
}


@pytest.mark.parametrize("name", FITS)
def test_the_fit_is_at_least_as_good_as_scipys(name: str) -> None:
    true, fixed, start = FITS[name]
    ours, scipys = getattr(cr.scipy.stats, name), getattr(scipy_stats, name)
    data = scipys.rvs(*true, size=300, random_state=2)
    free = [i for i in range(len(true)) if i not in fixed]
    positive = [i for i in free if i == len(true) - 1 or (i < len(true) - 2 and true[i] > 0.5)]

    def full(theta: Any) -> list[Any]:
        """Return all parameters, of which positive ones are given by their logarithm."""
        found: list[Any] = [fixed.get(i) for i in range(len(true))]
        for k, i in enumerate(free):
            found[i] = np.exp(theta[k]) if i in positive else theta[k]
        return found

    def loss(theta: Any) -> Any:
        return -ours.logpdf(data, *full(theta)).mean()

    first = [np.log(x) if i in positive else x for i, x in zip(free, start, strict=True)]
    found = scipy_optimize.minimize(loss, first, jac=cr.grad(loss), method="BFGS")
    keywords = {f"f{i}" if i < len(true) - 2 else ("floc", "fscale")[i - len(true) + 2]: value
                for i, value in fixed.items()}  # fmt: skip
    wanted = scipys.nnlf(scipys.fit(data, **keywords), data) / len(data)
    assert np.abs(cr.grad(loss)(found.x)).max() < 1e-4
    assert found.fun <= wanted + 1e-6
    assert scipys.nnlf(full(found.x), data) / len(data) == pytest.approx(found.fun, 1e-10)
