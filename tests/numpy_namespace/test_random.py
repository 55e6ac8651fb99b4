"""Draws of `chainrule.numpy.random`: NumPy's numbers, differentiable by location and scale."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import chainrule as cr
import chainrule.numpy as np

PARAMETERS = {
    **dict.fromkeys(["normal", "laplace", "logistic", "gumbel", "uniform"], (0.3, 2.0)),
    **dict.fromkeys(["exponential", "rayleigh"], (2.0,)),
    **dict.fromkeys(["weibull", "pareto", "power"], (1.5,)),
    "lognormal": (0.3, 0.5),
    "triangular": (0.1, 0.4, 2.0),
}
KINDS = {"Generator": "default_rng", "RandomState": "RandomState"}


def draw(module: Any, kind: str, name: str, *args: Any) -> Any:
    return getattr(getattr(module.random, KINDS[kind])(3), name)(*args)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PARAMETERS)
def test_draws_are_numpys_and_so_are_their_differences(kind: str, name: str) -> None:
    at = PARAMETERS[name]
    for k in range(len(at)):

        def total(t: Any, module: Any = np, k: int = k) -> Any:
            return draw(module, kind, name, *at[:k], t, *at[k + 1 :], 5).sum()

        value, slope = cr.value_and_grad(total)(at[k])
        h = 1e-6
        difference = (total(at[k] + h, numpy) - total(at[k] - h, numpy)) / (2 * h)
        assert value == pytest.approx(total(at[k], numpy), rel=1e-13)
        assert slope == pytest.approx(difference, rel=1e-6, abs=1e-8)


def test_shapes_follow_the_parameters() -> None:
    scale = numpy.array([1.0, 2.0, 3.0])
    found = cr.grad(lambda s: np.random.default_rng(0).normal(0.0, s).sum())(scale)
    numpy.testing.assert_allclose(found, numpy.random.default_rng(0).standard_normal(3))
    with pytest.raises(ValueError, match="scale < 0"):
        cr.grad(lambda s: np.random.default_rng(0).normal(0.0, s))(-1.0)


def test_the_stream_goes_on_where_numpys_does() -> None:
    def second(t: Any) -> Any:
        rng = np.random.default_rng(0)
        rng.normal(0.0, t, 3)
        return t * rng.random()

    rng = numpy.random.default_rng(0)
    rng.normal(size=3)
    assert cr.grad(second)(1.0) == rng.random()


def test_functions_of_the_module_share_numpys_state() -> None:
    np.random.seed(0)
    found = cr.grad(lambda t: np.random.normal(0.0, t, 3).sum())(1.0)
    numpy.random.seed(0)
    assert found == pytest.approx(numpy.random.randn(3).sum())


@pytest.mark.parametrize("kind", KINDS)
def test_other_orders_of_what_is_differentiated(kind: str) -> None:
    x, weights = numpy.arange(4.0), numpy.array([1.0, -2.0, 3.0, 5.0])

    def shuffled(x: Any) -> Any:
        y = x * 1.0
        draw(np, kind, "shuffle", y)
        return y

    for order in (lambda x: draw(np, kind, "permutation", x), shuffled):
        value, slope = cr.value_and_grad(lambda x, f=order: (f(x) * weights).sum())(x)
        assert value == (draw(numpy, kind, "permutation", x) * weights).sum()
        assert value == slope @ x
    chosen = cr.grad(lambda x: draw(np, kind, "choice", x, 3).sum())(x)
    assert chosen @ x == draw(numpy, kind, "choice", x, 3).sum()


def test_draws_without_a_smooth_path_are_errors() -> None:
    for name, args in {"poisson": (), "gamma": (2.0,), "beta": (2.0,)}.items():
        with pytest.raises(cr.MissingRuleError, match=rf"numpy.random.{name}.*mean \+ L"):
            cr.grad(lambda t, n=name, a=args: draw(np, "Generator", n, t, *a).sum())(1.5)
    scaled = cr.grad(lambda t: draw(np, "Generator", "gamma", 2.0, t, 3).sum())(1.5)
    assert scaled == pytest.approx(draw(numpy, "Generator", "standard_gamma", 2.0, 3).sum())


def test_draws_are_arrays_that_record() -> None:
    def written(t: Any) -> Any:
        noise = np.random.default_rng(0).normal(size=3)
        noise[0] = t
        return noise.sum() * t

    assert isinstance(np.random.default_rng(0), numpy.random.Generator)
    assert isinstance(np.random.default_rng(0).normal(), float)
    noise = numpy.random.default_rng(0).normal(size=3)[1:].sum()
    assert cr.grad(written)(2.0) == pytest.approx(4.0 + noise)
