"""Univariate distributions of `cr.scipy.stats`, beside SciPy's values and their differences.

One table of parameters; each test goes through all methods of a distribution.
"""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.scipy.stats.distribution import EVALUATE, TABLE, Distribution

scipy_stats = pytest.importorskip("scipy.stats")

SHAPES: dict[str, tuple[float, ...]] = {
    # the real line
    **dict.fromkeys(["norm", "cauchy", "laplace", "logistic", "hypsecant", "moyal"], ()),
    **dict.fromkeys(["gumbel_r", "gumbel_l"], ()),
    "t": (3.4,), "laplace_asymmetric": (1.6,), "genlogistic": (0.7,), "genextreme": (0.2,),
    "loggamma": (1.3,), "johnsonsu": (0.4, 1.7), "skewnorm": (1.4,), "exponnorm": (1.2,),
    "gennorm": (2.6,), "vonmises": (2.2,),
    # positive numbers
    **dict.fromkeys(["expon", "rayleigh", "maxwell", "halfnorm", "halfcauchy", "levy"], ()),
    "halflogistic": (), "gamma": (2.3,), "chi2": (5.5,), "chi": (4.2,), "invgamma": (3.3,),
    "gengamma": (1.7, 1.4), "nakagami": (1.8,), "f": (5.5, 7.5), "betaprime": (2.4, 3.5),
    "lognorm": (0.7,), "invgauss": (1.3,), "fatiguelife": (0.8,), "weibull_min": (1.7,),
    "weibull_max": (1.7,), "exponweib": (1.6, 1.4), "invweibull": (2.8,), "pareto": (2.6,),
    "lomax": (2.4,), "genpareto": (0.2,), "fisk": (2.7,), "burr12": (2.4, 1.6),
    "burr": (2.4, 1.6),
    # an interval
    **dict.fromkeys(["uniform", "arcsine", "semicircular", "anglit", "cosine"], ()),
    "beta": (2.4, 1.6), "powerlaw": (1.8,), "triang": (0.4,), "truncnorm": (-0.7, 1.6),
    "truncexpon": (1.7,), "loguniform": (0.4, 2.6), "reciprocal": (0.4, 2.6),
    "johnsonsb": (0.4, 1.7), "bradford": (1.4,),
    # counts
    "poisson": (2.4,), "binom": (7, 0.4), "bernoulli": (0.4,), "nbinom": (2.6, 0.4),
    "geom": (0.4,), "betabinom": (7, 2.4, 1.6), "betanbinom": (4, 3.4, 1.6),
    "hypergeom": (20, 7, 12), "yulesimon": (2.4,), "zipf": (2.4,), "planck": (0.6,),
    "logser": (0.6,), "dlaplace": (0.8,), "randint": (2, 9),
}  # fmt: skip

MORE = [
    *[("genextreme", (c,)) for c in (0.0, 1e-9, -0.3)],
    *[("genpareto", (c,)) for c in (0.0, 1e-9, -0.3)],
    *[("truncnorm", ends) for ends in ((-np.inf, 1.0), (3.0, 5.0), (-30.0, -29.0), (1.0, np.inf))],
    *[("triang", (0.0,)), ("triang", (1.0,)), ("t", (np.inf,)), ("gengamma", (1.7, -1.4))],
    *[("gamma", (300.0,)), ("gamma", (0.01,)), ("vonmises", (20.0,)), ("skewnorm", (-3.0,))],
]
"""Shapes at which formulas change, or are far from the others."""

LOC, SCALE = 0.6, 1.7
Q = np.array([1e-6, 0.01, 0.2, 0.5, 0.7, 0.95, 0.9999])
EVERYWHERE = np.array([np.nan, -np.inf, np.inf, -50.0, 50.0])


def methods_of(name: str) -> list[str]:
    described = TABLE[name].description
    absent = ("pdf", "logpdf", "ppf", "isf") if described.discrete else ("pmf", "logpmf")
    functions = [m for m in EVALUATE if m not in absent]
    ours = TABLE[name]
    density = {"pmf", "logpmf", "logpdf"}
    return [m for m in functions if m in density or ours._function(m) is not None]


def given(name: str, shapes: tuple[float, ...]) -> tuple[float, ...]:
    """Return shapes, location and scale."""
    return (*shapes, 1.0) if TABLE[name].description.discrete else (*shapes, LOC, SCALE)


def points(name: str, method: str, parameters: tuple[float, ...]) -> np.ndarray:
    if method in ("ppf", "isf"):
        return Q
    return np.unique(getattr(scipy_stats, name).ppf(Q, *parameters))


@pytest.mark.parametrize("name", TABLE)
def test_every_distribution_has_a_row(name: str) -> None:
    assert name in SHAPES
    assert len(SHAPES[name]) == len(TABLE[name].description.shapes.split())


# --- values ---------------------------------------------------------------------------------------

ROUGH = {"truncnorm": 1e-11, "skewnorm": 1e-10, "cosine": 1e-10, "uniform": 1e-10, "pareto": 1e-10,
         "burr12": 1e-10, "betaprime": 1e-10, "dlaplace": 1e-10}  # fmt: skip
"""Of the logarithm of a small probability, where SciPy's own or ours cancels."""


@pytest.mark.parametrize(("name", "shapes"), [*SHAPES.items(), *MORE])
def test_values_are_scipys(name: str, shapes: tuple[float, ...]) -> None:
    parameters, scipys = given(name, shapes), getattr(scipy_stats, name)
    ours = getattr(cr.scipy.stats, name)
    for method in methods_of(name):
        quantile = method in ("ppf", "isf")
        x = points(name, method, parameters)
        with np.errstate(all="ignore"):
            wanted = getattr(scipys, method)(x, *parameters)
        found = getattr(ours, method)(cr.tensor(x), *parameters).numpy()
        tolerance = ROUGH.get(name, 1e-12)
        np.testing.assert_allclose(found, wanted, tolerance, 1e-15, err_msg=method)
        edges = np.array([0.0, 1.0, -0.1, 1.1, np.nan]) if quantile else EVERYWHERE
        with np.errstate(all="ignore"):
            wanted = getattr(scipys, method)(edges, *parameters)
        found = getattr(ours, method)(cr.tensor(edges), *parameters).numpy()
        wrong = np.isnan(wanted) & np.isinf(edges)  # SciPy's ∞ - ∞
        if name == "moyal":  # SciPy's logarithm of a density that underflows
            wrong |= edges == -50
        if name == "skewnorm":  # whose probabilities cancel further than 6 scales away
            wrong |= np.abs(edges) == 50
        wanted[wrong] = found[wrong]
        np.testing.assert_allclose(found, wanted, 1e-9, 1e-15, err_msg=f"{method} at the edges")


@pytest.mark.parametrize("name", SHAPES)
def test_invalid_parameters_give_nan(name: str) -> None:
    ours, parameters = getattr(cr.scipy.stats, name), given(name, SHAPES[name])
    density = "logpmf" if TABLE[name].description.discrete else "logpdf"
    cases = [(*parameters[:i], -3.5, *parameters[i + 1 :]) for i in range(len(SHAPES[name]))]
    if density == "logpdf":
        cases.append((*parameters[:-1], -1.0))
    for case in cases:
        for method in (density, "cdf", "mean"):
            if TABLE[name]._function("log_density" if method == density else method) is None:
                continue
            x = () if method == "mean" else (cr.tensor(2.0, dtype=cr.float64),)
            with np.errstate(all="ignore"):
                wanted = getattr(getattr(scipy_stats, name), method)(*[2.0] * len(x), *case)
            args = (*x, *case) if x else (cr.tensor(case[0], dtype=cr.float64), *case[1:])
            found = getattr(ours, method)(*args).item()
            np.testing.assert_allclose(found, wanted, 1e-9, err_msg=f"{method}{case}")


@pytest.mark.parametrize("name", SHAPES)
def test_moments_are_scipys(name: str) -> None:
    parameters = given(name, SHAPES[name])
    tensors = [cr.tensor(float(p), dtype=cr.float64) for p in parameters]
    given_ones = [m for m in ("mean", "var", "entropy") if TABLE[name]._function(m) is not None]
    for method in [*given_ones, *(["std"] if "var" in given_ones else [])]:
        with np.errstate(all="ignore"):
            wanted = getattr(getattr(scipy_stats, name), method)(*parameters)
        found = getattr(getattr(cr.scipy.stats, name), method)(*tensors)
        np.testing.assert_allclose(found.numpy(), wanted, 1e-10, err_msg=method)


# --- derivatives ----------------------------------------------------------------------------------


def differences(function: Any, at: list[float], k: int) -> Any:
    """Return the derivative by argument k, by central differences of fourth order."""
    step = 1e-3 * max(abs(at[k]), 0.1)
    moved = [[*at[:k], at[k] + j * step, *at[k + 1 :]] for j in (-2, -1, 1, 2)]
    a, b, c, d = [np.asarray(function(*m)) for m in moved]
    return (a - 8 * b + 8 * c - d) / (12 * step)


def differentiable(name: str) -> list[int]:
    """Return the numbers of the arguments that are differentiated, the variate first."""
    d = TABLE[name].description
    names = ["k" if d.discrete else "x", *TABLE[name].parameters]
    counting = {"k", *d.counts.split(), *(["loc"] if d.discrete else [])}
    return [i for i, argument in enumerate(names) if argument not in counting]


def at_point(name: str, method: str) -> list[float]:
    parameters = given(name, SHAPES[name])
    q = 0.37 if TABLE[name].description.discrete else 0.31
    if method in ("ppf", "isf"):
        return [q, *parameters]
    return [float(getattr(scipy_stats, name).ppf(q, *parameters)), *parameters]


@pytest.mark.parametrize("name", SHAPES)
def test_gradients_are_differences_of_scipys_values(name: str) -> None:
    ours, scipys, by = getattr(cr.scipy.stats, name), getattr(scipy_stats, name), None
    by = tuple(differentiable(name))
    if not by:
        pytest.skip("all of its arguments count")
    for method in methods_of(name):
        at = at_point(name, method)
        found = cr.grad(getattr(ours, method), argnums=by)(*at)
        for k, gradient in zip(by, found, strict=True):
            wanted = differences(getattr(scipys, method), at, k)
            np.testing.assert_allclose(gradient, wanted, 2e-7, 2e-8, err_msg=f"{method} by {k}")


SECOND = [
    name if i % 4 == 0 else pytest.param(name, marks=pytest.mark.thorough)
    for i, name in enumerate(SHAPES)
]


@pytest.mark.parametrize("name", SECOND)
def test_both_modes_and_second_derivatives(name: str) -> None:
    ours, by = getattr(cr.scipy.stats, name), tuple(differentiable(name))
    if not by:
        pytest.skip("all of its arguments count")
    methods = methods_of(name)
    at = {method: at_point(name, method) for method in methods}

    def total(*moving: Any) -> Any:
        """The sum of all methods, each at its point, moved by the same step."""
        result: Any = 0.0
        for method in methods:
            full: list[Any] = list(at[method])
            for k, step in zip(by, moving, strict=True):
                full[k] = full[k] + step
            result = result + getattr(ours, method)(*full)
        return result

    zeros = [0.0] * len(by)
    gradient = cr.grad(total, argnums=tuple(range(len(by))))
    tangents = [1.0 + 0.3 * i for i in range(len(by))]
    _, forward = cr.jvp(total, tuple(zeros), tuple(tangents))
    reverse = sum(g * t for g, t in zip(gradient(*zeros), tangents, strict=True))
    np.testing.assert_allclose(forward, reverse, 1e-10)

    def slope(*moving: Any) -> Any:
        return sum(g * t for g, t in zip(gradient(*moving), tangents, strict=True))

    second = cr.grad(slope, argnums=tuple(range(len(by))))(*zeros)
    for k in range(len(by)):
        wanted = differences(slope, zeros, k)
        np.testing.assert_allclose(second[k], wanted, 1e-5, 1e-5, err_msg=str(by[k]))


@pytest.mark.parametrize("name", SHAPES)
def test_the_gradient_is_zero_outside_of_the_support(name: str) -> None:
    ours, parameters = getattr(cr.scipy.stats, name), given(name, SHAPES[name])
    discrete, by = TABLE[name].description.discrete, tuple(differentiable(name))
    a, b = getattr(scipy_stats, name).support(*parameters)
    outside = [x for x in (a - 1, b + 1, np.inf) if not np.isfinite(a) or x != a]
    outside = [x for x in outside if np.isfinite(a) or np.isfinite(b) or x == np.inf]
    if discrete:
        outside += [np.floor(a if np.isfinite(a) else 0.0) + 0.5]
    for x in outside:
        if not by or np.isnan(x) or (np.isinf(x) and not np.isfinite([a, b]).any()):
            continue
        for method in ["pmf" if discrete else "pdf", "logpmf" if discrete else "logpdf"]:
            found = cr.grad(getattr(ours, method), argnums=by)(x, *parameters)
            np.testing.assert_array_equal(found, 0.0, err_msg=f"{method} at {x}")


# --- transforms, classes, dtypes ------------------------------------------------------------------


@pytest.mark.parametrize("name", SECOND)
def test_compiled_mapped_and_in_single_precision(name: str) -> None:
    ours, parameters = getattr(cr.scipy.stats, name), given(name, SHAPES[name])
    discrete = TABLE[name].description.discrete
    x = points(name, "cdf", parameters)
    density = ours.logpmf if discrete else ours.logpdf

    def total(x: Any, last: Any) -> Any:
        return (density(x, *parameters[:-1], last)).sum()

    wanted = total(cr.tensor(x), parameters[-1]).item()
    found = cr.compile(total)(cr.tensor(x), cr.tensor(parameters[-1], dtype=cr.float64))
    np.testing.assert_allclose(found.item(), wanted, 1e-12)
    mapped = cr.vmap(lambda x: density(x, *parameters))(x)
    np.testing.assert_allclose(mapped, density(x, *parameters), 1e-12)
    narrow = x[1:-1].astype(np.float32)
    single = density(cr.tensor(narrow), *parameters)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.numpy(), density(narrow.astype(float), *parameters), 1e-3)


def test_classes_of_arguments_and_results() -> None:
    stats = cr.scipy.stats
    assert type(stats.norm.logpdf(1.0)) is np.float64
    assert type(stats.norm.logpdf(np.ones(2), 0.5)) is np.ndarray
    assert type(stats.norm.logpdf(np.ones(2), cr.tensor(0.5))) is cr.Tensor
    assert type(cr.grad(lambda x: stats.norm.logpdf(x).sum())(np.ones(2))) is np.ndarray
    assert cr.grad(stats.norm.logpdf)(1.0) == -1.0
    seen = []
    cr.grad(lambda x: seen.append(stats.norm(x).cdf([0.5, 1.0])) or seen[0].sum())(np.ones(()))
    assert type(seen[0]) is cr.numpy.ndarray
    assert stats.norm.cdf([cr.tensor(0.0), 1.0]).shape == (2,)


def test_integers_are_converted() -> None:
    x = cr.tensor([1, 2])
    np.testing.assert_allclose(
        cr.scipy.stats.gamma.logpdf(x, 2, 0, 3).numpy(),
        scipy_stats.gamma.logpdf([1, 2], 2, 0, 3),
        1e-6,
    )
    assert cr.grad(lambda mu: cr.scipy.stats.poisson.logpmf(np.array([1, 2]), mu).sum())(1.0) == 1


# --- frozen distributions, and what is SciPy's ----------------------------------------------------


def test_frozen_distributions() -> None:
    scale = cr.tensor(2.0, dtype=cr.float64, requires_grad=True)
    frozen = cr.scipy.stats.gamma(1.5, scale=scale)
    scipys = scipy_stats.gamma(1.5, scale=2.0)
    for method in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"):
        found, wanted = getattr(frozen, method)(0.7), getattr(scipys, method)(0.7)
        np.testing.assert_allclose(found.item(), wanted, 1e-12)
    for method in ("mean", "var", "std", "entropy", "median"):
        np.testing.assert_allclose(getattr(frozen, method)().item(), getattr(scipys, method)())
    np.testing.assert_allclose([x.item() for x in frozen.interval(0.9)], scipys.interval(0.9))
    np.testing.assert_allclose([x.item() for x in frozen.stats("mv")], scipys.stats("mv"))
    np.testing.assert_allclose([x.item() for x in frozen.support()], scipys.support())
    assert frozen.stats(moments="v").item() == pytest.approx(6.0)
    assert "gamma(1.5, scale=tensor" in repr(frozen)
    plain = cr.scipy.stats.norm(1.0, 2.0)
    assert plain.expect(lambda x: x) == pytest.approx(1.0)
    assert plain.rvs(3, random_state=1).shape == (3,)
    assert plain.rvs(random_state=1) == scipy_stats.norm(1.0, 2.0).rvs(random_state=1)
    with pytest.raises(AttributeError, match="nonsense"):
        plain.nonsense()


def test_what_scipy_computes() -> None:
    norm = cr.scipy.stats.norm
    data = np.array([0.3, 1.2, 0.7])
    assert norm.fit(data) == scipy_stats.norm.fit(data)
    assert norm.fit(cr.tensor(data)) == scipy_stats.norm.fit(data)
    assert norm.numargs == 0
    assert (
        norm.rvs(size=2, random_state=3).tolist()
        == scipy_stats.norm.rvs(size=2, random_state=3).tolist()
    )
    assert type(cr.scipy.stats.levy_stable) is type(scipy_stats.levy_stable)
    assert pickle.loads(pickle.dumps(norm)) is norm
    assert repr(cr.scipy.stats.gamma) == "<chainrule.scipy.stats.gamma(a, loc, scale)>"
    x = cr.tensor([0.3], dtype=cr.float64)
    assert cr.scipy.stats.skewnorm.ppf(x, 2.0).item() == scipy_stats.skewnorm.ppf(0.3, 2.0)
    assert cr.scipy.stats.poisson.ppf(x, 2.0).item() == 1


def test_negative_log_likelihood() -> None:
    data = np.array([0.3, 1.2, 0.7])
    for name, theta in (("gamma", [2.0, 0.1, 0.6]), ("norm", [0.2, 1.3])):
        scipys = getattr(scipy_stats, name)
        nnlf = functools.partial(getattr(cr.scipy.stats, name).nnlf, x=data)
        assert nnlf(theta) == scipys.nnlf(theta, data)
        assert nnlf(cr.tensor(theta, dtype=cr.float64)).item() == pytest.approx(
            scipys.nnlf(theta, data), 1e-12
        )
        wanted = [
            differences(lambda *p, f=scipys: f.nnlf(p, data), theta, k) for k in range(len(theta))
        ]
        np.testing.assert_allclose(cr.grad(nnlf)(np.array(theta)), wanted, 1e-8)
    norm = cr.scipy.stats.norm
    assert norm.nnlf(cr.tensor([0.0, -1.0]), data).item() == np.inf
    assert cr.scipy.stats.expon.nnlf(cr.tensor([0.5, 1.0]), data).item() == np.inf
    with pytest.raises(
        cr.ArgumentError, match=r"norm.nnlf: expected theta = \(loc, scale\), got 3"
    ):
        norm.nnlf(cr.tensor([0.0, 1.0, 2.0]), data)


# --- errors ---------------------------------------------------------------------------------------


def tracked(value: float) -> cr.Tensor:
    return cr.tensor(value, dtype=cr.float64, requires_grad=True)


REFUSED: list[tuple[Any, str]] = [
    (lambda s: s.poisson.logpmf(tracked(2.0), 1.5), "poisson.logpmf .*respect to k: it counts"),
    (lambda s: s.binom.logpmf(2, tracked(4.0), 0.5), "binom.logpmf .*respect to n: it counts"),
    (lambda s: s.poisson.cdf(2, 1.5, tracked(0.0)), "poisson.cdf .*respect to loc: it counts"),
    (lambda s: s.poisson.ppf(0.5, tracked(2.0)), "ppf .* respect to mu: quantiles .* integers"),
    (lambda s: s.vonmises.ppf(tracked(0.5), 2.0), "vonmises.ppf .*respect to q: no closed form"),
    (lambda s: s.vonmises.cdf(0.5, tracked(2.0)), "vonmises.cdf .*respect to kappa: no closed"),
    (lambda s: s.betabinom.cdf(2, 4, tracked(1.0), 2.0), "betabinom.cdf .*respect to a: no closed"),
    (lambda s: s.gamma.rvs(tracked(0.5)), "gamma.rvs has no .*chainrule.distributions"),
    (lambda s: s.gamma(tracked(0.5)).rvs(3), "gamma.rvs has no .*chainrule.distributions"),
    (lambda s: s.norm.fit_loc_scale(tracked(0.5)), r"norm.fit_loc_scale has no .* fit\(\) has one"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED, ids=[text[:12] for _, text in REFUSED])
def test_what_has_no_derivative_raises(call: Any, text: str) -> None:
    with pytest.raises(cr.AutogradError, match=text):
        call(cr.scipy.stats)


def test_wrong_calls_say_how_they_are_right() -> None:
    x = cr.tensor(0.5)
    stats = cr.scipy.stats
    with pytest.raises(TypeError, match=r"gamma: expected .*\(a, loc, scale\).*'a' is missing"):
        stats.gamma.pdf(x)
    with pytest.raises(TypeError, match=r"norm: expected .* got 3 positional"):
        stats.norm.pdf(x, 1, 2, 3)
    with pytest.raises(TypeError, match=r"norm: expected .* got 'sigma'"):
        stats.norm(sigma=2.0)
    with pytest.raises(TypeError, match=r"norm: expected .* got 'loc'"):
        stats.norm.pdf(x, 1.0, loc=2.0)
    with pytest.raises(AttributeError, match="poisson has no pdf: it has pmf"):
        stats.poisson.pdf(x, 1.0)
    with pytest.raises(AttributeError, match=r"norm has no logpmf: it has logpdf"):
        stats.norm.logpmf(x)
    with pytest.raises(cr.DTypeError, match=r"norm: expected real numbers, got complex"):
        stats.norm.pdf(cr.tensor(1j))
    with pytest.raises(AttributeError, match=r"normal"):
        stats.normal  # noqa: B018
    assert isinstance(stats.norm, Distribution)
    assert {"norm", "zscore", "qmc"} <= set(dir(stats))
