"""Maximum-likelihood fits by SciPy's minimisers with our gradients, beside SciPy's `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_stats = pytest.importorskip("scipy.stats")
scipy_optimize = pytest.importorskip("scipy.optimize")

# true parameters (shapes, loc, scale), the parameters that are fixed, where to begin
FITS: dict[str, tuple[tuple[float, ...], dict[int, float], tuple[float, ...]]] = {
    "norm": ((1.0, 2.0), {}, (0.0, 1.0)),
    "gamma": ((2.5, 0.0, 1.4), {1: 0.0}, (1.0, 1.0)),
    "beta": ((2.0, 3.5, 0.0, 1.0), {2: 0.0, 3: 1.0}, (1.0, 1.0)),
    "weibull_min": ((1.7, 0.0, 2.0), {1: 0.0}, (1.0, 1.0)),
    "lognorm": ((0.6, 0.0, 2.0), {1: 0.0}, (1.0, 1.0)),
    "t": ((4.0, 1.0, 2.0), {}, (3.0, 0.0, 1.0)),
    "gumbel_r": ((1.0, 2.0), {}, (0.0, 1.0)),
    "logistic": ((1.0, 2.0), {}, (0.0, 1.0)),
    "invgauss": ((0.7, 0.0, 2.0), {1: 0.0}, (1.0, 1.0)),
    "genextreme": ((0.1, 1.0, 2.0), {}, (0.05, 0.5, 3.0)),
    "skewnorm": ((3.0, 1.0, 2.0), {}, (1.0, 0.0, 1.5)),
}


@pytest.mark.parametrize("name", FITS)
def test_the_fit_is_at_least_as_good_as_scipys(name: str) -> None:
    true, fixed, start = FITS[name]
    ours, scipys = getattr(cr.scipy.stats, name), getattr(scipy_stats, name)
    data = scipys.rvs(*true, size=300, random_state=2)
    free = [i for i in range(len(true)) if i not in fixed]
    positive = [i for i in free if i == len(true) - 1 or (i < len(true) - 2 and true[i] > 0.5)]

    def full(theta: Any) -> list[Any]:
        """Return all parameters, of which positive ones are given by their logarithm."""
        found: list[Any] = [fixed.get(i) for i in range(len(true))]
        for k, i in enumerate(free):
            found[i] = np.exp(theta[k]) if i in positive else theta[k]
        return found

    def loss(theta: Any) -> Any:
        return -ours.logpdf(data, *full(theta)).mean()

    first = [np.log(x) if i in positive else x for i, x in zip(free, start, strict=True)]
    found = scipy_optimize.minimize(loss, first, jac=cr.grad(loss), method="BFGS")
    keywords = {f"f{i}" if i < len(true) - 2 else ("floc", "fscale")[i - len(true) + 2]: value
                for i, value in fixed.items()}  # fmt: skip
    wanted = scipys.nnlf(scipys.fit(data, **keywords), data) / len(data)
    assert np.abs(cr.grad(loss)(found.x)).max() < 1e-4
    assert found.fun <= wanted + 1e-6
    assert scipys.nnlf(full(found.x), data) / len(data) == pytest.approx(found.fun, 1e-10)


# --- derivatives of fits --------------------------------------------------------------------------

DATA = np.array([1.3, 0.4, 2.2, 3.1, 1.9, 0.8, 2.7, 1.1])


def closely(f: Any, start: Any, args: Any = (), disp: Any = 0) -> Any:
    settings: Any = {"xtol": 1e-11, "ftol": 1e-14, "maxiter": 9000, "maxfun": 9000}
    return scipy_optimize.fmin(f, start, args=args, disp=0, **settings)


BY_FITS: dict[str, dict[str, Any]] = {
    "norm": {},
    "gamma": {"floc": 0},
    "weibull_min": {"f0": 1.5, "optimizer": closely},
    "beta": {"floc": 0, "fscale": 4, "optimizer": closely},
    "gumbel_r": {},
    "expon": {},  # the support begins at the first of the data,
    "pareto": {"floc": 0},
    "uniform": {},  # and ends at the last
    "laplace": {},
    "loglaplace": {"floc": 0},  # of a kink at the median, too
    "vonmises": {},
}


def difference(f: Any, x: Any, h: float = 1e-4) -> Any:
    return np.stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.size)], -1)


@pytest.mark.parametrize(
    "name",
    [x if x != "loglaplace" else pytest.param(x, marks=pytest.mark.thorough) for x in BY_FITS],
)
def test_fits_have_derivatives_by_the_data(name: str) -> None:
    ours, scipys = getattr(cr.scipy.stats, name), getattr(scipy_stats, name)
    settings = BY_FITS[name]

    def fit(x: Any) -> Any:
        return np.stack(list(ours.fit(x, **settings)))

    found = cr.jacobian(fit)(DATA)
    wanted = difference(lambda x: np.array(scipys.fit(x, **settings)), DATA)
    np.testing.assert_allclose(found, wanted, 1e-3, 2e-4)  # SciPy's search ends early
    second = cr.hessian(lambda x: fit(x).sum())(DATA)
    wanted = difference(cr.grad(lambda x: fit(x).sum()), DATA)
    np.testing.assert_allclose(second, wanted, 2e-3, 3e-4)
    tangent = cr.jvp(fit, (DATA,), (np.cos(DATA),))[1]
    np.testing.assert_allclose(tangent, found @ np.cos(DATA), 1e-9)


def test_fits_by_given_parameters_and_of_many_examples() -> None:
    gamma = cr.scipy.stats.gamma

    def scale(loc: Any) -> Any:
        return gamma.fit(DATA, floc=loc)[2]

    wanted = [scipy_stats.gamma.fit(DATA, floc=loc)[2] for loc in (-0.2999, -0.3001)]
    assert cr.grad(scale)(-0.3) == pytest.approx((wanted[0] - wanted[1]) / 2e-4, rel=1e-4)
    examples = np.stack([DATA, DATA + 0.5])

    def shape(x: Any) -> Any:
        return gamma.fit(x, floc=0.0)[0]

    with pytest.warns(cr.PerformanceWarning):
        slopes = cr.vmap(cr.grad(shape))(examples)
    np.testing.assert_allclose(slopes, [cr.grad(shape)(x) for x in examples], 1e-9)
    with pytest.raises(cr.AutogradError, match=r"norm.fit .* method='MLE' alone, got 'MM'"):
        cr.grad(lambda x: cr.scipy.stats.norm.fit(x, method="MM")[0])(DATA)


@pytest.mark.filterwarnings("ignore:implicit_function. the residual is not zero")
def test_a_support_that_ends_where_the_density_jumps_follows_the_data() -> None:
    """Though SciPy's search ends a little before the data."""
    low, high = np.argmin(DATA), np.argmax(DATA)
    ends = cr.jacobian(lambda x: np.stack(cr.scipy.stats.truncexpon(
        *cr.scipy.stats.truncexpon.fit(x)).support()))(DATA)  # fmt: skip
    np.testing.assert_allclose(ends, np.eye(DATA.size)[[low, high]], atol=1e-9)


def test_fits_at_a_kink_of_the_likelihood_raise() -> None:
    for name in ("laplace_asymmetric", "crystalball"):
        with pytest.raises(
            cr.AutogradError, match=rf"{name}.fit: the likelihood has a kink by \w+"
        ):
            cr.grad(lambda x, n=name: getattr(cr.scipy.stats, n).fit(x)[-1])(DATA)
    bounds = {"kappa": (0.5, 2), "loc": (0, 4), "scale": (0.1, 3)}
    with pytest.raises(cr.AutogradError, match="the likelihood has a kink by loc"):
        cr.grad(
            lambda x: cr.scipy.stats.fit(cr.scipy.stats.laplace_asymmetric, x, bounds).params.scale
        )(DATA)


def test_fit_within_bounds() -> None:
    bounds = {"loc": (0, 5), "scale": (1.5, 1.5)}

    def center(x: Any) -> Any:
        return cr.scipy.stats.fit(cr.scipy.stats.norm, x, bounds).params.loc

    np.testing.assert_allclose(cr.grad(center)(DATA), np.full(8, 1 / 8), 1e-9)
    assert not cr.grad(
        lambda x: cr.scipy.stats.fit(cr.scipy.stats.norm, x, bounds).params.scale + 0 * x[0]
    )(DATA).any()


PROGRAMS: dict[str, tuple[Any, Any]] = {
    "boxcox": (lambda s, xp, x: s.boxcox(x)[0], DATA),
    "boxcox-power": (lambda s, xp, x: s.boxcox(x)[1], DATA),
    "yeojohnson": (lambda s, xp, x: s.yeojohnson(x)[0], DATA),
    "anderson": (lambda s, xp, x: s.anderson(x).statistic, DATA),
    "theilslopes": (lambda s, xp, x: s.theilslopes(x, np.arange(8.0))[0], DATA),
    "bootstrap": (
        lambda s, xp, x: s.bootstrap((x,), xp.mean, n_resamples=99, rng=0).standard_error, DATA),
    "permutation_test": (
        lambda s, xp, x: s.permutation_test(
            (x[:4], x[4:]), lambda a, b, axis: xp.mean(a, axis=axis) - xp.mean(b, axis=axis),
            n_resamples=19, rng=0, vectorized=True).null_distribution, DATA),
    "ttest_ind": (
        lambda s, xp, x: xp.stack(list(s.ttest_ind(x[:4], x[4:]).confidence_interval(0.9))), DATA),
    "ttest_1samp": (
        lambda s, xp, x: s.ttest_1samp(x, 1.0, alternative="less").confidence_interval().high,
        DATA),
    "pearsonr": (
        lambda s, xp, x: xp.stack(list(s.pearsonr(x[:4], x[4:]).confidence_interval())), DATA),
    "expect": (lambda s, xp, x: s.norm(x[0], x[1]).expect(lambda v: v**3), np.array([0.7, 1.2])),
    "expect-of": (
        lambda s, xp, x: s.norm.expect(lambda v: xp.exp(x[0] * v)), np.array([0.3])),
    "expect-conditional": (
        lambda s, xp, x: s.gamma(x[0]).expect(lambda v: v, lb=0.5, ub=3.0, conditional=True),
        np.array([2.0])),
    "expect-counts": (
        lambda s, xp, x: s.poisson.expect(lambda k: xp.exp(-x[1] * k), (x[0],)),
        np.array([2.0, 0.3])),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_differences_are_scipys(name: str) -> None:
    program, x = PROGRAMS[name]

    def ours(x: Any) -> Any:
        return program(cr.scipy.stats, cr.numpy, x)

    def scipys(x: Any) -> Any:
        return np.asarray(program(scipy_stats, np, x))

    np.testing.assert_allclose(ours(cr.numpy.array(x)), scipys(x), 1e-7)
    np.testing.assert_allclose(cr.jacobian(ours)(x), difference(scipys, x), 1e-3, 1e-4)
