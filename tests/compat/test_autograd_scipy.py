"""Functions of chainrule.compat.autograd.scipy: values are SciPy's, derivatives are checked."""

from __future__ import annotations

import warnings

import numpy
import pytest

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd import grad, jacobian
from chainrule.compat.autograd.test_util import check_grads

scipy_stats = pytest.importorskip("scipy.stats")
scipy_special = pytest.importorskip("scipy.special")
scipy_linalg = pytest.importorskip("scipy.linalg")

from chainrule.compat.autograd.scipy import integrate, linalg, signal, special, stats  # noqa: E402

X = numpy.array([0.3, 0.6, 0.8])
K = numpy.array([0, 2, 5])
FUNCTIONS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")
LOCATION = (0.1, 1.7)

DISTRIBUTIONS = {
    "norm": (),
    "t": (3.5,),
    "gamma": (2.5,),
    "beta": (2.5, 1.7),
    "chi2": (3.5,),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_continuous_distributions(name, function):
    shapes = DISTRIBUTIONS[name]
    f = getattr(getattr(stats, name), function)
    scipys = getattr(getattr(scipy_stats, name), function)
    numpy.testing.assert_array_equal(f(X, *shapes, *LOCATION), scipys(X, *shapes, *LOCATION))
    count = len(shapes)
    argnums = tuple(range(count + 3))
    check_grads(f, argnums, order=2)(X, *shapes, *LOCATION)
    check_grads(f, 0)(X, *shapes)
    by_name = grad(lambda s: np.sum(f(X, *shapes, scale=s)))(1.7)
    assert by_name == pytest.approx(grad(lambda s: np.sum(f(X, *shapes, 0.0, s)))(1.7))


@pytest.mark.parametrize("function", ["pmf", "logpmf", "cdf"])
def test_poisson(function):
    f = getattr(stats.poisson, function)
    numpy.testing.assert_array_equal(f(K, 1.5), getattr(scipy_stats.poisson, function)(K, 1.5))
    check_grads(f, 1)(K, 1.5)
    check_grads(f, 1)(K, X + 1)


P = numpy.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]])
ALPHA = numpy.array([1.5, 2.5, 0.7])


@pytest.mark.parametrize("function", ["pdf", "logpdf"])
def test_dirichlet(function):
    f = getattr(stats.dirichlet, function)
    for x in (P[:, 0], P):
        numpy.testing.assert_allclose(
            f(x, ALPHA), getattr(scipy_stats.dirichlet, function)(x, ALPHA)
        )
        check_grads(f, 1)(x, ALPHA)
    check_grads(lambda x, a: f(x / np.sum(x), a), (0, 1))(P[:, 0], ALPHA)


COV = numpy.array([[1.2, 0.3, 0.1], [0.3, 0.9, -0.2], [0.1, -0.2, 0.7]])


def symmetric(a):
    return (a + a.T) / 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", ["pdf", "logpdf"])
@pytest.mark.parametrize(
    ("x", "mean", "cov"),
    [
        (X, ALPHA, COV),
        (P.T, ALPHA, COV),
        (X, ALPHA, 1.5),
        (X, X + 0.1, ALPHA),
        (X, 0.5, 1.2),
        (0.3, 0.5, 1.2),
        (X, None, 2.0),
    ],
)
def test_multivariate_normal(function, x, mean, cov):
    f = getattr(stats.multivariate_normal, function)
    scipys = getattr(scipy_stats.multivariate_normal, function)
    shaped = symmetric if numpy.ndim(cov) == 2 else lambda c: c
    wanted = scipys(x, mean, cov)
    numpy.testing.assert_allclose(f(x, mean, cov), wanted)
    for call, argument in ((lambda c: f(x, mean, shaped(c)), cov), (lambda x: f(x, mean, cov), x)):
        check_grads(call)(argument)
    if mean is not None:
        check_grads(lambda m: f(x, m, cov))(mean)


def test_multivariate_normal_entropy_and_singular_covariances():
    mvn = stats.multivariate_normal
    assert mvn.entropy(ALPHA, COV) == pytest.approx(
        scipy_stats.multivariate_normal.entropy(ALPHA, COV)
    )
    check_grads(lambda c: mvn.entropy(ALPHA, symmetric(c)))(COV)
    singular = numpy.diag([1.0, 2.0, 0.0])
    mean = numpy.array([0.1, 0.2, 0.8])
    wanted = scipy_stats.multivariate_normal.logpdf(X, mean, singular, allow_singular=True)
    assert mvn.logpdf(X, mean, singular, allow_singular=True) == pytest.approx(wanted)

    def along(x):
        return mvn.logpdf(np.concatenate([x, X[2:]]), mean, singular, True)

    check_grads(along)(X[:2])
    with pytest.raises(NotImplementedError, match="where cov is singular"):
        grad(lambda c: mvn.logpdf(X, mean, c, True))(singular)


SPECIAL = {
    "rgamma": lambda x: special.rgamma(x),
    "polygamma": lambda x: special.polygamma(1, x),
    "multigammaln": lambda x: special.multigammaln(x + 2, 3),
    "logsumexp": lambda x: special.logsumexp(x),
    "logsumexp, axis": lambda x: special.logsumexp(np.outer(x, X), axis=1, keepdims=True),
    "logsumexp, weights": lambda x: special.logsumexp(np.outer(x, X), axis=0, b=ALPHA),
    "softmax": lambda x: special.softmax(x),
    "log_softmax": lambda x: special.log_softmax(np.outer(x, X), axis=1),
    "erf": lambda x: special.erf(x),
    "betainc": lambda x: special.betainc(1.5, 2.5, x),
    "gammasgn": lambda x: special.gammasgn(x) * x,
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name):
    check_grads(SPECIAL[name])(X)


def test_special_functions_have_scipys_values():
    assert special.multigammaln(4.5, 3) == pytest.approx(scipy_special.multigammaln(4.5, 3))
    wanted = scipy_special.logsumexp([1.0, -numpy.inf, 1e3], b=X)
    values = []

    def weighted(b):
        values.append(special.logsumexp(numpy.array([1.0, -numpy.inf, 1e3]), b=b))
        return values[0]

    grad(weighted)(X)
    assert values[0]._value == pytest.approx(wanted)


R = numpy.random.default_rng(0)
A, B, Q = R.normal(size=(3, 3, 3))
BAND = R.normal(size=(4, 5)) + numpy.array([[0], [0], [5], [0]])


@pytest.mark.parametrize(
    ("function", "arguments", "modes"),
    [
        (lambda a: linalg.sqrtm(a @ a.T + 2 * np.eye(3)), (A,), None),
        (linalg.solve_sylvester, (A, B, Q), None),
        (lambda a, b: linalg.solve_triangular(a + 3 * np.eye(3), b), (A, Q), ["rev"]),
        (lambda a, b: linalg.solve_triangular(a + 3 * np.eye(3), b, lower=True), (A, X), ["rev"]),
        (lambda a, b: linalg.solve_triangular(a + 3 * np.eye(3), b, 1), (A, X), ["rev"]),
        (lambda a, b: linalg.solve_triangular(a, b, "T", unit_diagonal=True), (A, Q), ["rev"]),
        (lambda a, b: linalg.solve_banded((1, 2), a, b), (BAND, BAND[0]), ["rev"]),
        (lambda a, b: linalg.solve_banded((1, 2), a, b), (BAND, BAND.T), ["rev"]),
    ],
)
def test_linear_algebra(function, arguments, modes):
    check_grads(function, tuple(range(len(arguments))), modes=modes)(*arguments)


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
def test_convolution_is_scipys(mode):
    convolve = pytest.importorskip("scipy.signal").convolve
    for a, b in [(R.normal(size=(7, 6)), R.normal(size=(3, 4))), (X, R.normal(size=5))]:
        numpy.testing.assert_allclose(signal.convolve(a, b, mode=mode), convolve(a, b, mode))
        check_grads(lambda a, b: signal.convolve(a, b, mode=mode), (0, 1))(a, b)


def test_convolution_along_some_axes():
    a, b = R.normal(size=(2, 3, 6, 5)), R.normal(size=(3, 4, 2, 3))
    axes, dot_axes = ([2, 3], [2, 3]), ([1], [0])
    found = signal.convolve(a, b, axes=axes, dot_axes=dot_axes, mode="valid")
    assert found.shape == (2, 4, 5, 3)
    wanted = sum(signal.convolve(a[1, c], b[c, 3], mode="valid") for c in range(3))
    numpy.testing.assert_allclose(found[1, 3], wanted)
    swapped = signal.convolve(b, a, axes=axes, dot_axes=dot_axes[::-1], mode="valid")
    numpy.testing.assert_allclose(swapped, numpy.swapaxes(found, 0, 1))
    check_grads(
        lambda a, b: signal.convolve(a, b, axes=axes, dot_axes=dot_axes, mode="full"), (0, 1)
    )(a, b)
    with pytest.raises(ValueError, match="mode is 'valid', 'full' or 'same'"):
        signal.convolve(a, b, mode="circular")
    with pytest.raises(ValueError, match="must be the larger"):
        signal.convolve(numpy.ones((2, 3)), numpy.ones((3, 2)), mode="valid")


def pendulum(y, t, damping, force):
    return np.stack([y[1], -np.sin(y[0]) - damping * y[1] + np.sum(force) * np.cos(t)])


TIMES = numpy.array([0.0, 0.5, 1.3])
START = numpy.array([0.3, -0.1])
TIGHT = {"rtol": 1e-10, "atol": 1e-10}


def solution(y0, t, damping, force):
    return integrate.odeint(pendulum, y0, t, (damping, force), **TIGHT)


def test_odeint():
    arguments = (START, TIMES, 0.2, X)
    wanted = pytest.importorskip("scipy.integrate").odeint(
        pendulum, START, TIMES, (0.2, X), **TIGHT
    )
    numpy.testing.assert_array_equal(solution(*arguments), wanted)
    check_grads(solution, (0, 1, 2, 3), modes=["rev"], order=1)(*arguments)
    check_grads(solution, 2, modes=["rev"], order=2)(*arguments)
    without = jacobian(lambda y: integrate.odeint(lambda y, t: -y, y, TIMES)[-1])(START)
    numpy.testing.assert_allclose(without, numpy.exp(-1.3) * numpy.eye(2), atol=1e-6)
    backward = grad(lambda y: np.sum(integrate.odeint(lambda y, t: -y, y, TIMES[::-1])[-1]))
    numpy.testing.assert_allclose(backward(START), numpy.exp(1.3) * numpy.ones(2), rtol=1e-5)


def test_no_warnings_of_the_numerics():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grad(lambda x: np.sum(stats.norm.logpdf(x, 0.0, 2.0)))(X)
