"""Kullback-Leibler divergences: PyTorch's, and averages over draws."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import pytest

import chainrule as cr
from chainrule import distributions as D
from chainrule.distributions.kl import _FORMULAS
from helpers.distribution_cases import CASES, make

# One title for each family with a formula; parameters of q are nine tenths of those of p.
TITLES = {CASES[title][0]: title for title in reversed(CASES)}
PAIRS = [
    (TITLES[p.__name__], TITLES[q.__name__])
    for p, q in _FORMULAS
    if p.__name__ in TITLES and q.__name__ in TITLES
] + [("MultivariateNormal by precision", "MultivariateNormal"), ("LogNormal", "LogNormal")]
OURS_ONLY = {
    ("Wishart", "Wishart"),  # PyTorch sums parts of it over the batch
    ("Uniform", "ContinuousBernoulli"),  # inf in PyTorch, also from 0 on
}


def divergence(m: Any, pair: tuple[str, str]) -> tuple[Any, Any, Any, list[Any]]:
    p, ours = make(m, pair[0])
    q, theirs = make(m, pair[1], factor=0.9 if pair[0] == pair[1] else 1.0)
    return p, q, m.distributions.kl_divergence(p, q), [*ours.values(), *theirs.values()]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_divergences_follow_pytorch(pair: tuple[str, str]) -> None:
    torch = pytest.importorskip("torch")
    if pair in OURS_ONLY:
        pytest.skip("PyTorch's differs")
    found = []
    for m in (cr, torch):
        _, _, result, leaves = divergence(m, pair)
        if result.requires_grad:
            result.sum().backward()
        found.append([result, *(leaf.grad for leaf in leaves)])
    is_finite = np.isfinite(found[0][0].detach().numpy())
    for ours, theirs in zip(*found, strict=True):
        if theirs is not None and is_finite.all():
            np.testing.assert_allclose(ours.detach(), theirs.detach(), rtol=2e-9, atol=1e-10)
    np.testing.assert_allclose(found[0][0].detach(), found[1][0].detach(), rtol=1e-10)


@pytest.mark.filterwarnings("ignore")  # densities of impossible values
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_divergences_are_averages_over_draws(pair: tuple[str, str]) -> None:
    cr.manual_seed(0)
    p, q, wanted, _ = divergence(cr, pair)
    drawn = p.sample((3000,))
    wanted = wanted.detach()
    terms = p.log_prob(drawn).detach()
    q._validate_args = False
    terms = terms - q.log_prob(drawn).detach()
    error = 5 * terms.std(0) / math.sqrt(3000) + 1e-9
    is_close = (terms.mean(0) - wanted).abs() < error
    is_possible = q.support.check(drawn).all(0)
    is_rare = wanted.isinf() & p.support.is_discrete
    assert bool((is_close | ~is_possible | is_rare).all()), (terms.mean(0), wanted, error)
    assert bool((wanted.isinf() | is_possible).all())


def test_pareto_draws_outside_are_found() -> None:
    inside, outside = D.Uniform(2.0, 3.0), D.Uniform(0.5, 3.0)
    target = D.Pareto(1.0, 2.0)
    assert math.isfinite(D.kl_divergence(inside, target).item())
    assert D.kl_divergence(outside, target).item() == math.inf
    assert D.kl_divergence(D.Beta(1.0, 2.0), D.Uniform(0.0, 1.0)).isfinite()
    assert D.kl_divergence(D.Beta(1.0, 2.0), D.Uniform(0.1, 1.0)).isinf()


def test_the_nearest_formula_is_taken() -> None:
    p, q = D.Chi2(3.0), D.Gamma(2.0, 1.0)
    wanted = D.kl_divergence(D.Gamma(1.5, 0.5), q)
    assert D.kl_divergence(p, q).item() == wanted.item()

    class Ours(D.ExponentialFamily):
        """Poisson, by its natural parameter alone."""

        _mean_carrier_measure = 0
        rate: Any
        arg_constraints: ClassVar = {"rate": D.constraints.positive}
        _natural_params = D.Poisson._natural_params
        _log_normalizer = D.Poisson._log_normalizer

        def __init__(self, rate: Any) -> None:
            self._init(None, rate=rate)

    wanted = D.kl_divergence(D.Poisson(2.0), D.Poisson(3.0)).item()
    assert D.kl_divergence(Ours(2.0), Ours(3.0)).item() == pytest.approx(wanted)
    with pytest.raises(NotImplementedError, match=r"No KL.*Ours.*Poisson"):
        D.kl_divergence(Ours(2.0), D.Poisson(3.0))


def test_ambiguity_is_reported() -> None:
    class A(D.Normal):
        pass

    class B(D.Normal):
        pass

    formulas = [(A, D.Normal), (D.Normal, B)]
    for pair in formulas:
        D.register_kl(*pair)(lambda p, q: p.loc)
    try:
        with pytest.warns(RuntimeWarning, match="Ambiguous"):
            D.kl_divergence(A(0.0, 1.0), B(0.0, 1.0))
    finally:
        for pair in formulas:
            del _FORMULAS[pair]


def test_missing_formulas_and_wrong_registrations_raise() -> None:
    with pytest.raises(NotImplementedError, match=r"No KL.*Normal.*Poisson"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))
    with pytest.raises(TypeError, match="register_kl: expected classes, got Normal"):
        D.register_kl(D.Normal(0.0, 1.0), D.Normal)
    with pytest.raises(NotImplementedError, match=r"q.total_count > p.total_count"):
        D.kl_divergence(D.Binomial(2, 0.5), D.Binomial(3, 0.5))
    assert D.kl_divergence(D.Binomial(3, 0.5), D.Binomial(2, 0.5)).isinf()
    p = D.Independent(D.Normal(cr.zeros(2, 2), 1.0), 1)
    assert D.kl_divergence(p, p).shape == (2,)
    with pytest.raises(NotImplementedError, match="reinterpreted_batch_ndims"):
        D.kl_divergence(p, D.Independent(D.Normal(cr.zeros(2, 2), 1.0), 2))
    with pytest.raises(NotImplementedError, match="the transforms differ"):
        D.kl_divergence(D.LogNormal(0.0, 1.0), D.InverseGamma(1.0, 1.0))
