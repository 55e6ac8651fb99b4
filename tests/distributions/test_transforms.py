"""Transforms and constraints are PyTorch's; determinants are those of Jacobians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import distributions as D
from chainrule.distributions import constraints, transforms

MATRIX = [[0.3, 7.0], [-0.5, 1.2]]
VECTOR = [0.3, -0.7, 1.1]
POSITIVE = [0.3, 1.0, 4.0]
TRANSFORMS: dict[str, tuple[Any, Any]] = {
    "abs": (lambda m: m.AbsTransform(), VECTOR),
    "affine": (lambda m: m.AffineTransform(0.1, -2.0), VECTOR),
    "affine of vectors": (lambda m: m.AffineTransform(0.1, 2.0, event_dim=1), VECTOR),
    "cat": (lambda m: m.CatTransform([m.ExpTransform(), m.TanhTransform()], 0, [2, 1]), VECTOR),
    "chain": (lambda m: m.ComposeTransform([m.TanhTransform(), m.AffineTransform(1, 2)]), VECTOR),
    "chain of dims": (
        lambda m: m.ComposeTransform([m.ExpTransform(), m.StickBreakingTransform()]),
        VECTOR,
    ),
    "correlations": (lambda m: m.CorrCholeskyTransform(), VECTOR),
    "exp": (lambda m: m.ExpTransform(), VECTOR),
    "exp, inverse": (lambda m: m.ExpTransform().inv, POSITIVE),
    "identity": (lambda m: m.identity_transform, VECTOR),
    "independent": (lambda m: m.IndependentTransform(m.ExpTransform(), 1), VECTOR),
    "lower cholesky": (lambda m: m.LowerCholeskyTransform(), MATRIX),
    "positive definite": (lambda m: m.PositiveDefiniteTransform(), MATRIX),
    "power": (lambda m: m.PowerTransform(-2.0), POSITIVE),
    "reshape": (lambda m: m.ReshapeTransform((3,), (3, 1)), VECTOR),
    "sigmoid": (lambda m: m.SigmoidTransform(), VECTOR),
    "softmax": (lambda m: m.SoftmaxTransform(), VECTOR),
    "softplus": (lambda m: m.SoftplusTransform(), VECTOR),
    "stack": (
        lambda m: m.StackTransform([m.ExpTransform(), m.identity_transform, m.TanhTransform()]),
        VECTOR,
    ),
    "stick": (lambda m: m.StickBreakingTransform(), VECTOR),
    "tanh": (lambda m: m.TanhTransform(), VECTOR),
}


def both(title: str, m: Any) -> list[Any]:
    """Return what a transform computes, with gradients."""
    make, values = TRANSFORMS[title]
    f = make(m.distributions.transforms)
    x = m.tensor(np.array(values)).requires_grad_()
    y = f(x)
    back = f.inv(y)
    found = [y, back, tuple(f.forward_shape(x.shape)), tuple(f.inverse_shape(y.shape))]
    found += [f.domain.event_dim, f.codomain.event_dim, f.bijective, f.domain.check(x).all()]
    if f.bijective:
        found.append(f.log_abs_det_jacobian(x, y))
        if found[-1].requires_grad:
            found[-1].sum().backward()
            found.append(x.grad)
    try:
        found.append(float(f.sign))
    except NotImplementedError:
        found.append(None)
    return found


@pytest.mark.parametrize("title", TRANSFORMS)
def test_transforms_follow_pytorch(title: str) -> None:
    torch = pytest.importorskip("torch")
    for ours, theirs in zip(both(title, cr), both(title, torch), strict=True):
        if isinstance(theirs, torch.Tensor):
            assert tuple(ours.shape) == tuple(theirs.shape)
            np.testing.assert_allclose(ours.detach(), theirs.detach(), rtol=1e-10, atol=1e-12)
        else:
            assert ours == theirs


@pytest.mark.parametrize("title", TRANSFORMS)
def test_inverses_and_determinants(title: str) -> None:
    make, values = TRANSFORMS[title]
    f, x = make(transforms), cr.tensor(np.array(values))
    y = f(x)
    assert y.shape == f.forward_shape(x.shape)
    assert bool(f.codomain.check(y).all())
    assert f.inv.inv == f
    again = f(f.inv(y))
    np.testing.assert_allclose(again, y, rtol=1e-10, atol=1e-12)
    if not f.bijective:
        return
    np.testing.assert_allclose(f.inv(y), x, rtol=1e-8)
    determinant = f.log_abs_det_jacobian(x, y)
    np.testing.assert_allclose(f.inv.log_abs_det_jacobian(y, x), -determinant)
    jacobian = cr.jacobian(free_parts(title, f))(x)
    if jacobian.shape[0] == x.numel():
        wanted = cr.linalg.slogdet(jacobian.reshape(x.numel(), x.numel()))[1]
        np.testing.assert_allclose(determinant.sum(), wanted, rtol=1e-9)


def free_parts(title: str, f: Any) -> Any:
    """Return f with the elements of the result that can be chosen freely."""
    if title == "correlations":
        return lambda x: f(x)[..., [1, 2, 2], [0, 0, 1]]
    if "stick" in title or title == "chain of dims":
        return lambda x: f(x)[..., :-1]
    return lambda x: f(x).reshape(-1)


def test_caches_keep_the_last_argument() -> None:
    x = cr.tensor([50.0])
    exact, plain = D.TanhTransform(cache_size=1), D.TanhTransform()
    assert exact.inv(exact(x)) is x
    assert exact(exact.inv(y := exact(x))) is y
    near = cr.tensor([8.0])
    assert plain.inv(plain(near)).item() != 8 == exact.inv(exact(near)).item()
    assert plain.with_cache(0) is plain
    assert plain.with_cache().inv(plain(near)).item() != 8
    policy = D.TransformedDistribution(D.Normal(cr.full((1,), 20.0), 0.1), [exact])
    action = policy.rsample()
    assert bool(policy.log_prob(action).isfinite().all())
    with pytest.raises(cr.ArgumentError, match="cache_size must be 0 or 1"):
        D.ExpTransform(cache_size=2)


def test_equality_and_text() -> None:
    assert D.AffineTransform(0.0, 1.0) == D.AffineTransform(0.0, 1.0)
    assert D.AffineTransform(0.0, 1.0) != D.AffineTransform(0.0, 2.0)
    scale = cr.ones(2)
    assert D.AffineTransform(0.0, scale) == D.AffineTransform(0.0, cr.ones(2))
    assert D.ExpTransform() != D.TanhTransform()
    assert D.ExpTransform().inv == D.ExpTransform().inv
    assert (
        repr(D.ComposeTransform([D.ExpTransform()])) == "ComposeTransform(parts=[ExpTransform()])"
    )
    assert repr(D.ExpTransform().inv) == "_InverseTransform(ExpTransform())"


def test_wrong_shapes_raise() -> None:
    with pytest.raises(cr.ShapeError, match="different numbers"):
        D.ReshapeTransform((3,), (2,))
    with pytest.raises(cr.ShapeError, match=r"expected the last dimensions \[3\]"):
        D.ReshapeTransform((3,), (1, 3))(cr.ones(2))
    with pytest.raises(cr.ShapeError, match="for a whole d"):
        D.CorrCholeskyTransform()(cr.ones(4))
    with pytest.raises(cr.ShapeError, match="square"):
        D.CorrCholeskyTransform().inverse_shape((2, 3))
    with pytest.raises(cr.ArgumentError, match=r"codomain.event_dim"):
        _ = D.ReshapeTransform((4,), (2, 2)).event_dim
    with pytest.raises(NotImplementedError, match="no sign"):
        _ = D.AbsTransform().sign


CONSTRAINTS: dict[str, tuple[Any, Any]] = {
    "boolean": (lambda c: c.boolean, [0.0, 1.0, 0.5]),
    "cat": (lambda c: c.cat([c.positive, c.real], 0, [1, 2]), [-1.0, 1.0, math.nan]),
    "corr_cholesky": (lambda c: c.corr_cholesky, [[[1.0, 0], [0.6, 0.8]], [[1, 0], [0.6, 0.7]]]),
    "greater_than": (lambda c: c.greater_than(1.0), [0.0, 1.0, 2.0]),
    "greater_than_eq": (lambda c: c.greater_than_eq(1.0), [0.0, 1.0, 2.0]),
    "half_open_interval": (lambda c: c.half_open_interval(0.0, 1.0), [-1.0, 0.0, 1.0]),
    "independent": (lambda c: c.independent(c.positive, 1), [[1.0, 2.0], [1.0, -1.0]]),
    "integer_interval": (lambda c: c.integer_interval(0, 2), [-1.0, 0.0, 2.0, 1.5, 3.0]),
    "interval": (lambda c: c.interval(0.0, 1.0), [-0.1, 0.0, 1.0, 1.1]),
    "less_than": (lambda c: c.less_than(1.0), [0.0, 1.0]),
    "lower_cholesky": (lambda c: c.lower_cholesky, [[[1.0, 0], [3, 2]], [[1, 0], [3, -2]]]),
    "lower_triangular": (lambda c: c.lower_triangular, [[[1.0, 0], [3, 2]], [[1, 2], [3, 2]]]),
    "multinomial": (lambda c: c.multinomial(3), [[1.0, 2.0], [2.0, 2.0]]),
    "nonnegative": (lambda c: c.nonnegative, [-1.0, 0.0]),
    "nonnegative_integer": (lambda c: c.nonnegative_integer, [-1.0, 0.0, 0.5]),
    "one_hot": (lambda c: c.one_hot, [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]),
    "positive": (lambda c: c.positive, [0.0, 1.0]),
    "positive_definite": (lambda c: c.positive_definite, [[[2.0, 1], [1, 2]], [[1, 2], [2, 1]]]),
    "asymmetric": (lambda c: c.positive_definite, [[[2.0, 1], [0, 2]], [[2, 1], [1, 2]]]),
    "positive_integer": (lambda c: c.positive_integer, [0.0, 1.0]),
    "positive_semidefinite": (
        lambda c: c.positive_semidefinite,
        [[[1.0, 1], [1, 1]], [[1, 2], [2, 1]]],
    ),
    "real": (lambda c: c.real, [0.0, math.nan, math.inf]),
    "real_vector": (lambda c: c.real_vector, [[0.0, math.nan], [1.0, 2.0]]),
    "simplex": (lambda c: c.simplex, [[0.5, 0.5], [0.5, 0.6], [-0.5, 1.5]]),
    "square": (lambda c: c.square, [[1.0, 2.0], [3.0, 4.0]]),
    "not square": (lambda c: c.symmetric, [[1.0, 2.0]]),
    "stack": (lambda c: c.stack([c.positive, c.real], 0), [-1.0, 1.0]),
    "symmetric": (lambda c: c.symmetric, [[1.0, 2.0], [2.0, 4.0]]),
    "unit_interval": (lambda c: c.unit_interval, [0.0, 1.0, 1.5]),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_follow_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    make, values = CONSTRAINTS[name]
    ours, theirs = make(constraints), make(torch.distributions.constraints)
    array = np.array(values, np.float64)
    found = ours.check(cr.tensor(array)).numpy()
    np.testing.assert_array_equal(found, theirs.check(torch.tensor(array)).numpy())
    assert (ours.event_dim, ours.is_discrete) == (theirs.event_dim, theirs.is_discrete)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_registered_transforms_lead_to_the_constraint(name: str) -> None:
    constraint = CONSTRAINTS[name][0](constraints)
    x = cr.tensor(np.random.default_rng(0).standard_normal((3, 3, 3)))
    for registry in (D.biject_to, D.transform_to):
        try:
            f = registry(constraint)
        except NotImplementedError:
            assert constraint.is_discrete or name in (
                *("asymmetric", "lower_triangular", "square", "not square", "symmetric"),
            )
            continue
        x_here = x[:, 0, 0] if name == "cat" else x[:2, 0, 0] if name == "stack" else x
        y = f(x_here)
        assert bool(constraint.check(y).all())
        assert f.domain.event_dim <= 2
        if registry is D.biject_to and not name.startswith(("pos", "lower", "asym")):
            assert f.bijective


def test_registries_take_constraints_and_classes() -> None:
    registry = type(D.biject_to)()
    registry.register(constraints.real, lambda c: D.ExpTransform())
    assert registry(constraints.real) == D.ExpTransform()
    with pytest.raises(TypeError, match="expected a constraint"):
        registry.register(int, lambda c: D.ExpTransform())
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        registry(constraints.positive)
    with pytest.raises(cr.ArgumentError, match="dependent constraint"):
        constraints.dependent.check(cr.ones(1))
    assert constraints.is_dependent(D.Uniform.support)
    assert repr(constraints.positive) == "GreaterThan(lower_bound=0.0)"
    assert repr(constraints.independent(constraints.real, 1)) == "IndependentConstraint(Real(), 1)"
