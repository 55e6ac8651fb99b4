"""Operators of chainrule.compat.autograd, compared with HIPS autograd where it is installed."""

from __future__ import annotations

import importlib
import warnings
from types import SimpleNamespace

import numpy
import pytest

import chainrule as cr
import chainrule.compat.autograd.numpy as anp
from chainrule.compat import autograd as ag
from chainrule.compat.autograd.extend import defvjp, primitive
from chainrule.compat.autograd.test_util import check_equivalent, check_grads

X = numpy.array([0.3, -0.7, 1.1])
M = numpy.array([[1.0, 0.2, -0.5], [0.3, 0.8, 0.1]])
Z = numpy.array([1 + 0.5j, -0.3 + 2j])


def namespace(package):
    np, flatten, optimizers, a = (
        importlib.import_module(f"{package}{name}")
        for name in (".numpy", ".misc.flatten", ".misc.optimizers", "")
    )
    return SimpleNamespace(a=a, np=np, flatten=flatten, optimizers=optimizers)


OURS = namespace("chainrule.compat.autograd")


@pytest.fixture(scope="module")
def peer():
    pytest.importorskip("autograd.numpy")  # `tests/autograd` has the name `autograd`, too
    return namespace("autograd")


def tanh_layer(n):
    return lambda x: n.np.tanh(n.np.dot(M, x))


def log_density(n):
    return lambda x, s: n.np.sum(-((x / s) ** 2) / 2 - n.np.log(s))


PROGRAMS = {
    "grad of a number": lambda n: n.a.grad(n.np.sin)(0.7),
    "grad by several": lambda n: n.a.grad(log_density(n), (0, 1))(X, 2.0),
    "grad by a list of one": lambda n: n.a.grad(log_density(n), [1])(X, 2.0),
    "grad of a dict": lambda n: n.a.grad(lambda d: n.np.sum(d["a"] * X) ** 2 * d["b"][0])(
        {"a": 2.0, "b": [3.0, X]}
    ),
    "grad of grad": lambda n: n.a.grad(n.a.grad(n.a.grad(n.np.tanh)))(0.4),
    "keywords": lambda n: n.a.grad(lambda x, power=1: n.np.sum(x**power))(X, power=3),
    "value_and_grad": lambda n: n.a.value_and_grad(log_density(n), 1)(X, 2.0),
    "elementwise_grad": lambda n: n.a.elementwise_grad(n.a.elementwise_grad(n.np.tanh))(X),
    "deriv": lambda n: n.a.deriv(n.a.deriv(n.np.exp))(0.2),
    "jacobian": lambda n: n.a.jacobian(tanh_layer(n))(X),
    "jacobian of a number": lambda n: n.a.jacobian(lambda x: x**2 * X)(2.0),
    "jacobian of a matrix": lambda n: n.a.jacobian(lambda m: n.np.sin(m).T)(M),
    "hessian": lambda n: n.a.hessian(lambda x: n.np.sum(tanh_layer(n)(x) ** 2))(X),
    "hessian_tensor_product": lambda n: n.a.hessian_tensor_product(
        lambda x: n.np.sum(n.np.sin(x) * x)
    )(M, M + 1),
    "tensor_jacobian_product": lambda n: n.a.tensor_jacobian_product(tanh_layer(n))(X, M[:, 0]),
    "make_vjp": lambda n: n.a.make_vjp(tanh_layer(n))(X)[0](M[:, 1]),
    "make_vjp of a tuple": lambda n: n.a.make_vjp(lambda x: n.a.tuple((x[0], n.np.sin(x))))(X)[0](
        (2.0, X)
    ),
    "make_jvp": lambda n: n.a.make_jvp(tanh_layer(n))(X)(X[::-1].copy()),
    "make_hvp": lambda n: n.a.make_hvp(lambda x: n.np.sum(x**3))(X)[0](X),
    "make_ggnvp": lambda n: n.a.make_ggnvp(tanh_layer(n))(X)(X),
    "grad_and_aux": lambda n: n.a.grad_and_aux(lambda x: (n.np.sum(x**2), x * 3))(X),
    "grad_named": lambda n: n.a.grad_named(lambda a, b: a * b**2, "b")(2.0, 3.0),
    "checkpoint": lambda n: n.a.grad(lambda x: n.np.sum(n.a.checkpoint(tanh_layer(n))(x)))(X),
    "holomorphic_grad": lambda n: n.a.holomorphic_grad(lambda z: n.np.exp(z) * z)(0.3 + 2j),
    "complex grad": lambda n: n.a.grad(lambda z: n.np.sum(n.np.abs(n.np.sin(z)) ** 2))(Z),
    "complex grad of reals": lambda n: n.a.grad(lambda x: n.np.real(n.np.exp(1j * x)))(0.4),
    "complex vjp": lambda n: n.a.make_vjp(lambda z: n.np.exp(z) * 1j)(Z)[0](Z),
    "complex jacobian": lambda n: n.a.jacobian(lambda z: n.np.imag(z**2))(Z),
    "flatten": lambda n: n.flatten.flatten({"b": (1.0, X), "a": [M]})[0],
    "unflatten": lambda n: n.flatten.flatten({"b": (1.0, X), "a": [M]})[1](numpy.arange(10.0)),
    "gradient through flatten": lambda n: n.a.grad(
        lambda p: n.np.sum(n.flatten.flatten({"b": p, "a": X})[0] ** 2)
    )(M),
    "adam": lambda n: n.optimizers.adam(
        lambda p, i: {"w": p["w"] - X, "b": p["b"]}, {"w": X * 0, "b": 1.0}
    ),
    "sgd": lambda n: n.optimizers.sgd(lambda p, i: [p[0] - X], [X * 0], num_iters=7, mass=0.5),
    "rmsprop": lambda n: n.optimizers.rmsprop(lambda x, i: 2 * x, X, num_iters=9),
    "isinstance": lambda n: n.a.grad(lambda x: x * 2.0 if n.a.isinstance(x, float) else x * 3.0)(
        1.0
    ),
    "values to join": lambda n: n.a.grad(lambda d: n.np.sum(n.np.stack(d.values()) ** 2))(
        {"a": X, "b": X + 1}
    ),
    "generator to join": lambda n: n.a.grad(
        lambda x: n.np.sum(n.np.concatenate([v * X for v in x]) ** 2)
    )(X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_agrees_with_hips_autograd(name, peer):
    found, wanted = PROGRAMS[name](OURS), PROGRAMS[name](peer)
    ours, theirs = (list(cr.pytree.leaves(result)) for result in (found, wanted))
    assert [path for path, _ in ours] == [path for path, _ in theirs]
    for (_, a), (_, b) in zip(ours, theirs, strict=True):
        assert not isinstance(a, cr.Tensor)
        assert numpy.shape(a) == numpy.shape(b)
        assert numpy.result_type(a) == numpy.result_type(b)
        numpy.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_complex_gradients_are_conjugates_of_those_of_transforms():
    def f(z):
        return numpy.sum(numpy.abs(numpy.exp(z)) ** 2 + numpy.real(z * z))

    numpy.testing.assert_allclose(ag.grad(f)(Z), numpy.conj(cr.grad(f)(Z)))


def test_multigrad_dict_takes_gradients_by_all_arguments():
    found = ag.multigrad_dict(lambda a, b=2.0: a**2 * b)(3.0)
    assert found == {"a": 12.0, "b": 9.0}


def test_jacobian_vector_product():
    product = ag.jacobian_vector_product(tanh_layer(OURS))(X, X)
    numpy.testing.assert_allclose(product, ag.jacobian(tanh_layer(OURS))(X) @ X)


def test_optimizers_take_gradients_of_trees():
    def loss(p, i):
        return anp.sum((p["w"] - X) ** 2) + (p["b"] - 1.0) ** 2

    seen = []
    start = {"w": numpy.zeros(3), "b": 0.0}
    found = OURS.optimizers.adam(
        ag.grad(loss), start, lambda p, i, g: seen.append((p["b"], g["b"])), 300, 0.1
    )
    numpy.testing.assert_allclose(found["w"], X, atol=1e-3)
    assert len(seen) == 300
    assert seen[0] == (0.0, -2.0)


def test_arrays_are_numpys_outside_of_a_transform_and_can_be_written_to_inside():
    def f(x):
        y = anp.zeros(3)
        assert type(y) is not numpy.ndarray
        y[0] = x**2
        y[1:] = y[0] * X[1:]
        return anp.sum(y)

    assert type(anp.zeros(3)) is numpy.ndarray
    assert type(anp.linalg.inv(numpy.eye(2))) is numpy.ndarray
    assert isinstance(anp.random.randn(2), numpy.ndarray)
    numpy.testing.assert_allclose(ag.grad(f)(2.0), 4 * (1 + X[1] + X[2]))


def test_a_constant_result_has_a_gradient_of_zeros_and_warns():
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        assert ag.grad(lambda x: 3.0)(X).tolist() == [0, 0, 0]
    with pytest.warns(UserWarning, match="independent"):
        assert ag.jacobian(lambda x: M[0])(X).tolist() == numpy.zeros((3, 3)).tolist()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ag.grad(anp.sin)(X), TypeError, r"Grad only applies .*\[3\].*Try jacobian"),
        (lambda: ag.value_and_grad(anp.sin)(X), TypeError, "value_and_grad only applies"),
        (lambda: ag.grad(lambda z: z * 1j)(1.0), TypeError, "real scalar-output"),
        (lambda: ag.elementwise_grad(lambda z: z * 1j)(X), TypeError, "real-output"),
        (lambda: ag.grad(anp.sin, "x"), TypeError, "argnum is a position"),
        (lambda: ag.grad(lambda x: "a")(1.0), TypeError, "Can't find vector space"),
        (lambda: ag.grad(anp.sin)(2), TypeError, "a primal must be floating or complex"),
        (lambda: check_grads(anp.sin, modes=["forward"])(1.0), ValueError, "'fwd' and 'rev'"),
    ],
)
def test_errors(call, error, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=text):
            call()


def test_check_grads_finds_wrong_rules():
    @primitive
    def double(x):
        return x * 2.0

    defvjp(double, lambda ans, x: lambda g: g * 2.001)
    with pytest.raises(AssertionError, match=r"\(VJP\) check of double failed"):
        check_grads(double, modes=["rev"])(X)
    with pytest.raises(NotImplementedError, match="JVP of double wrt argnums"):
        check_grads(double, modes=["fwd"])(X)
    with pytest.raises(AssertionError, match="VSpace mismatch"):
        check_equivalent(X, M)
    with pytest.raises(AssertionError, match="Value mismatch"):
        check_equivalent(X, X + 1e-3)
