"""Distributions follow PyTorch's: densities, gradients, moments, and draws."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import distributions as D

P = [[0.25, 0.5, 0.25], [0.125, 0.375, 0.5]]
CASES = {
    "categorical": ("Categorical", {"probs": P}, [[1, 2], [0, 0], [2, 1]]),
    "categorical of logits": ("Categorical", {"logits": [[0.5, -1.0, 2.0]] * 2}, [1, 2]),
    "bernoulli": ("Bernoulli", {"probs": [0.25, 0.5]}, [[1.0, 0.0], [0.0, 1.0]]),
    "bernoulli of logits": ("Bernoulli", {"logits": [5.0, -0.5]}, [0.0, 1.0]),
    "normal": ("Normal", {"loc": [0.5, -1.0], "scale": [0.5, 2.0]}, [[0.25, 3.0], [1.0, -8.0]]),
    "uniform": ("Uniform", {"low": [0.0, -1.0], "high": [0.5, 2.0]}, [0.25, 1.5]),
}


def leaves(m, parameters: dict) -> dict:
    return {
        name: m.tensor(values, dtype=m.float64, requires_grad=True)
        for name, values in parameters.items()
    }


@pytest.mark.parametrize(("name", "parameters", "values"), CASES.values(), ids=CASES)
def test_densities_entropies_and_gradients_follow_pytorch(name, parameters, values) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for m, distributions in ((cr, D), (torch, torch.distributions)):
        given = leaves(m, parameters)
        dist = getattr(distributions, name)(**given)
        kind = m.int64 if name == "Categorical" else m.float64
        log_prob = dist.log_prob(m.tensor(values, dtype=kind))
        entropy = dist.entropy()
        (log_prob.sum() + 2 * entropy.sum()).backward()
        results = [log_prob, entropy, *(t.grad for t in given.values())]
        if name != "Categorical":
            results += [dist.mean, dist.variance, dist.stddev]
        if name == "Normal":
            results += [dist.cdf(m.tensor([0.5, 1.0])), dist.icdf(m.tensor([0.25, 0.5]))]
        found.append([t.detach().numpy() for t in results])
        assert tuple(dist.batch_shape) == (2,)
        assert dist.sample().shape == (2,)
        assert dist.sample((3, 4)).shape == (3, 4, 2)
        assert not dist.sample().requires_grad
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(("name", "parameters", "values"), CASES.values(), ids=CASES)
def test_divergences_follow_pytorch(name, parameters, values) -> None:
    torch = pytest.importorskip("torch")
    if name == "Uniform":
        p = D.Uniform(0.0, 1.0)
        with pytest.raises(NotImplementedError, match="got Uniform"):
            D.kl_divergence(p, p)
        return
    found = []
    for m, distributions in ((cr, D), (torch, torch.distributions)):
        p = leaves(m, parameters)
        q = {name: (t.detach() * 0.75 + 0.0625).requires_grad_() for name, t in p.items()}
        kind = getattr(distributions, name)
        divergence = distributions.kl_divergence(kind(**p), kind(**q))
        divergence.sum().backward()
        found.append([t.detach().numpy() for t in (divergence, *(t.grad for t in p.values()))])
        found[-1] += [t.grad.numpy() for t in q.values()]
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)


def test_draws_have_the_moments() -> None:
    cr.manual_seed(0)
    for dist in (D.Bernoulli(0.25), D.Normal(1.0, 2.0), D.Uniform(-1.0, 3.0)):
        drawn = dist.sample((20_000,))
        assert abs(drawn.mean() - dist.mean) < 5 * dist.stddev / 140
        assert abs(drawn.var() / dist.variance - 1) < 0.05
    drawn = D.Categorical(cr.tensor(P)).sample((20_000,))
    shares = cr.stack([(drawn == k).double().mean(0) for k in range(3)], -1)
    np.testing.assert_allclose(shares.numpy(), P, atol=0.02)


def test_draws_of_rsample_are_differentiable() -> None:
    loc, scale = cr.tensor(1.0, requires_grad=True), cr.tensor(2.0, requires_grad=True)
    z = D.Normal(loc, scale).rsample((5,))
    z.sum().backward()
    assert loc.grad.item() == 5
    np.testing.assert_allclose(scale.grad.item(), ((z - loc) / scale).sum().item(), rtol=1e-5)
    low = cr.tensor(0.0, requires_grad=True)
    u = D.Uniform(low, 1.0).rsample()
    u.backward()
    np.testing.assert_allclose(low.grad.item(), 1 - u.item(), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="log_prob"):
        D.Categorical(cr.ones(2)).rsample()


@pytest.mark.parametrize(
    "call",
    [
        lambda: D.Normal(0.0, 0.0),
        lambda: D.Uniform(1.0, 1.0),
        lambda: D.Uniform(0.0, 1.0).log_prob(2.0),
        lambda: D.Bernoulli(1.5),
        lambda: D.Bernoulli(0.5).log_prob(0.5),
        lambda: D.Bernoulli(),
        lambda: D.Categorical(cr.ones(2), cr.ones(2)),
        lambda: D.Categorical(cr.zeros(2)),
        lambda: D.Categorical(cr.tensor([-1.0, 2.0])),
        lambda: D.Categorical(cr.ones(2)).log_prob(cr.tensor(2)),
    ],
)
def test_invalid_parameters_and_values_raise(call) -> None:
    with pytest.raises(cr.ArgumentError):
        call()


def test_values_without_density_are_allowed_on_request() -> None:
    dist = D.Uniform(0.0, 1.0, validate_args=False)
    assert dist.log_prob(cr.tensor([2.0, 1.0, 0.0])).tolist() == [-np.inf, -np.inf, 0]


def test_distributions_compile() -> None:
    @cr.compile
    def f(mu, x):
        return D.Normal(mu, 2.0).log_prob(x) + D.Categorical(logits=mu).entropy()

    mu, x = cr.randn(3), cr.randn(3)
    for _ in range(3):
        wanted = D.Normal(mu, 2.0).log_prob(x) + D.Categorical(logits=mu).entropy()
        np.testing.assert_allclose(f(mu, x).numpy(), wanted.numpy(), rtol=1e-6)
