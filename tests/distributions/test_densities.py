"""Log-densities, entropies, moments and their gradients are PyTorch's, and SciPy's."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

import chainrule as cr
from chainrule import distributions as D
from chainrule.checks import gradcheck, gradgradcheck
from helpers.distribution_cases import CASES, make, parameters_of, values_of

LOOSE = {"VonMises": 2e-7, "Multinomial": 1e-7}
"""PyTorch's tolerances: polynomials of eight digits, single precision."""

UNLIKE_PYTORCH = {
    "Kumaraswamy": ["mode"],  # there nan, where both parameters are above 1
    "Weibull": ["mode"],  # there nan, where it is 0
    "Beta": ["cdf"],  # there is none
    "Gamma": ["cdf"],  # no gradient by the concentration there: see the test of SciPy's
    "Chi2": ["cdf"],
    "InverseGamma": ["cdf"],
    "GeneralizedPareto": ["log_prob", "cdf"],  # single precision only
    "Uniform": ["mode"],  # nan in both
}


def quantities(m: Any, title: str) -> dict[str, Any]:
    """Return all that is known of a distribution by name; None if that isn't implemented."""
    dist, tensors = make(m, title)
    values = values_of(m, title)
    levels = m.tensor(np.array([[0.1, 0.7], [0.4, 0.95]]))
    calls = {
        "log_prob": lambda: dist.log_prob(values),
        "cdf": lambda: dist.cdf(values),
        "icdf": lambda: dist.icdf(levels),
        **{name: getattr(dist, name) for name in ("entropy", "perplexity", "enumerate_support")},
        **{name: lambda name=name: getattr(dist, name) for name in ("mean", "variance", "stddev")},
        "mode": lambda: dist.mode,
        "covariance_matrix": lambda: dist.covariance_matrix,
        "precision_matrix": lambda: dist.precision_matrix,
    }
    found: dict[str, Any] = {"shapes": (tuple(dist.batch_shape), tuple(dist.event_shape))}
    for name, call in calls.items():
        if name in UNLIKE_PYTORCH.get(CASES[title][0], ()):
            continue
        try:
            result = call()
        except (NotImplementedError, AttributeError):
            found[name] = None
            continue
        found[name] = result.detach().numpy()
        for leaf in (*tensors.values(), values):
            leaf.grad = None
        if result.requires_grad:
            result.sum().backward(retain_graph=True)
        for leaf_name, leaf in {**tensors, "value": values}.items():
            grad = None if leaf.grad is None else leaf.grad.numpy()
            if grad is not None and leaf_name == "scale_tril":
                grad = np.tril(grad)  # PyTorch's has numbers above the diagonal
            found[name, leaf_name] = grad
    return found


@pytest.mark.parametrize("title", CASES)
def test_everything_follows_pytorch(title: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = quantities(cr, title), quantities(torch, title)
    assert ours["shapes"] == theirs["shapes"]
    for name, wanted in theirs.items():
        if wanted is None or name == "shapes":
            assert ours[name] is None or name not in ("log_prob", "entropy", "mean"), name
            continue
        # PyTorch's second derivatives of lgamma have nine digits.
        tolerance = 1e-10 if "log_prob" in name else 2e-9
        tolerance = LOOSE.get(CASES[title][0], tolerance)
        assert ours[name].shape == wanted.shape, name
        np.testing.assert_allclose(ours[name], wanted, tolerance, tolerance, err_msg=str(name))


def checked(title: str) -> tuple[Any, list[Any]]:
    """Return the log-density as a function of the parameters and values that it depends on."""
    tensors, others = parameters_of(cr, title)
    values = values_of(cr, title)
    names = list(tensors)
    family = getattr(D, CASES[title][0])
    differentiable = values.requires_grad and not family.__init__.__qualname__.startswith(
        ("Bern", "Cat", "OneHot", "Geo", "Binom", "Neg", "Multinomial", "Pois", "LKJ")
    )
    if family in (D.Dirichlet, D.RelaxedOneHotCategorical, D.LogisticNormal, D.Wishart):
        differentiable = False  # a nearby value is no value
    points = [*tensors.values(), *([values] if differentiable else [])]

    def log_prob(*arguments: Any) -> Any:
        given = dict(zip(names, arguments, strict=False))
        if "scale_tril" in given:
            given["scale_tril"] = given["scale_tril"].tril()
        for name in {"covariance_matrix", "precision_matrix"} & set(given):
            given[name] = (given[name] + given[name].mT) / 2
        dist = family(**others, **given, validate_args=False)
        return dist.log_prob(arguments[-1] if differentiable else values.detach())

    return log_prob, points


@pytest.mark.parametrize("title", CASES)
def test_gradients_agree_with_differences(title: str) -> None:
    log_prob, points = checked(title)
    assert gradcheck(log_prob, points, fast_mode=True)


@pytest.mark.thorough
@pytest.mark.parametrize("title", CASES)
def test_second_derivatives_agree_with_differences(title: str) -> None:
    log_prob, points = checked(title)
    assert gradgradcheck(log_prob, points, fast_mode=True)


@pytest.mark.parametrize("title", CASES)
def test_single_precision_is_double_precision_rounded(title: str) -> None:
    found = []
    for dtype in ("float32", "float64"):
        dist, tensors = make(cr, title, dtype)
        result = dist.log_prob(values_of(cr, title, dtype))
        result.sum().backward()
        if title != "Binomial of logits":  # its count is of double precision
            assert result.dtype == dtype
        found.append([result.detach().numpy(), *(t.grad.numpy() for t in tensors.values())])
    for single, double in zip(*found, strict=True):
        size = max(1.0, np.abs(double).max())
        np.testing.assert_allclose(single, double, rtol=2e-5, atol=2e-5 * size)


def in_scipy(stats: Any) -> dict[str, tuple[D.Distribution, Any]]:
    """Return distributions and SciPy's."""
    return {
        "beta": (D.Beta(0.7, 2.5), stats.beta(0.7, 2.5)),
        "cauchy": (D.Cauchy(0.5, 2.0), stats.cauchy(0.5, 2.0)),
        "chi2": (D.Chi2(3.5), stats.chi2(3.5)),
        "exponential": (D.Exponential(2.0), stats.expon(scale=0.5)),
        "F": (D.FisherSnedecor(3.0, 7.0), stats.f(3.0, 7.0)),
        "gamma": (D.Gamma(0.3, 2.0), stats.gamma(0.3, scale=0.5)),
        "Pareto": (D.Pareto(2.0, 5.5), stats.pareto(5.5, scale=2.0)),
        "generalised Pareto": (D.GeneralizedPareto(0.5, 2.0, 0.1), stats.genpareto(0.1, 0.5, 2.0)),
        "bounded": (D.GeneralizedPareto(0.5, 2.0, -0.5), stats.genpareto(-0.5, 0.5, 2.0)),
        "Gumbel": (D.Gumbel(0.5, 2.0), stats.gumbel_r(0.5, 2.0)),
        "half Cauchy": (D.HalfCauchy(2.0), stats.halfcauchy(scale=2.0)),
        "half normal": (D.HalfNormal(2.0), stats.halfnorm(scale=2.0)),
        "inverse gamma": (D.InverseGamma(4.5, 2.0), stats.invgamma(4.5, scale=2.0)),
        "Laplace": (D.Laplace(0.5, 2.0), stats.laplace(0.5, 2.0)),
        "log-normal": (D.LogNormal(0.5, 0.4), stats.lognorm(0.4, scale=np.exp(0.5))),
        "normal": (D.Normal(0.5, 2.0), stats.norm(0.5, 2.0)),
        "t": (D.StudentT(4.5, 0.5, 2.0), stats.t(4.5, 0.5, 2.0)),
        "uniform": (D.Uniform(-1.0, 3.0), stats.uniform(-1.0, 4.0)),
        "von Mises": (D.VonMises(0.0, 3.0), stats.vonmises(3.0)),
        "Weibull": (D.Weibull(2.0, 1.5), stats.weibull_min(1.5, scale=2.0)),
        "Bernoulli": (D.Bernoulli(0.3), stats.bernoulli(0.3)),
        "binomial": (D.Binomial(7, 0.3), stats.binom(7, 0.3)),
        "geometric": (D.Geometric(0.3), stats.geom(0.3, loc=-1)),
        "negative binomial": (D.NegativeBinomial(2.5, 0.6), stats.nbinom(2.5, 0.4)),
        "Poisson": (D.Poisson(4.0), stats.poisson(4.0)),
    }


@pytest.fixture(scope="module", autouse=True)
def double_precision() -> Any:
    cr.set_default_dtype(cr.float64)
    yield
    cr.set_default_dtype(cr.float32)


@pytest.mark.parametrize("name", in_scipy(MagicMock()))
def test_densities_and_draws_are_those_of_scipy(name: str) -> None:
    stats = pytest.importorskip("scipy.stats")
    ours, theirs = in_scipy(stats)[name]
    levels = np.array([0.01, 0.3, 0.8])
    values = theirs.ppf(levels)
    is_discrete = ours.support.is_discrete
    density = theirs.logpmf(values) if is_discrete else theirs.logpdf(values)
    np.testing.assert_allclose(ours.log_prob(cr.tensor(values)), density, rtol=1e-10)
    if name != "von Mises":  # the circular variance
        for found, wanted in ((ours.mean, theirs.mean()), (ours.variance, theirs.var())):
            if np.isfinite(wanted):
                np.testing.assert_allclose(found, wanted, rtol=1e-10)
    if not is_discrete and name not in ("von Mises", "F"):
        np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-7)
    for method, x, wanted in (("cdf", values, theirs.cdf(values)), ("icdf", levels, values)):
        try:
            found = getattr(ours, method)(cr.tensor(x))
        except NotImplementedError:
            continue
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    cr.manual_seed(0)
    drawn = ours.sample((1500,)).numpy()
    if is_discrete:
        kinds, counts = np.unique(drawn, return_counts=True)
        expected = theirs.pmf(kinds) * len(drawn)
        common = expected > 5
        distance = np.sum((counts - expected)[common] ** 2 / expected[common])
        assert distance < stats.chi2(common.sum()).ppf(1 - 1e-4)
    else:
        assert stats.kstest(drawn, theirs.cdf).pvalue > 1e-4


def test_vectors_and_matrices_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    mean, covariance = np.array([0.5, -1.0]), np.array([[2.0, 0.3], [0.3, 1.0]])
    x = np.array([0.1, 0.7])
    normal = D.MultivariateNormal(cr.tensor(mean), cr.tensor(covariance))
    theirs = stats.multivariate_normal(mean, covariance)
    np.testing.assert_allclose(normal.log_prob(x), theirs.logpdf(x), rtol=1e-12)
    np.testing.assert_allclose(normal.entropy(), theirs.entropy(), rtol=1e-12)
    wishart = D.Wishart(3.5, cr.tensor(covariance))
    theirs = stats.wishart(3.5, covariance)
    np.testing.assert_allclose(wishart.log_prob(covariance), theirs.logpdf(covariance), rtol=1e-12)
    np.testing.assert_allclose(wishart.entropy(), theirs.entropy(), rtol=1e-12)
    np.testing.assert_allclose(wishart.variance, theirs.var(), rtol=1e-12)
    shares = np.array([0.2, 0.3, 0.5])
    dirichlet, theirs = D.Dirichlet(cr.tensor(4 * shares)), stats.dirichlet(4 * shares)
    np.testing.assert_allclose(dirichlet.log_prob(shares), theirs.logpdf(shares), rtol=1e-12)
    np.testing.assert_allclose(dirichlet.entropy(), theirs.entropy(), rtol=1e-12)
    counts = np.array([2.0, 1.0, 4.0])
    multinomial, theirs = D.Multinomial(7, cr.tensor(shares)), stats.multinomial(7, shares)
    np.testing.assert_allclose(multinomial.log_prob(counts), theirs.logpmf(counts), rtol=1e-12)
    np.testing.assert_allclose(multinomial.entropy(), theirs.entropy(), rtol=1e-12)


@pytest.mark.parametrize("logit", [0.0, 1e-9, 9e-5, 1.1e-4, 0.59, 0.61, -3.0, 40.0, -700.0])
def test_continuous_bernoulli_is_accurate_everywhere(logit: float) -> None:
    """Both sides of each threshold: the moments are the derivatives of the log-normaliser."""
    logits = cr.tensor(logit, requires_grad=True)
    dist = D.ContinuousBernoulli(logits=logits)
    (mean,) = cr.autograd_grad(dist._log_normalizer(logits), [logits], create_graph=True)
    (variance,) = cr.autograd_grad(mean, [logits], retain_graph=True)
    np.testing.assert_allclose(dist.mean.detach(), mean.detach(), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(dist.variance.detach(), variance, rtol=1e-9, atol=1e-14)
    x = cr.tensor([0.2, 0.7])
    level = dist.cdf(x)
    assert bool(((level >= 0) & (level <= 1)).all())
    if abs(logit) < 100:
        np.testing.assert_allclose(dist.icdf(level).detach(), x, rtol=1e-11)
        (slope,) = cr.autograd_grad(dist.cdf(x).sum(), [logits])
        step = max(abs(logit), 1.0) * 1e-3
        near = [D.ContinuousBernoulli(logits=logit + h).cdf(x).sum() for h in (step, -step)]
        np.testing.assert_allclose(slope, (near[0] - near[1]) / (2 * step), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("logit", [0.59, 0.61, -40.0, 1e9, -3e6])
def test_steep_continuous_bernoulli_densities_do_not_cancel(logit: float) -> None:
    """They are the exponential distribution's of the distance to the likelier end."""
    stats = pytest.importorskip("scipy.stats")
    dist = D.ContinuousBernoulli(logits=cr.tensor(logit, dtype=cr.float32))
    distance = np.array([0.0, 0.5 / abs(logit)])
    x = cr.tensor(1 - distance if logit > 0 else distance, dtype=cr.float32)
    if logit > 1e6:
        x, distance = cr.ones(1, dtype=cr.float32), np.zeros(1)
    limit = stats.expon(scale=1 / abs(logit))
    if abs(logit) < 30:  # SciPy's overflows
        limit = stats.truncexpon(abs(logit), scale=1 / abs(logit))
    np.testing.assert_allclose(dist.log_prob(x), limit.logpdf(distance), rtol=1e-5)
    np.testing.assert_allclose(dist.entropy(), limit.entropy(), rtol=1e-5)


@pytest.mark.parametrize("kind", ["VonMises", "Gamma", "Beta", "Normal", "Poisson", "StudentT"])
def test_numbers_as_parameters_give_draws_without_dimensions(kind: str) -> None:
    dist = getattr(D, kind)(*(0.5, 2.0)[: 1 if kind in ("Poisson", "StudentT") else 2])
    drawn = dist.sample()
    assert drawn.shape == ()
    assert drawn.dtype == cr.get_default_dtype()
    assert dist.sample((3,)).shape == (3,)


@pytest.mark.parametrize("shape", [0.0, 1e-7, 0.9e-3, 1.1e-3, -1e-3])
def test_generalised_pareto_is_smooth_at_zero(shape: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    x = np.array([0.5, 2.0])
    dist = D.GeneralizedPareto(0.0, 1.0, cr.tensor(shape))
    np.testing.assert_allclose(dist.log_prob(x), stats.genpareto(shape).logpdf(x), rtol=1e-11)
    np.testing.assert_allclose(dist.icdf(dist.cdf(x)), x, rtol=1e-12)

    def log_prob(shape: Any) -> Any:
        return D.GeneralizedPareto(0.0, 1.0, shape).log_prob(x)

    assert gradcheck(log_prob, cr.tensor(shape, requires_grad=True), fast_mode=True)


@np.errstate(divide="ignore")  # of the density at the ends
def test_at_the_ends_of_the_unit_interval_the_slope_of_the_cdf_is_the_density() -> None:
    for a, b in ((2.0, 3.0), (1.0, 1.0), (2.0, 1.0), (1.0, 2.5)):
        dist = D.Kumaraswamy(*cr.tensor([a, b], dtype=cr.float64))
        ends = cr.tensor([0.0, 1.0], dtype=cr.float64)
        slopes = cr.grad(lambda x, dist=dist: dist.cdf(x).sum())(ends)
        np.testing.assert_array_equal(slopes, dist.log_prob(ends).exp())
    shapes = cr.tensor([2.0, 3.0], dtype=cr.float64, requires_grad=True)
    D.Kumaraswamy(shapes[0], shapes[1]).cdf(cr.ones(1, dtype=cr.float64)).sum().backward()
    np.testing.assert_array_equal(shapes.grad, [0.0, 0.0])  # the value is 1 whatever they are
