"""Draws: moments, derivatives by implicit differentiation, shapes, dtypes, seeds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import distributions as D
from chainrule.distributions import draws
from helpers.distribution_cases import CASES, make, parameters_of

REPARAMETRISED = [title for title in CASES if getattr(D, CASES[title][0]).has_rsample]
NO_MOMENTS = {"Cauchy", "HalfCauchy", "RelaxedBernoulli", "RelaxedOneHotCategorical", "VonMises"}
NO_MOMENTS |= {"LogisticNormal", "LKJCholesky", "Categorical"}
HEAVY = {"InverseGamma", "FisherSnedecor", "LogNormal", "Pareto", "StudentT"}  # of tails
BIASED = {"OneHotCategoricalStraightThrough", "OneHotCategorical"}


@pytest.mark.parametrize("title", CASES)
def test_shapes_dtypes_and_moments(title: str) -> None:
    dist, _ = make(cr, title)
    shape = (*dist.batch_shape, *dist.event_shape)
    cr.manual_seed(0)
    assert dist.sample().shape == shape
    drawn = dist.sample((4, 1000))
    assert drawn.shape == (4, 1000, *shape)
    assert not drawn.requires_grad
    assert bool(dist.support.check(drawn).all())
    cr.manual_seed(0)
    again = dist.sample(), dist.sample((4, 1000))
    assert again[1].equal(drawn)
    expanded = dist.expand((3, *dist.batch_shape))
    assert expanded.batch_shape == (3, *dist.batch_shape)
    assert expanded.sample((2,)).shape == (2, 3, *shape)
    if title != "Binomial of logits":  # its count is of double precision
        kind = drawn.dtype
        assert kind == cr.int64 or make(cr, title, "float32")[0].sample().dtype == cr.float32
    if CASES[title][0] in NO_MOMENTS:
        return
    mean, variance = (x.detach() for x in (dist.mean, dist.variance))
    error = (drawn.mean((0, 1)) - mean).abs() / (variance / 4000).sqrt()
    assert bool((error < 5).all())
    if CASES[title][0] not in HEAVY:
        assert bool(((drawn.var((0, 1)) / variance - 1).abs() < 0.4).all())


@pytest.mark.parametrize("title", REPARAMETRISED)
def test_the_mean_derivative_of_draws_is_that_of_the_mean(title: str) -> None:
    """The derivative of E x, and of E log x or E x² where there is one, by each parameter."""
    family = CASES[title][0]
    if family in NO_MOMENTS | BIASED:
        pytest.skip("it has no mean, or draws whose derivatives are biased")
    tensors, others = parameters_of(cr, title)
    rng = np.random.default_rng(0)
    for name, parameter in tensors.items():
        direction = rng.standard_normal(parameter.shape)
        if name in ("covariance_matrix", "precision_matrix"):
            direction = direction + np.swapaxes(direction, -1, -2)
        if name == "scale_tril":
            direction = np.tril(direction)
        fixed = {key: t.detach() for key, t in tensors.items() if key != name}

        def of(x: Any, call: Any, fixed: Any = fixed, name: str = name) -> Any:
            return call(getattr(D, family)(**others, **fixed, **{name: x}, validate_args=False))

        cr.manual_seed(0)
        point, tangent = parameter.detach(), cr.tensor(direction)
        _, each = cr.jvp(lambda x: of(x, lambda d: d.rsample((4000,))), (point,), (tangent,))
        _, wanted = cr.jvp(lambda x: of(x, lambda d: d.mean), (point,), (tangent,))
        spread = each.std(0) / math.sqrt(4000)
        assert bool(((each.mean(0) - wanted).abs() <= 5 * spread + 1e-9).all()), name


def test_derivatives_of_gamma_draws_are_those_of_quantiles() -> None:
    """To second order, in both modes: the draw is the quantile of a fixed level."""
    special = pytest.importorskip("scipy.special")
    cr.manual_seed(0)
    a = np.repeat([0.05, 0.3, 0.9, 1.0, 4.0, 50.0, 3000.0], 20)
    shape = cr.tensor(a, requires_grad=True)
    logs = draws.log_standard_gamma(shape)
    (slope,) = cr.autograd_grad(logs.sum(), [shape], create_graph=True)
    (second,) = cr.autograd_grad(slope.sum(), [shape])
    z = np.exp(logs.detach().numpy())
    in_bulk = (z > 1e-8) & (z < 1e8)
    upper = special.gammaincc(a, z)

    def quantile(a: Any) -> Any:
        low, level = upper > 0.5, special.gammainc(quantile.a, z)
        return np.log(np.where(low, special.gammaincinv(a, level), special.gammainccinv(a, upper)))

    quantile.a = a  # type: ignore[attr-defined]
    step = 2e-4 * a
    above, middle, below = (quantile(a + k * step) for k in (1, 0, -1))
    first = (above - below) / (2 * step)
    np.testing.assert_allclose(slope.detach()[in_bulk], first[in_bulk], rtol=1e-6, atol=1e-9)
    curved = (above - 2 * middle + below) / step**2
    np.testing.assert_allclose(second[in_bulk], curved[in_bulk], rtol=2e-3, atol=1e-5)


def test_derivatives_of_gamma_draws_follow_pytorch() -> None:
    torch = pytest.importorskip("torch")
    cr.manual_seed(0)
    a = np.repeat([0.1, 0.5, 2.0, 30.0], 50)
    shape = cr.tensor(a, requires_grad=True)
    drawn = D.Gamma(shape, 1.0).rsample()
    drawn.sum().backward()
    wanted = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(drawn.detach().numpy()))
    np.testing.assert_allclose(shape.grad, wanted.numpy(), rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize("concentration", [1e-4, 1e-3, 1e-2])
def test_small_concentrations_do_no_harm(concentration: float) -> None:
    """Draws of a gamma distribution that underflow; both sides of the series' threshold."""
    pytest.importorskip("scipy.special")
    cr.manual_seed(0)
    a = cr.full((300,), concentration, dtype=cr.float64, requires_grad=True)
    logs = draws.log_standard_gamma(a)
    assert bool(((logs < -60).any() & (logs > -700).any()) | (logs < -1000).any())
    (slope,) = cr.autograd_grad(logs.sum(), [a])
    # For tiny z, F = z^a / Γ(a + 1): log z = (log u + log Γ(a + 1)) / a
    wanted = (cr.digamma(a + 1) - logs) / a
    tiny = logs.detach() < -20
    np.testing.assert_allclose(slope[tiny], wanted.detach()[tiny], rtol=1e-6)
    shares = D.Dirichlet(cr.full((5,), concentration)).sample((100,))
    np.testing.assert_allclose(shares.sum(-1), 1, rtol=1e-6)
    assert bool((shares.max(-1)[0] > 0.5).float().mean() > 0.9)


def test_derivatives_of_von_mises_draws_are_those_of_quantiles() -> None:
    stats = pytest.importorskip("scipy.stats")
    cr.manual_seed(0)
    kappa = np.repeat([1e-3, 0.5, 2.0, 9.0, 40.0], 6)
    concentration = cr.tensor(kappa, requires_grad=True)
    angle = draws.von_mises_angle(concentration)
    (slope,) = cr.autograd_grad(angle.sum(), [concentration], create_graph=True)
    (second,) = cr.autograd_grad(slope.sum(), [concentration])
    level = stats.vonmises(kappa).cdf(angle.detach().numpy())
    step = 1e-3 * kappa
    above, middle, below = (stats.vonmises(kappa + k * step).ppf(level) for k in (1, 0, -1))
    np.testing.assert_allclose(slope.detach(), (above - below) / (2 * step), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(second, (above - 2 * middle + below) / step**2, rtol=2e-2, atol=1e-3)


def test_derivatives_under_vmap_and_compiled() -> None:
    pytest.importorskip("scipy.special")

    def slope(a: Any) -> Any:
        return cr.grad(lambda a: D.Gamma(a, 2.0).rsample().log().sum())(a)

    a = cr.tensor([0.5, 2.0, 5.0], dtype=cr.float64)
    wanted = None
    compiled = cr.compile(slope)
    for run in (slope, compiled, compiled):
        cr.manual_seed(1)
        found = run(a)
        wanted = found if wanted is None else wanted
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
    with pytest.warns(cr.PerformanceWarning, match="standard_gamma"):
        mapped = cr.vmap(slope, randomness="different")(a)
    assert mapped.shape == (3,)
    assert bool((mapped > 0).all())


def test_straight_through_draws_have_the_derivative_of_the_probabilities() -> None:
    p = cr.tensor([0.2, 0.8], requires_grad=True)
    drawn = D.OneHotCategoricalStraightThrough(logits=p).rsample((3,))
    assert bool(((drawn == 0) | (drawn == 1)).all())
    weights = cr.tensor([1.0, 3.0])
    (found,) = cr.autograd_grad((drawn * weights).sum(), [p])
    (wanted,) = cr.autograd_grad((cr.softmax(p, -1) * weights * 3).sum(), [p])
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("title", [t for t in CASES if t not in REPARAMETRISED])
def test_others_say_what_to_do(title: str) -> None:
    with pytest.raises(NotImplementedError, match="log_prob"):
        make(cr, title)[0].rsample()
