"""Distributions in use: validation, shapes, compositions, transforms of functions, scripts."""

from __future__ import annotations

import importlib
import math
from typing import Any, ClassVar

import numpy as np
import pytest

import chainrule as cr
from chainrule import distributions as D
from helpers.distribution_cases import CASES, make, values_of


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
        lambda: D.Categorical(cr.tensor(1.0)),
        lambda: D.Dirichlet(cr.tensor(1.0)),
        lambda: D.Geometric(0.0),
        lambda: D.Gamma(-1.0, 1.0),
        lambda: D.Multinomial(cr.tensor(2), cr.ones(2)),
        lambda: D.MultivariateNormal(cr.zeros(2), cr.zeros(2, 2)),
        lambda: D.MultivariateNormal(cr.zeros(2), cr.eye(2), scale_tril=cr.eye(2)),
        lambda: D.MultivariateNormal(cr.zeros(2), cr.ones(2)),
        lambda: D.MultivariateNormal(0.0, cr.eye(2)),
        lambda: D.LowRankMultivariateNormal(cr.zeros(2), cr.ones(3, 1), cr.ones(2)),
        lambda: D.LKJCholesky(1),
        lambda: D.LogisticNormal(0.0, 1.0),
        lambda: D.Wishart(0.5, cr.eye(2)),
        lambda: D.Normal(cr.zeros(2), 1.0).log_prob(cr.zeros(3)),
        lambda: D.MultivariateNormal(cr.zeros(2), cr.eye(2)).log_prob(cr.zeros(3)),
        lambda: D.Independent(D.Normal(0.0, 1.0), 1),
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), 3),
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()),
        lambda: D.MixtureSameFamily(D.Bernoulli(cr.ones(2)), D.Normal(cr.zeros(2), 1.0)),
        lambda: D.MixtureSameFamily(D.Categorical(cr.ones(2)), D.Normal(cr.zeros(3), 1.0)),
        lambda: D.MixtureSameFamily(D.Categorical(cr.ones(2)), D.Normal(0.0, 1.0)),
        lambda: D.Distribution.set_default_validate_args(2),
    ],
)
def test_invalid_parameters_and_values_raise(call) -> None:
    with pytest.raises((cr.ArgumentError, cr.ShapeError)):
        call()


def test_values_without_density_are_allowed_on_request() -> None:
    dist = D.Uniform(0.0, 1.0, validate_args=False)
    assert dist.log_prob(cr.tensor([2.0, 1.0, 0.0])).tolist() == [-np.inf, -np.inf, 0]
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.HalfNormal(1.0).log_prob(-1.0).item() == -np.inf
        assert D.Normal(0.0, -1.0).scale.item() == -1
    finally:
        D.Distribution.set_default_validate_args(True)


def test_errors_name_the_parameter_and_the_constraint() -> None:
    with pytest.raises(ValueError, match=r"parameter scale .*Normal.* GreaterThan\(lower_bound=0"):
        D.Normal(cr.zeros(2), cr.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match=r"within the support \(?Boolean\(\)"):
        D.Bernoulli(0.5).log_prob(cr.tensor(0.5))
    with pytest.raises(NotImplementedError, match="Cauchy has no enumerate_support"):
        D.Cauchy(0.0, 1.0).enumerate_support()
    with pytest.raises(AttributeError, match="no attribute 'Cauchi'"):
        _ = D.Cauchi


def test_what_a_class_of_the_user_lacks_is_named() -> None:
    class Unfinished(D.Distribution):
        pass

    class Some(D.constraints.Constraint):
        pass

    class Bent(D.Transform):
        domain = codomain = D.constraints.real

    dist = Unfinished(validate_args=False)
    with pytest.raises(cr.MissingRuleError, match="Unfinished has no support: its class defines"):
        _ = dist.support
    with pytest.raises(cr.MissingRuleError, match="Unfinished has no arg_constraints"):
        _ = dist.arg_constraints
    with pytest.raises(
        cr.MissingRuleError, match=r"Some has no check: define check\(self, value\)"
    ):
        Some().check(cr.tensor(1.0))
    with pytest.raises(cr.MissingRuleError, match=r"Bent has no _call: define _call\(self, x\)"):
        Bent()(cr.tensor(1.0))


def test_distributions_compile() -> None:
    @cr.compile
    def f(mu, x):
        return D.Normal(mu, 2.0).log_prob(x) + D.Categorical(logits=mu).entropy()

    mu, x = cr.randn(3), cr.randn(3)
    for _ in range(3):
        wanted = D.Normal(mu, 2.0).log_prob(x) + D.Categorical(logits=mu).entropy()
        np.testing.assert_allclose(f(mu, x).numpy(), wanted.numpy(), rtol=1e-6)


@pytest.mark.parametrize("title", CASES)
def test_densities_under_grad_and_vmap(title: str) -> None:
    """Each example alone, and all at once, give the gradient of the eager pass."""
    dist, tensors = make(cr, title)
    values = values_of(cr, title).detach()
    family = type(dist)
    (name, parameter), *_ = tensors.items()
    rest = {key: t.detach() for key, t in tensors.items() if key != name}
    others = {k: v for k, v in CASES[title][1].items() if k not in tensors}
    others = {k: cr.tensor(v) if isinstance(v, np.ndarray) else v for k, v in others.items()}

    def density(x: Any) -> Any:
        return family(**others, **rest, **{name: x}).log_prob(values).sum()

    (wanted,) = cr.autograd_grad(dist.log_prob(values).sum(), [parameter])
    point = parameter.detach()
    np.testing.assert_allclose(cr.grad(density)(point), wanted, rtol=1e-10)
    points = cr.stack([point, point * 0.99]) if name != "probs" else cr.stack([point, point])
    mapped = cr.vmap(cr.grad(density))(points)
    np.testing.assert_allclose(mapped[0], wanted, rtol=1e-10)
    np.testing.assert_allclose(mapped[1], cr.grad(density)(points[1]), rtol=1e-10)


COMPILED = ["Beta", "Categorical of logits", "MultivariateNormal", "Normal", "StudentT"]


@pytest.mark.parametrize(
    "title",
    [t if t in COMPILED else pytest.param(t, marks=pytest.mark.thorough) for t in CASES],
)
def test_densities_compile(title: str) -> None:
    dist, tensors = make(cr, title)
    values = values_of(cr, title).detach()
    family = type(dist)
    others = {k: v for k, v in CASES[title][1].items() if k not in tensors}
    others = {k: cr.tensor(v) if isinstance(v, np.ndarray) else v for k, v in others.items()}

    @cr.compile
    def gradient(parameters: Any) -> Any:
        return cr.grad(lambda p: family(**others, **p).log_prob(values).sum())(parameters)

    fixed = {name: t.detach() for name, t in tensors.items()}
    dist.log_prob(values).sum().backward()
    for _ in range(2):
        for name, found in gradient(fixed).items():
            np.testing.assert_allclose(found, tensors[name].grad, rtol=1e-9, atol=1e-12)


def test_mixtures_are_sums_of_densities() -> None:
    weights = cr.tensor([0.2, 0.5, 0.3])
    mixture = D.MixtureSameFamily(
        D.Categorical(weights), D.Normal(cr.tensor([-1.0, 0.0, 2.0]), 0.5)
    )
    x = cr.linspace(-3, 3, 7)
    parts = D.Normal(cr.tensor([-1.0, 0.0, 2.0]), 0.5)
    for name in ("log_prob", "cdf"):
        each = getattr(parts, name)(x.unsqueeze(-1))
        wanted = (each.exp() * weights).sum(-1).log() if name == "log_prob" else each @ weights
        np.testing.assert_allclose(getattr(mixture, name)(x), wanted, rtol=1e-5)
    cr.manual_seed(0)
    drawn = mixture.expand((2,)).sample((4000,))
    assert drawn.shape == (4000, 2)
    assert bool(((drawn.mean(0) - mixture.mean).abs() < 0.12).all())
    assert bool(((drawn.var(0) - mixture.variance).abs() < 0.2).all())
    vectors = D.MixtureSameFamily(
        D.Categorical(cr.ones(2, 3)), D.Independent(D.Normal(cr.zeros(2, 3, 4), 1.0), 1)
    )
    assert vectors.sample((5,)).shape == (5, 2, 4)
    assert vectors.log_prob(cr.zeros(2, 4)).shape == vectors.batch_shape == (2,)
    assert vectors.mean.shape == vectors.variance.shape == (2, 4)
    assert repr(mixture).startswith("MixtureSameFamily(\n  Categorical(probs: (3,)")


def test_mixtures_and_transformed_distributions_follow_pytorch() -> None:
    torch = pytest.importorskip("torch")
    found = []
    for m in (cr, torch):
        d = m.distributions
        loc = m.tensor(np.array([[0.5, -1.0], [0.0, 2.0]])).requires_grad_()
        base = d.Independent(d.Normal(loc, 0.7), 1)
        squashed = d.TransformedDistribution(
            base, [d.AffineTransform(1.0, -2.0), d.StickBreakingTransform()]
        )
        x = m.tensor(np.array([[0.2, 0.3, 0.5], [0.1, 0.2, 0.7]]))
        mixture = d.MixtureSameFamily(d.Categorical(logits=loc[0]), d.Normal(loc[1], 0.5))
        flipped = d.TransformedDistribution(d.Normal(loc, 1.0), [d.AffineTransform(0.0, -3.0)])
        levels = m.tensor(np.array([0.1, 0.7]))
        results = [squashed.log_prob(x), mixture.log_prob(x), mixture.mean, mixture.variance]
        results += [flipped.cdf(levels), flipped.icdf(levels), base.entropy(), base.variance]
        sum(r.sum() for r in results).backward()
        assert tuple(squashed.batch_shape), tuple(squashed.event_shape) == ((2,), (3,))
        assert squashed.expand((4, 2)).sample((3,)).shape == (3, 4, 2, 3)
        found.append([*results, loc.grad])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.detach(), theirs.detach(), rtol=1e-10)


def test_text() -> None:
    assert repr(D.Normal(0.0, cr.ones(2))) == "Normal(loc: (2,), scale: (2,))"
    assert repr(D.Poisson(2.0)) == "Poisson(rate: 2.0)"
    independent = D.Independent(D.Poisson(cr.ones(3)), 1)
    assert repr(independent) == "Independent(Poisson(rate: (3,)), 1)"


def test_numbers_take_the_dtype_of_tensors() -> None:
    dist = D.Normal(cr.zeros(2, dtype=cr.float64), 0.1)
    assert dist.scale.dtype == cr.float64
    assert dist.scale[0].item() == 0.1
    assert D.Normal(0, 1).sample().dtype == cr.float32
    wanted = -0.5 * math.log(2 * math.pi) - math.log(0.1)
    assert dist.log_prob(0).tolist() == pytest.approx([wanted] * 2, rel=1e-14)
    squashed = D.TransformedDistribution(dist, D.AffineTransform(0.0, 0.1))
    wanted -= math.log(0.1)
    assert squashed.log_prob(0.0).tolist() == pytest.approx([wanted] * 2, rel=1e-14)
    assert D.Gumbel(np.zeros(3), np.ones(3)).rsample().dtype == cr.float64


def test_subclasses_in_the_style_of_pytorch() -> None:
    class Shifted(D.Distribution):
        arg_constraints: ClassVar = {"loc": D.constraints.real}
        support = D.constraints.real
        has_rsample = True

        def __init__(self, loc: Any, validate_args: Any = None) -> None:
            self.loc = loc
            super().__init__(loc.shape, cr.Size(), validate_args=validate_args)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Shifted, _instance)
            new.loc = self.loc.expand(batch_shape)
            super(Shifted, new).__init__(batch_shape, validate_args=False)
            new._validate_args = self._validate_args
            return new

        def rsample(self, sample_shape: Any = ()) -> Any:
            return self.loc + cr.rand(self._extended_shape(sample_shape))

        def log_prob(self, value: Any) -> Any:
            if self._validate_args:
                self._validate_sample(value)
            return cr.zeros_like(value - self.loc)

    dist = Shifted(cr.zeros(3)).expand((2, 3))
    assert dist.sample_n(4).shape == (4, 2, 3)
    assert D.Independent(dist, 1).log_prob(cr.zeros(2, 3)).shape == (2,)
    with pytest.raises(cr.ArgumentError, match="parameter loc"):
        Shifted(cr.full((1,), math.nan))


def test_scripts_import_pytorchs_modules() -> None:
    torch = pytest.importorskip("torch")
    for name, value in vars(torch.distributions).items():
        if isinstance(value, type) and value.__module__.startswith("torch.distributions."):
            module = value.__module__.replace("torch", "chainrule")
            assert getattr(importlib.import_module(module), name) is getattr(D, name)
    missing = set(torch.distributions.__all__) - set(D.__all__)
    assert not missing
    for module in ("constraints", "transforms"):
        theirs = getattr(torch.distributions, module).__all__
        assert not set(theirs) - set(getattr(D, module).__all__)


@pytest.mark.parametrize("diag", [-2, -1, 0, 1, 2])
def test_triangles_as_vectors(diag: int) -> None:
    """Beside PyTorch, and there and back with gradients."""
    from chainrule.distributions import utils

    mat = cr.arange(18.0).reshape(2, 3, 3).requires_grad_()
    vec = utils.tril_matrix_to_vec(mat, diag)
    back = utils.vec_to_tril_matrix(vec, diag)
    assert back.tolist() == mat.tril(diag).tolist()
    back.sum().backward()
    assert mat.grad.tolist() == cr.ones(2, 3, 3).tril(diag).tolist()
    torch = pytest.importorskip("torch")
    theirs = torch.distributions.utils.tril_matrix_to_vec(torch.tensor(mat.detach().numpy()), diag)
    assert vec.tolist() == theirs.tolist()
    with pytest.raises(ValueError, match="provided is outside"):
        utils.tril_matrix_to_vec(mat, 3)


def test_vectors_that_are_no_triangle() -> None:
    from chainrule.distributions import utils

    with pytest.raises(ValueError, match="cannot be expressed as the lower triangular part"):
        utils.vec_to_tril_matrix(cr.ones(4))
