"""Random numbers in compiled functions: drawn anew at each call, the same as in eager mode."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from random import uniform
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import functional as F

LEGACY, OWN = np.random.RandomState(0), random.Random(0)
CHANCES = [[0.1, 0.5, 0.9], [0.0, 1.0, 0.25]]

DRAWS: dict[str, Callable[..., Any]] = {
    "rand": lambda x, **k: cr.rand(2, 3, **k),
    "randn": lambda x, **k: cr.randn(2, 3, **k) * x,
    "complex randn": lambda x, **k: cr.randn(2, 3, dtype=cr.complex64, **k) * x,
    "float16 rand": lambda x, **k: cr.rand(2, 3, dtype=cr.float16, **k),
    "scalar randn": lambda x, **k: cr.randn((), **k) * x,
    "rand_like": lambda x, **k: cr.rand_like(x, **k),
    "randn_like": lambda x, **k: cr.randn_like(x, dtype=cr.float64, **k),
    "randint": lambda x, **k: cr.randint(0, 10, (2, 3), **k),
    "scalar randint": lambda x, **k: cr.randint(10, (), **k),
    "randint_like": lambda x, **k: cr.randint_like(x, 10, **k),
    "randperm": lambda x, **k: cr.randperm(20, **k),
    "shuffled": lambda x, **k: x.reshape(6)[cr.randperm(6, **k)],
    "normal": lambda x, **k: cr.normal(0.0, 1.0, (2, 3), **k),
    "normal around": lambda x, **k: cr.normal(x, x.detach() + 1, **k),
    "bernoulli": lambda x, **k: cr.bernoulli(x, **k),
    "binomial": lambda x, **k: cr.binomial((20 * x.detach()).round(), x.detach(), **k),
    "scalar binomial": lambda x, **k: cr.binomial(cr.tensor(20.0), x.detach()[0, 1], **k),
    "poisson": lambda x, **k: cr.poisson(20 * x, **k),
    "scalar poisson": lambda x, **k: cr.poisson(20 * x[0, 0], **k) * x,
    "multinomial": lambda x, **k: cr.multinomial(x, 2, **k),
    "multinomial, replaced": lambda x, **k: cr.multinomial(x, 7, replacement=True, **k),
    "multinomial of one row": lambda x, **k: cr.multinomial(x[0], 2, **k),
    "twice": lambda x, **k: (cr.rand(3, **k), cr.rand(3, **k)),
    "one unused": lambda x, **k: (cr.rand(3, **k), cr.rand(3, **k))[1],
    ".bernoulli": lambda x, **k: x.bernoulli(0.5, **k),
    ".bernoulli_": lambda x, **k: x.detach().clone().bernoulli_(0.25, **k),
    ".normal_": lambda x, **k: x.detach().clone().normal_(1.0, 2.0, **k),
    ".uniform_": lambda x, **k: x.detach().clone().uniform_(1.0, 2.0, **k),
    ".exponential_": lambda x, **k: x.detach().clone().exponential_(2.0, **k),
    ".geometric_": lambda x, **k: x.detach().clone().geometric_(0.2, **k),
    ".cauchy_": lambda x, **k: x.detach().clone().cauchy_(0.2, **k),
    ".log_normal_": lambda x, **k: x.detach().clone().log_normal_(0.2, **k),
    ".random_": lambda x, **k: x.detach().clone().random_(100, **k),
    "dropout": lambda x, **k: F.dropout(x, 0.3, **k),
    "dropout in half": lambda x, **k: F.dropout(x, 0.5, **k),
    "dropout1d": lambda x, **k: F.dropout1d(x, 0.3, **k),
    "alpha_dropout": lambda x, **k: F.alpha_dropout(x, 0.3, training=True, **k),
    "rrelu": lambda x, **k: F.rrelu(x - 0.5, training=True, **k),
    "gumbel_softmax": lambda x, **k: F.gumbel_softmax(x, **k),
    "hard gumbel_softmax": lambda x, **k: F.gumbel_softmax(x, hard=True, **k),
}


def chances() -> cr.Tensor:
    return cr.tensor(CHANCES, requires_grad=True)


def results(function: Callable[..., Any], x: cr.Tensor) -> list[Any]:
    """Return the values of a call, and the gradient if there is one."""
    x.grad = None
    found = function(x)
    found = list(found) if isinstance(found, tuple) else [found]
    if found[0].requires_grad:
        found[0].abs().sum().backward()
    grad = [] if x.grad is None else [x.grad]
    return [t.detach().numpy().copy() for t in (*found, *grad)]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("source", ["default", "given"])
def test_draws_are_those_of_the_eager_function(name: str, source: str) -> None:
    rngs = [cr.Generator().manual_seed(3) for _ in range(2)]

    def function(x: cr.Tensor) -> Any:
        return DRAWS[name](x, **({"rng": rng} if source == "given" else {}))

    runs, x = [], chances()
    compiled = cr.compile(function)
    for rng, call in zip(rngs, (function, compiled), strict=True):
        cr.manual_seed(5)
        runs.append([results(call, x) for _ in range(4)])
        runs[-1].append([cr.get_rng_state(), rng.get_state()])
    assert str(runs[0].pop()) == str(runs[1].pop())  # the generators are in the same state
    for wanted, got in zip(*runs, strict=True):
        for a, b in zip(wanted, got, strict=True):
            assert a.dtype == b.dtype
            rtol = 1e-6 if "softmax" in name else 0  # sums may be computed as dot products
            np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol)


def test_the_source_shows_the_draw() -> None:
    @cr.compile
    def noisy(x: cr.Tensor) -> cr.Tensor:
        return x + cr.randn(3)

    noisy(cr.zeros(3))
    assert "generator.standard_normal((3,), dtype=np.float32)" in noisy.source


def test_a_variable_may_be_called_as_the_generator() -> None:
    @cr.compile
    def noisy(generator: cr.Tensor) -> cr.Tensor:
        return generator + cr.randn(3)

    noisy(cr.zeros(3))
    cr.manual_seed(1)
    found = noisy(cr.zeros(3))
    cr.manual_seed(1)
    assert found.equal(cr.randn(3))


def test_tracing_draws_nothing() -> None:
    cr.manual_seed(1)
    wanted = cr.rand(2, 3)
    cr.manual_seed(1)
    assert cr.compile(lambda: cr.rand(2, 3))().equal(wanted)


def test_draws_of_a_compiled_function_in_another_are_not_frozen() -> None:
    noise = cr.compile(lambda: cr.rand(2, 3))
    noise()  # an entry that no argument guards
    outer = cr.compile(lambda x: x + noise())
    cr.manual_seed(1)
    wanted = [cr.rand(2, 3) for _ in range(3)]
    cr.manual_seed(1)
    assert all(outer(cr.zeros(2, 3)).equal(one) for one in wanted)


def test_another_generator_by_the_same_name_is_seen() -> None:
    rng = np.random.default_rng(0)
    compiled = cr.compile(lambda: cr.rand(3, rng=rng))
    compiled()
    rng = np.random.default_rng(7)
    assert compiled().equal(cr.rand(3, rng=np.random.default_rng(7)))


@pytest.mark.parametrize(
    "noisy",
    [
        lambda x: (F.dropout(x, 0.5) * x).sum(),
        lambda x: ((x + cr.rand(2, 3)) * x).exp().sum(),
        lambda x: cr.normal(x, x.detach() + 1).sin().sum() * x.sum() ** 3,
    ],
)
def test_a_second_derivative_is_that_of_the_numbers_that_were_drawn(noisy: Any) -> None:
    found = []
    for function in (noisy, cr.compile(noisy), noisy, cr.compile(noisy)):
        x = chances()
        cr.manual_seed(2)
        y = function(x)
        (g,) = cr.autograd_grad(y, x, create_graph=True)
        found.append([t.detach().numpy() for t in (g, *cr.autograd_grad(g.sum(), x))])
    for a, b in zip(found[0], found[1], strict=True):
        np.testing.assert_allclose(a, b, 1e-5)


def test_a_second_derivative_of_draws_in_a_loop_is_refused() -> None:
    def noisy(x: cr.Tensor) -> cr.Tensor:
        return cr.scan(lambda c, v: ((c * cr.rand(3) * v).exp(), None), x[0] * 2, x)[0].sum()

    x = chances()
    with pytest.raises(cr.AutogradError, match=r"scan draws random numbers.* a second derivative"):
        cr.autograd_grad(cr.compile(noisy)(x), x, create_graph=True)


STATES: dict[str, Callable[[], Any]] = {
    "manual_seed": lambda: cr.manual_seed(0),
    "seed": cr.seed,
    "initial_seed": cr.initial_seed,
    "get_rng_state": cr.get_rng_state,
    "set_rng_state": lambda: cr.set_rng_state(STATE),
}
STATE = cr.get_rng_state()


@pytest.mark.parametrize("name", STATES)
def test_the_state_of_the_generator_is_refused(name: str) -> None:
    before = str(cr.get_rng_state())
    with pytest.raises(cr.CompileError, match=rf"{name}\(\) would run only once"):
        cr.compile(STATES[name])()
    assert str(cr.get_rng_state()) == before


def test_a_generators_own_methods_are_refused() -> None:
    rng = np.random.default_rng(0)
    for function, args in (
        (lambda x: x + rng.standard_normal(3), ()),
        (lambda x, g: x + g.standard_normal(3), (rng,)),
    ):
        with pytest.raises(cr.CompileError, match=r"called a method of a numpy.random.Generator"):
            cr.compile(function)(cr.zeros(3), *args)


def test_a_generator_made_inside_is_refused() -> None:
    def function(x: cr.Tensor) -> cr.Tensor:
        rng = np.random.default_rng(0)
        return x + cr.randn(3, rng=rng) + cr.randn(3, rng=rng)

    with pytest.raises(cr.CompileError, match="a generator that it had made itself"):
        cr.compile(function)(cr.zeros(3))


class Noisy:
    """Holds a generator."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    @cr.compile
    def __call__(self, x: cr.Tensor) -> cr.Tensor:
        return cr.normal(x, x + 1, rng=self.rng)


def test_a_generator_in_an_object_is_drawn_from() -> None:
    noisy, rng = Noisy(), np.random.default_rng(0)
    x = cr.arange(3.0)
    for _ in range(3):
        assert noisy(x).equal(cr.normal(x, x + 1, rng=rng))


@pytest.mark.parametrize(
    ("draw", "kind"),
    [
        (lambda x: x * random.random(), "the module random"),
        (lambda x: x * uniform(0, 1), "the module random"),
        (lambda x: x * np.random.rand(2), "the module np.random"),
        (lambda x: x * LEGACY.standard_normal(), "a numpy.random.RandomState"),
        (lambda x: x * OWN.gauss(), "a random.Random"),
    ],
)
def test_numbers_that_python_or_numpy_draw_by_themselves_are_not_frozen(
    draw: Any, kind: str
) -> None:
    with pytest.raises(cr.CompileError, match=f"a method of {re.escape(kind)}, whose"):
        cr.compile(draw)(cr.ones(2))
