"""Distributions whose formulas are SciPy's own, run on arrays that record: values and differences.

One table of parameters; each test goes through the methods of a distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.scipy.stats.more_distributions import DISCRETE, NAMES

scipy_stats = pytest.importorskip("scipy.stats")
pytestmark = pytest.mark.filterwarnings("ignore:The shape parameter of the erlang")

SHAPES: dict[str, tuple[float, ...]] = {
    "alpha": (3.6,), "argus": (1.2,), "crystalball": (2.1, 3.2), "dgamma": (1.1,),
    "dpareto_lognorm": (0.3, 0.5, 1.5, 2.2), "dweibull": (2.1,), "erlang": (3.0,),
    "exponpow": (2.7,), "foldcauchy": (4.7,), "foldnorm": (1.9,),
    "gausshyper": (3.1, 2.5, 1.3, 4.1), "genexpon": (2.1, 1.6, 0.9), "genhalflogistic": (0.8,),
    "genhyperbolic": (0.5, 1.5, -0.5), "geninvgauss": (2.3, 1.5), "gibrat": (), "gompertz": (0.9,),
    "halfgennorm": (0.7,), "irwinhall": (4.0,), "jf_skew_t": (8.0, 4.0), "kappa3": (1.1,),
    "kappa4": (0.1, 0.2), "levy_l": (), "loglaplace": (3.3,), "mielke": (4.6, 3.1),
    "ncf": (27.0, 27.0, 0.4), "nct": (14.0, 0.2), "ncx2": (21.0, 1.1), "norminvgauss": (1.3, 0.5),
    "pearson3": (0.4,), "powerlognorm": (2.1, 0.4), "powernorm": (4.5,), "rdist": (1.6,),
    "recipinvgauss": (0.6,), "rel_breitwigner": (36.5,), "rice": (0.8,), "skewcauchy": (0.5,),
    "trapezoid": (0.2, 0.4), "truncpareto": (1.8, 5.3), "truncweibull_min": (2.5, 0.3, 1.9),
    "tukeylambda": (3.1,), "wald": (), "wrapcauchy": (0.1,),
    "boltzmann": (1.4, 19.0), "nhypergeom": (140.0, 80.0, 50.0), "skellam": (15.0, 8.0),
}  # fmt: skip

CONSTANT = {
    "gausshyper": "abcz", "genhyperbolic": "p", "geninvgauss": "p", "irwinhall": "n",
    "ncf": ["dfn", "dfd"], "nct": ["df"], "ncx2": ["df"], "boltzmann": "N",
    "nhypergeom": ["M", "n", "r"],
}  # fmt: skip
"""Shapes that count, or by which special functions have no derivative."""

SLOW = {"norminvgauss": ("cdf", "sf", "ppf"), "recipinvgauss": (), "kappa4": ("ppf",)}
ABSENT = {
    "cdf": ("genhyperbolic", "geninvgauss", "skellam", "gausshyper"),
    "sf": ("genhyperbolic", "geninvgauss", "skellam", "gausshyper"),
    "ppf": ("genhyperbolic", "geninvgauss", "gausshyper", *DISCRETE.split()),
}
"""Methods that SciPy computes by a search or an integral."""
ROUGH = {"norminvgauss": 1e-5, "ncx2": 1e-6, "irwinhall": 1e-6, "rel_breitwigner": 1e-5}
CHOOSES = ("erlang", "pearson3")
"""Where SciPy's code chooses by values, which `vmap` says."""
SOME = [n if i % 6 == 0 else pytest.param(n, marks=pytest.mark.thorough)
        for i, n in enumerate(SHAPES)]  # fmt: skip


def methods_of(name: str) -> list[str]:
    density = "logpmf" if name in DISCRETE.split() else "logpdf"
    others = [m for m in ("cdf", "sf", "ppf") if name not in ABSENT[m]]
    return [density, *[m for m in others if m not in SLOW.get(name, ())]]


def arguments(name: str, method: str) -> list[float]:
    scipys, shapes = getattr(scipy_stats, name), SHAPES[name]
    place = [0.4] if name in DISCRETE.split() else [0.4, 1.7]
    start = 0.31 if method == "ppf" else float(scipys.ppf(0.31, *shapes, *place))
    return [start, *shapes, *place]


def differentiable(name: str) -> list[int]:
    names = getattr(cr.scipy.stats, name).parameters
    constant = {*CONSTANT.get(name, ()), *(["loc"] if name in DISCRETE.split() else [])}
    first = [] if name in DISCRETE.split() else [0]
    return first + [i for i, each in enumerate(names, 1) if each not in constant]


def test_every_distribution_has_a_row() -> None:
    assert {*SHAPES} == {*NAMES.split()}


@pytest.mark.parametrize("name", SHAPES)
def test_values_and_gradients_are_scipys(name: str) -> None:
    ours, scipys = getattr(cr.scipy.stats, name), getattr(scipy_stats, name)
    by, rough = tuple(differentiable(name)), ROUGH.get(name, 1e-7)
    for method in methods_of(name):
        at = arguments(name, method)
        if name in DISCRETE.split():
            at[-1] = 1.0
            at[0] = float(scipys.ppf(0.31, *at[1:]))
        found = getattr(ours, method)(*map(cr.tensor, np.asarray(at)))
        np.testing.assert_allclose(found, getattr(scipys, method)(*at), 1e-8, err_msg=method)
        if not by:
            continue
        slopes = cr.grad(getattr(ours, method), argnums=by)(*at)
        for k, slope in zip(by, slopes, strict=True):
            h = 1e-3 * max(abs(at[k]), 0.1)
            a, b, c, d = [
                getattr(scipys, method)(*at[:k], at[k] + j * h, *at[k + 1 :])
                for j in (-2, -1, 1, 2)
            ]
            wanted = (a - 8 * b + 8 * c - d) / (12 * h)
            np.testing.assert_allclose(slope, wanted, rough, rough, err_msg=f"{method} by {k}")


@pytest.mark.parametrize("name", SOME)
def test_both_modes_second_derivatives_compiled_and_mapped(name: str) -> None:
    ours, by = getattr(cr.scipy.stats, name), differentiable(name)
    if name in (*DISCRETE.split(), "irwinhall"):
        pytest.skip("arguments count")
    at = arguments(name, "logpdf")

    def along(s: Any) -> Any:
        moved = [x * (1 + 0.01 * s) if i in by else x for i, x in enumerate(at)]
        return ours.logpdf(*moved)

    slope, h = cr.grad(along), 1e-3
    assert cr.jvp(along, (0.0,), (1.0,))[1] == pytest.approx(slope(0.0), rel=1e-9)
    second = cr.grad(slope)(0.0)
    assert second == pytest.approx((slope(h) - slope(-h)) / (2 * h), rel=1e-4, abs=1e-7)
    assert cr.compile(slope)(0.1) == pytest.approx(slope(0.1), rel=1e-9)
    some = np.array([-0.1, 0.0, 0.1])
    if name in CHOOSES:
        with pytest.raises(cr.AutogradError, match=r"vmap: .* differ"):
            cr.vmap(along)(some)
        return
    np.testing.assert_allclose(cr.vmap(along)(some), [along(s) for s in some], 1e-9)


@pytest.mark.parametrize("name", ["alpha", "gompertz", "crystalball", "kappa3"])
def test_outside_of_the_support_and_for_invalid_shapes(name: str) -> None:
    ours, scipys = getattr(cr.scipy.stats, name), getattr(scipy_stats, name)
    x = np.array([-np.inf, -60.0, -1.0, 2.0, 60.0, np.nan])
    for method in ("pdf", "cdf"):
        found = getattr(ours, method)(cr.tensor(x), *SHAPES[name])
        np.testing.assert_allclose(found, getattr(scipys, method)(x, *SHAPES[name]), 1e-9)
    invalid = ours.logpdf(cr.tensor(2.0), -1.0, *SHAPES[name][1:])
    assert np.isnan(invalid.item())


@pytest.mark.parametrize("name", ["alpha", "levy_l", "powerlognorm", "ncf"])
def test_at_the_end_of_the_support(name: str) -> None:
    ours, scipys, shapes = getattr(cr.scipy.stats, name), getattr(scipy_stats, name), SHAPES[name]
    end = cr.tensor(0.0, dtype=cr.float64, requires_grad=True)
    density = ours.pdf(end, *shapes)
    assert density.item() == scipys.pdf(0.0, *shapes)
    if name != "ncf":  # whose support is closed
        assert cr.autograd_grad(density, end)[0].item() == 0.0
    assert ours.logpdf(end, *shapes).item() == -np.inf


MOMENTS = {"gamma": 2.3, "t": 5.5, "genextreme": 0.2, "poisson": 2.4, "geom": 0.4, "rice": 0.8,
           "lognorm": 0.7, "pearson3": 0.4, "weibull_min": 1.7}  # fmt: skip


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_to_the_fourth(name: str) -> None:
    ours, scipys, at, h = getattr(cr.scipy.stats, name), getattr(scipy_stats, name), 0.0, 1e-5
    at = MOMENTS[name]
    for k, moment in enumerate("mvsk"):
        found = ours.stats(cr.tensor(at, dtype=cr.float64), moments="mvsk")[k]
        np.testing.assert_allclose(found, scipys.stats(at, moments=moment), 1e-8)
        if moment in "vs":
            slope = cr.grad(lambda s, m=moment: ours.stats(s, moments=m))(at)
            high, low = [scipys.stats(at + d, moments=moment) for d in (h, -h)]
            assert slope == pytest.approx((high - low) / (2 * h), rel=1e-5, abs=1e-7)


def test_draws_are_located_and_scaled() -> None:
    gamma = cr.scipy.stats.gamma
    draws = scipy_stats.gamma.rvs(2.0, size=4, random_state=3)
    by_scale = cr.grad(lambda s: gamma.rvs(2.0, 1.0, s, size=4, random_state=3).sum())
    assert by_scale(1.5) == pytest.approx(draws.sum())
    assert cr.grad(lambda m: gamma(2.0, loc=m).rvs(4, random_state=3).sum())(1.5) == 4
    assert gamma.rvs(2.0, random_state=3) == scipy_stats.gamma.rvs(2.0, random_state=3)


def test_what_is_compiled_says_so() -> None:
    with pytest.raises(cr.AutogradError, match=r"gausshyper.*hyp2f1|hyp2f1"):
        cr.grad(cr.scipy.stats.gausshyper.logpdf, 1)(0.4, *SHAPES["gausshyper"])
    with pytest.raises(cr.AutogradError, match=r"genhyperbolic.cdf has no derivative"):
        cr.grad(cr.scipy.stats.genhyperbolic.cdf)(0.4, *SHAPES["genhyperbolic"])
